//! How far a pipeline is, for whoever waits for it: which of its phases runs, and how far that is.

use sortmill_io::Os;
use sortmill_io::sync::{Arc, Mutex, lock};

use crate::progress::{Progress, Snapshot};

/// The progress of one pipeline: put it into [`super::Settings::watched`], run the pipeline, look at it meanwhile.
#[derive(Debug, Default)]
pub struct Watched {
    now: Mutex<Option<At>>,
}

#[derive(Clone, Debug)]
struct At {
    name: String,
    number: usize,
    count: usize,
    progress: Arc<Progress>,
}

/// A phase of a pipeline at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseNow {
    /// The verb that it is for.
    pub name: String,
    /// Which it is, from 0.
    pub number: usize,
    /// How many there are.
    pub count: usize,
    /// How far it is.
    pub snapshot: Snapshot,
}

impl Watched {
    /// Phase `number` of `count` begins; answers where it tells how far it is.
    pub(super) fn begin(&self, name: &str, number: usize, count: usize) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        *lock(&self.now) = Some(At {
            name: name.to_owned(),
            number,
            count,
            progress: Arc::clone(&progress),
        });
        progress
    }

    /// The phase that runs now, or ran last; `None` before the first one.
    #[must_use]
    pub fn now(&self, os: &dyn Os) -> Option<PhaseNow> {
        let at = lock(&self.now).clone()?;
        Some(PhaseNow {
            snapshot: at.progress.now(os),
            name: at.name,
            number: at.number,
            count: at.count,
        })
    }
}
