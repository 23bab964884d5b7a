//! Every job of these tests is watched: what its progress says at any moment fits what it said before, and
//! what it says at the end is what the report says.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use sortmill::error::Error;
use sortmill::io::Os;
use sortmill::job::Job;
use sortmill::progress::{Phase, Progress, Snapshot};
use sortmill::report::Report;

use super::PATIENCE;

/// A job that is looked at while it runs.
pub struct Watched {
    progress: Arc<Progress>,
    os: Arc<dyn Os>,
    seen: RefCell<Snapshot>,
}

impl Watched {
    pub fn new(job: &mut Job, os: Arc<dyn Os>) -> Self {
        let progress = Arc::<Progress>::default();
        job.progress = Some(Arc::clone(&progress));
        let seen = progress.now(&*os);
        assert_eq!((seen.elapsed_ns, seen.phase), (0, Phase::Prepare));
        Self {
            progress,
            os,
            seen: RefCell::new(seen),
        }
    }

    /// Waits for the job's end, and looks at it meanwhile.
    pub fn receive<T>(&self, receiver: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        let began = Instant::now();
        loop {
            let received = receiver.recv_timeout(Duration::from_millis(1));
            self.look();
            match received {
                Err(RecvTimeoutError::Timeout) if began.elapsed() < PATIENCE => {}
                other => return other,
            }
        }
    }

    fn look(&self) -> Snapshot {
        let now = self.progress.now(&*self.os);
        let before = self.seen.replace(now.clone());
        assert!(before.phase <= now.phase, "{before:?} {now:?}");
        assert!(before.elapsed_ns <= now.elapsed_ns, "{before:?} {now:?}");
        assert!(
            before.share.unwrap_or(0.0) <= now.share.unwrap_or(1.0),
            "{before:?} {now:?}"
        );
        assert!(
            now.share.is_none_or(|share| (0.0..=1.0).contains(&share)),
            "{now:?}"
        );
        assert_eq!(
            now.left_ns() == Some(0),
            now.phase > Phase::Verify || moved_all(&now),
            "{now:?}"
        );
        let _no_overflow = now.since(&before);
        now
    }

    /// Holds the end against the report.
    pub fn ended(&self, result: &Result<Report, Error>) {
        let end = self.look();
        let Ok(report) = result else {
            assert_ne!(end.phase, Phase::Done, "{end:?}");
            return;
        };
        assert_eq!((end.phase, end.share), (Phase::Done, Some(1.0)), "{end:?}");
        let part = |phase| end.parts.iter().find(|part| part.phase == phase);
        let moved =
            |phase| part(phase).map_or((0, 0), |part| (part.read_bytes, part.written_bytes));
        let (read, spilled) = moved(Phase::Distribute);
        let only = if report.merged.is_some() {
            Phase::Merge
        } else {
            Phase::Sort
        };
        let (loaded, written) = moved(only);
        let bytes = &report.bytes;
        match &report.order {
            None if report.merged.is_some() => {
                assert_eq!(
                    (read, loaded),
                    (0, bytes.input_stored + bytes.temp_read),
                    "{end:?}"
                );
            }
            None => {
                assert_eq!(read, bytes.input_stored, "{end:?}");
                assert_eq!(loaded, bytes.temp_read, "{end:?}");
            }
            // Phases take turns, and all counts as one.
            Some(order) => {
                let all = bytes.input + bytes.temp_read + order.again_read_bytes;
                assert_eq!((read, loaded), (0, all), "{end:?}");
            }
        }
        assert_eq!(
            spilled + written,
            bytes.temp_written + bytes.output_written,
            "{end:?}"
        );
        let verified = if report.verified { bytes.output } else { 0 };
        assert_eq!(moved(Phase::Verify), (verified, 0), "{end:?}");
        for part in &end.parts {
            let expected = (part.read_bytes_expected, part.written_bytes_expected);
            assert_eq!(
                expected,
                (Some(part.read_bytes), Some(part.written_bytes)),
                "{end:?}"
            );
        }
    }
}

fn moved_all(snapshot: &Snapshot) -> bool {
    snapshot.parts.iter().all(|part| {
        part.read_bytes_expected
            .is_some_and(|bytes| bytes <= part.read_bytes)
            && part
                .written_bytes_expected
                .is_some_and(|bytes| bytes <= part.written_bytes)
    })
}
