//! How much room a job needs, as far as it is known: for whoever has to make some.

use std::path::Path;

use sortmill_io::Os;

use crate::error::{Error, ErrorKind};
use crate::plan::{Doubt, Plan};
use crate::text;

/// How much room a job needs.
pub struct Needed {
    /// Bytes of temporary files, as the plan foresees it, and those that were given out.
    pub temp_bytes: u64,
    pub taken_bytes: u64,
    pub output_bytes: u64,
    /// How many bytes the output will have nobody knows: it is compressed, has less than the input, or what functions make.
    pub is_unknown: bool,
    /// Nor how many the input has, before it has been read.
    pub is_unread: bool,
}

impl Needed {
    /// What `plan` foresees.
    pub fn of(plan: &Plan) -> Self {
        let mut doubts = plan.doubts.iter();
        let is_doubted = doubts.any(|one| matches!(one, Doubt::Fewer | Doubt::Function));
        Self {
            temp_bytes: plan.temp_bytes.unwrap_or(0) * u64::from(plan.node_count()),
            taken_bytes: 0,
            output_bytes: plan.shared_bytes.or(plan.input_bytes).unwrap_or(0),
            is_unknown: plan.encoders.is_some() || is_doubted,
            is_unread: plan.shared_bytes.or(plan.input_bytes).is_none(),
        }
    }

    /// Tells who has to make room how much it takes, once the job has ended and given back what it took.
    pub fn explain(&self, error: Error, os: &dyn Os) -> Error {
        if error.kind != ErrorKind::Space {
            return error;
        }
        let Some(path) = error.path.clone() else {
            // Several folders, each of which is named with what was taken there.
            let missing_bytes = self.temp_bytes.saturating_sub(self.taken_bytes);
            return match error.room {
                None if missing_bytes > 0 => error.room(self.temp_bytes, Some(missing_bytes)),
                _ => error,
            };
        };
        if error.hint.is_some() {
            return error;
        }
        if error.room.is_some() {
            // It was looked for before anything was written, and told.
            return error.hint("Free some space, or choose a place on another file system.");
        }
        let missing = |bytes: u64| Some(bytes.saturating_sub(free(&path, os)?));
        if crate::temp::is_of_job(&path) {
            let (need, took) = (text::bytes(self.temp_bytes), text::bytes(self.taken_bytes));
            let told = match self.temp_bytes > self.taken_bytes {
                true => format!("Temporary files need about {need}, and {took} were taken"),
                false => format!("Temporary files took {took} so far"),
            };
            let error = error.hint(format!(
                "{told}. Free some space, or choose another folder with --temp."
            ));
            return match self.temp_bytes > self.taken_bytes {
                true => error.room(self.temp_bytes, missing(self.temp_bytes)),
                false => error,
            };
        }
        if self.is_unknown || self.is_unread {
            return error.hint("Free some space, or choose a place on another file system.");
        }
        let (bytes, missing) = (self.output_bytes, missing(self.output_bytes));
        let told = text::bytes(bytes);
        error.room(bytes, missing).hint(format!(
            "The output needs {told}. Free some space, or choose a place on another file system."
        ))
    }
}

/// What is free where `path` lies, or lay before the job ended.
fn free(path: &Path, os: &dyn Os) -> Option<u64> {
    let mut folders = path.ancestors().skip(1);
    folders.find_map(|folder| os.space_free(folder).ok())
}
