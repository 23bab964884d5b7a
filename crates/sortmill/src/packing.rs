//! Blocks to fewer bytes before they leave memory, and back when they have come in again.
//!
//! Whoever has a block to compress takes one of a fixed number of **packers** for as long as that takes, so their memory
//! is a sum in the plan whoever they are; threads that find none wait for one, and nobody waits for anything else while
//! holding one. A block stays in its buffer:
//!
//! ```text
//!  pack     buffer | header | segments ...........|          unpack   buffer | header | packed |
//!                              | codec                                            | copy
//!                              v                                                  v
//!           scratch | packed |                                        scratch | packed |
//!                       | copy                                                | codec
//!                       v                                                     v
//!           buffer | header | packed | free       |          buffer | header | segments ...........|
//! ```
//!
//! The copies are of the fewer bytes, and cost little beside the codec.
//!
//! A **program** that somebody named is a codec too ([`program`]): it runs once for each block.

mod program;

use sortmill_io::codec::{BlockCodec, BlockCoder, packed_bytes_max};
use sortmill_io::frame::{Damage, HEADER_BYTES, Header, Packed};
use sortmill_io::sync::{Condvar, Mutex, lock, wait};

use crate::block::{Stored, disk_bytes, stored_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::partitions::damaged;
use crate::plan::TempPacking;
use crate::queue::Stop;
use crate::temps::Temps;
use program::Program;

/// A block that does not become smaller by this part of it is left as it is: it has to be decompressed, too.
const SAVED_PART: usize = 8;

/// The packers of a job.
pub struct Packers {
    block_bytes: usize,
    program: Option<Program>,
    state: Mutex<State>,
    returned: Condvar,
}

struct State {
    idle: Vec<Packer>,
    /// How many more may be made.
    to_make: usize,
}

struct Packer {
    coder: BlockCoder,
    scratch: Vec<u8>,
}

impl Packers {
    /// As many as `packing` says, for blocks of up to `block_bytes` of `job`, which `stop` ends. Each is made when it is
    /// first needed.
    #[must_use]
    pub fn new(packing: &TempPacking, block_bytes: usize, job: &Job, stop: &Stop) -> Self {
        Self {
            block_bytes,
            program: (job.temp_program.clone()).map(|path| Program::new(path, stop.clone())),
            state: Mutex::new(State {
                idle: Vec::new(),
                to_make: packing.packer_count,
            }),
            returned: Condvar::new(),
        }
    }

    /// Compresses the payload of `block`, whose header will be `header`, in its place by `codec`. `None` if it is not worth
    /// while: then it is as it was.
    ///
    /// # Errors
    /// The library's, when it gets no memory.
    pub fn pack(
        &self,
        codec: BlockCodec,
        header: &Header,
        block: &mut [u8],
    ) -> Result<Option<Packed>> {
        let mut taken = self.take();
        let Packer { coder, scratch } = taken.packer();
        let payload_bytes = header.payload_bytes as usize;
        let payload = &mut block[HEADER_BYTES..HEADER_BYTES + payload_bytes];
        let bytes = match codec {
            BlockCodec::Program => self.program().pack(payload, scratch)?,
            _ => {
                let bytes = coder.pack(codec, payload, scratch);
                bytes.map_err(|error| failed("compressing temporary data", &error))?
            }
        };
        let packed = Packed {
            codec,
            bytes: u32::try_from(bytes).expect("a block is below 4 GiB"),
        };
        let plain = disk_bytes(header);
        // Both are whole aligned blocks of the device, so at least one of those is saved.
        let saved = plain.saturating_sub(stored_bytes(header, Some(packed)));
        if saved == 0 || saved < plain / SAVED_PART {
            return Ok(None);
        }
        payload[..bytes].copy_from_slice(&scratch[..bytes]);
        Ok(Some(packed))
    }

    /// Decompresses `block`, which is sound, in its place. `false` if that is not what it was.
    fn unpack(&self, header: &Header, packed: Packed, block: &mut [u8]) -> Result<bool> {
        let mut taken = self.take();
        let Packer { coder, scratch } = taken.packer();
        let bytes = packed.bytes as usize;
        let from = block.get(HEADER_BYTES..HEADER_BYTES + bytes);
        let (Some(from), Some(to)) = (from, scratch.get_mut(..bytes)) else {
            return Ok(false);
        };
        to.copy_from_slice(from);
        let payload = HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize;
        if packed.codec == BlockCodec::Program {
            return self.program().unpack(to, &mut block[payload]);
        }
        match coder.unpack(packed.codec, to, &mut block[payload]) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(false),
            Err(error) => Err(failed("decompressing temporary data", &error)),
        }
    }

    fn program(&self) -> &Program {
        let program = self.program.as_ref();
        program.expect("a job that asks for a program names it")
    }

    /// A packer, as soon as there is one.
    fn take(&self) -> Taken<'_> {
        let mut state = lock(&self.state);
        loop {
            if let Some(packer) = state.idle.pop() {
                return Taken {
                    packers: self,
                    packer: Some(packer),
                };
            }
            if state.to_make > 0 {
                state.to_make -= 1;
                drop(state);
                return Taken {
                    packers: self,
                    packer: Some(Packer {
                        coder: BlockCoder::new(),
                        scratch: vec![0; packed_bytes_max(self.block_bytes)],
                    }),
                };
            }
            state = wait(&self.returned, state);
        }
    }
}

