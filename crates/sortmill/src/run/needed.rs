//! How much room a job needs, as far as it is known: for whoever has to make some.

use crate::error::{Error, ErrorKind};
use crate::plan::Plan;
use crate::text;

/// How much room a job needs.
pub struct Needed {
    pub temp_bytes: u64,
    pub output_bytes: u64,
    /// How many bytes the output will have nobody knows: it is compressed, or has less than the input.
    pub is_unknown: bool,
}

impl Needed {
    /// What `plan` foresees.
    pub fn of(plan: &Plan) -> Self {
        Self {
            temp_bytes: plan.temp_bytes.unwrap_or(0) * u64::from(plan.node_count()),
            output_bytes: plan.shared_bytes.or(plan.input_bytes).unwrap_or(0),
            is_unknown: plan.encoders.is_some() || !plan.yields.keeps_records(),
        }
    }

    /// Tells who has to make room how much it takes.
    pub fn explain(&self, error: Error) -> Error {
        if error.kind != ErrorKind::Space || error.hint.is_some() {
            return error;
        }
        if error.path.as_deref().is_some_and(crate::temp::is_spill) {
            let bytes = text::bytes(self.temp_bytes);
            return error.hint(format!(
                "Temporary files took {bytes} so far. Free some space, or choose another folder with --temp."
            ));
        }
        if self.is_unknown {
            return error.hint("Free some space, or choose a place on another file system.");
        }
        let bytes = text::bytes(self.output_bytes);
        error.hint(format!(
            "The output needs {bytes}. Free some space, or choose a place on another file system."
        ))
    }
}
