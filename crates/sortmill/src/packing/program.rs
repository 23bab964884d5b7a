//! A program as a codec for blocks, as GNU sort has it: alone it compresses what it reads, with `-d` it decompresses that.
//!
//! ```text
//!  block of a program | checksum of what it was | what the program made of it |
//! ```
//!
//! GNU sort runs it once for each temporary file; here it is run for each block, by the thread that has that in hand, which
//! feeds it, reads what it writes, and ends it when the job ends. What it makes is bounded by the room that a packer has.
//! Nothing it does is believed: it must end well, and give back the very bytes, or the job fails.

use std::path::PathBuf;

use sortmill_io::filter::{Filtered, Refused, filter};
use sortmill_io::frame::crc32c;
use sortmill_io::process::Ending;

use crate::error::{Error, ErrorKind, Result};
use crate::queue::Stop;

const PACKING: &str = "compressing temporary data";
const UNPACKING: &str = "decompressing temporary data";
const CHECKSUM_BYTES: usize = 4;

/// A program that compresses.
pub struct Program {
    path: PathBuf,
    stop: Stop,
}

impl Program {
    /// The one at `path`, or of that name in `$PATH`, in a job that `stop` ends.
    pub fn new(path: PathBuf, stop: Stop) -> Self {
        Self { path, stop }
    }

    /// Has it compress `plain` to the beginning of `out`. Answers how many bytes that are: all of `out`, of what does not
    /// become smaller.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where it cannot be run or does not end well; that of a job that ends.
    pub fn pack(&self, plain: &[u8], out: &mut [u8]) -> Result<usize> {
        let (checksum, room) = out.split_at_mut(CHECKSUM_BYTES);
        checksum.copy_from_slice(&crc32c(plain).to_le_bytes());
        match self.run(PACKING, &[], plain, room.len())? {
            Some(made) => {
                room[..made.len()].copy_from_slice(&made);
                Ok(CHECKSUM_BYTES + made.len())
            }
            None => Ok(out.len()),
        }
    }

    /// Has it decompress `packed` to `plain`. `false` if that is not what it was.
    ///
    /// # Errors
    /// As [`Program::pack`].
    pub fn unpack(&self, packed: &[u8], plain: &mut [u8]) -> Result<bool> {
        let Some((checksum, packed)) = packed.split_first_chunk::<CHECKSUM_BYTES>() else {
            return Ok(false);
        };
        let made = self.run(UNPACKING, &["-d"], packed, plain.len())?;
        let Some(made) = made.filter(|made| made.len() == plain.len()) else {
            return Ok(false);
        };
        plain.copy_from_slice(&made);
        Ok(crc32c(plain) == u32::from_le_bytes(*checksum))
    }

    /// What to do about one that does not give back what it was given.
    pub fn doubt(&self) -> String {
        let path = self.path.display();
        format!(
            "{path} must compress what it reads, and give the same bytes back when called with -d. Name another program, \
             or none: --compress-temp lz4 needs none."
        )
    }

    /// What it makes of `given`; `None` if that is more than `made_bytes_max`.
    fn run(
        &self,
        doing: &'static str,
        flags: &[&str],
        given: &[u8],
        made_bytes_max: usize,
    ) -> Result<Option<Vec<u8>>> {
        let wrong = |cause: String| {
            let error = Error::new(ErrorKind::Usage, doing, cause);
            error.at(&self.path)
        };
        let mut words = vec![self.path.clone().into_os_string()];
        words.extend(flags.iter().map(Into::into));
        // A program that hangs is waited for, as GNU sort waits for it, until the job is told to end.
        let ran = filter(&words, given, made_bytes_max, None, &|| {
            self.stop.is_stopped()
        });
        let Filtered { ending, made, said } = match ran {
            Ok(filtered) => filtered,
            Err(Refused::Long) => return Ok(None),
            Err(Refused::Stopped | Refused::Late) => return Err(self.stop.error()),
            Err(Refused::Io(error)) => {
                let why = Error::io(doing, &self.path, &error);
                let cause = format!("couldn't execute compress program: {}", why.cause);
                return Err(wrong(cause));
            }
        };
        let how = match ending {
            Ending::Exited(0) => return Ok(Some(made)),
            Ending::Exited(code) => format!("exit status {code}"),
            Ending::Signal(number) => format!("signal {number}"),
            Ending::Killed => "killed".to_owned(),
        };
        let flags: String = flags.iter().map(|flag| format!(" {flag}")).collect();
        let said = String::from_utf8_lossy(&said);
        let said = match said.trim() {
            "" => String::new(),
            said => format!(": {said}"),
        };
        let program = self.path.display();
        Err(wrong(format!(
            "{program}{flags} terminated abnormally ({how}){said}"
        )))
    }
}
