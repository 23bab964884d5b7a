//! Inputs by the thousand: opened, looked at, and open again only while they are read.

use sortmill_io::Os;
use sortmill_io::os::Kind;
use sortmill_io::sync::Arc;

use super::Source;
use crate::error::{Error, Result};
use crate::job::Input;

/// More files than this are open only while they are read, so that a job of many inputs needs few descriptors.
pub const OPEN_MAX: usize = 16;

impl Source {
    /// Opens all inputs, in order; compressed ones as what they were, if they are to be decompressed.
    ///
    /// # Errors
    /// As [`Source::open`], for the first that cannot be opened.
    pub fn open_all(os: &dyn Os, inputs: &[Input], decompress: bool) -> Result<Vec<Self>> {
        let open = |input: &Input| Self::open(os, input, decompress);
        park_many(os, inputs, open)
    }

    /// The same of inputs that are merged ([`Source::open_merged`]).
    ///
    /// # Errors
    /// As [`Source::open_all`].
    pub fn open_all_merged(os: &dyn Os, inputs: &[Input], decompress: bool) -> Result<Vec<Self>> {
        let open = |input: &Input| Self::open_merged(os, input, decompress);
        park_many(os, inputs, open)
    }

    /// The same without a descriptor of its own. A stream keeps its own: it goes on where it was. A compressed file is
    /// none here, because it is read by offset.
    fn park(self, os: &dyn Os) -> Result<Self> {
        if self.meta.kind != Kind::Regular {
            return Ok(self);
        }
        let file = Arc::into_inner(self.file).expect("nobody else has it");
        let path = file.path.clone();
        let parked = os.park(file);
        let file = parked.map_err(|error| Error::io("opening the input", &path, &error))?;
        Ok(Self {
            file: Arc::new(file),
            ..self
        })
    }
}

/// Opens `inputs` in order; many of them keep no descriptor.
fn park_many(
    os: &dyn Os,
    inputs: &[Input],
    open: impl Fn(&Input) -> Result<Source>,
) -> Result<Vec<Source>> {
    let open = |input: &Input| {
        let source = open(input)?;
        match inputs.len() > OPEN_MAX {
            true => source.park(os),
            false => Ok(source),
        }
    };
    inputs.iter().map(open).collect()
}
