//! An output that is also an input: a fault after the rename would cost the only copy, so it is read again before.

use std::collections::HashSet;
use std::path::Path;

use sortmill_io::Os;

use super::Where;
use crate::error::{Error, ErrorKind};

/// What a function makes of it is no records of its input, which is all that can be read again.
pub fn not_verified() -> Error {
    let cause = "what is made of an input cannot be looked through again before it takes its place, so it needs a name of its own";
    Error::new(ErrorKind::Usage, "verifying the output", cause)
}

/// Whether the output is also an input: then a fault after the rename would cost the only copy.
pub fn names_input(os: &dyn Os, output: &Where, inputs: impl Iterator<Item = (u64, u64)>) -> bool {
    let inputs: HashSet<_> = inputs.collect();
    let is_input = |path: &Path| {
        os.meta_at(path)
            .is_ok_and(|meta| inputs.contains(&meta.identity))
    };
    match output {
        Where::NewFile(new_file) => is_input(&new_file.path),
        Where::Parts(folder) => folder.old_parts().any(|path| is_input(&path)),
        Where::InPlace(_) | Where::Stdout | Where::Nowhere => false,
    }
}