/// A packer in somebody's hands; it goes back however that ends.
struct Taken<'a> {
    packers: &'a Packers,
    packer: Option<Packer>,
}

impl Taken<'_> {
    fn packer(&mut self) -> &mut Packer {
        self.packer.as_mut().expect("it goes back when dropped")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let packer = self.packer.take();
        lock(&self.packers.state).idle.extend(packer);
        self.packers.returned.notify_one();
    }
}

/// Checks a block that comes from a disk, where it lay as `stored` says, and has it hold what it held before it was
/// compressed, if it was.
///
/// # Errors
/// [`ErrorKind::Corrupt`] with file and offset for one that is not what was written; the library's, when it gets no
/// memory.
pub fn open(
    packers: Option<&Packers>,
    temps: &Temps<'_>,
    header: &Header,
    stored: &Stored,
    block: &mut [u8],
) -> Result<()> {
    let wrong = |why: Damage| damaged(temps, stored.spot, why);
    Header::open_packed(block, header, stored.packed).map_err(wrong)?;
    let Some(packed) = stored.packed else {
        return Ok(());
    };
    let packers = packers.expect("who compressed it can decompress it");
    if packers.unpack(header, packed, block)? {
        return Ok(());
    }
    let error = wrong(Damage::Packed);
    Err(match packed.codec {
        BlockCodec::Program => error.hint(packers.program().doubt()),
        _ => error,
    })
}

fn failed(doing: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Memory, doing, error.to_string())
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use sortmill_io::codec::BLOCK_CODECS;

    use super::*;
    use crate::job::CompressTemp;

    const BLOCK_BYTES: usize = 64 << 10;

    fn packers() -> Packers {
        let packing = TempPacking {
            how: CompressTemp::Auto,
            has_zstd: true,
            packer_count: 1,
        };
        let job = Job::new(
            Vec::new(),
            crate::job::Output::Stdout,
            crate::order::Format::Lines,
        );
        Packers::new(&packing, BLOCK_BYTES, &job, &Stop::new())
    }

    /// Splitmix64.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A block of `payload_bytes`, of which all but one in `of` are the same.
    fn block(state: &mut u64, payload_bytes: usize, of: u64) -> (Header, Vec<u8>) {
        let header = Header {
            job: 1,
            payload_bytes: payload_bytes as u32,
            ..Header::default()
        };
        let mut block = vec![b'.'; BLOCK_BYTES];
        for byte in &mut block[HEADER_BYTES..] {
            let drawn = random(state);
            if drawn.is_multiple_of(of) {
                *byte = (drawn >> 32) as u8;
            }
        }
        (header, block)
    }

    #[test]
    fn what_is_worth_while_shrinks_and_comes_back() {
        let mut state = 3;
        let packers = packers();
        for codec in BLOCK_CODECS.into_iter().filter(|codec| codec.is_built()) {
            for payload_bytes in [BLOCK_BYTES - HEADER_BYTES, 20_000, 4096, 4000, 100, 0] {
                for of in [1, 2, 30] {
                    let (header, plain) = block(&mut state, payload_bytes, of);
                    let mut packed = plain.clone();
                    let end = HEADER_BYTES + payload_bytes;
                    let Some(how) = packers.pack(codec, &header, &mut packed).unwrap() else {
                        assert!(of < 30 || payload_bytes < 4096, "{payload_bytes}, {of}");
                        assert_eq!(packed[..end], plain[..end], "as it was");
                        continue;
                    };
                    assert!(of > 1, "nobody compresses noise");
                    let (before, after) = (disk_bytes(&header), stored_bytes(&header, Some(how)));
                    assert!(after < before && before - after >= before / SAVED_PART);
                    assert!(packers.unpack(&header, how, &mut packed).unwrap());
                    assert_eq!(packed[..end], plain[..end], "{payload_bytes}, {of}");
                }
            }
        }
    }

    /// A length that was read from a disk is not believed.
    #[test]
    fn a_block_that_says_it_is_longer_than_it_can_be_is_refused() {
        let packers = packers();
        let (header, mut bytes) = block(&mut 4, 1000, 1);
        for claimed in [BLOCK_BYTES as u32, 2 * BLOCK_BYTES as u32, u32::MAX - 64] {
            let packed = Packed {
                codec: BlockCodec::Lz4,
                bytes: claimed,
            };
            assert!(!packers.unpack(&header, packed, &mut bytes).unwrap());
        }
    }

    #[test]
    fn there_are_never_more_than_were_planned() {
        let packers = packers();
        let taken = packers.take();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(packers.take()));
            drop(taken);
            waiting.join().unwrap();
        });
        let state = lock(&packers.state);
        assert_eq!((state.idle.len(), state.to_make), (1, 0));
    }
}
