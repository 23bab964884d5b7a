//! Memory that this process shares with one that it has started, and what it needs to know of that process.
//!
//! The memory is a file without a name (memfd_create(2)), written and read by offset as a file is, so that no reference into
//! it can see it change. It goes when the last process that has it open does, however that ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::MemfdFlags;

/// Memory that several processes have open.
pub struct Shared {
    file: File,
}

impl Shared {
    /// New memory, without a byte yet.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        let file = rustix::fs::memfd_create("sortmill", MemfdFlags::CLOEXEC)?;
        Ok(Self { file: file.into() })
    }

    /// That of the process that started this one, which is open here under `number`.
    ///
    /// # Errors
    /// The system's.
    pub fn inherited(number: RawFd) -> io::Result<Self> {
        let path = format!("/proc/self/fd/{number}");
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self { file })
    }

    /// Its number in this process.
    #[must_use]
    pub fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Puts `bytes` at its start; it grows where there is not room.
    ///
    /// # Errors
    /// The system's: no memory above all.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, 0)
    }

    /// Reads the first `count` bytes in place of what is in `into`.
    ///
    /// # Errors
    /// The system's, and when there are not so many.
    pub fn read(&self, count: usize, into: &mut Vec<u8>) -> io::Result<()> {
        if self.file.metadata()?.len() < count as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        into.resize(count, 0);
        self.file.read_exact_at(into, 0)
    }

    /// Gives back what lies behind the first `count` bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn shrink(&self, count: u64) -> io::Result<()> {
        match self.file.metadata()?.len() > count {
            true => self.file.set_len(count),
            false => Ok(()),
        }
    }
}

/// Ends this process at once when whoever holds the other end of `stream` has closed it or died; until then it waits.
pub fn die_with(stream: &impl AsFd) {
    loop {
        let mut polled = [PollFd::new(stream, PollFlags::RDHUP)];
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        match rustix::event::poll(&mut polled, None) {
            Ok(_) if polled[0].revents().intersects(ended) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

/// Bytes of memory that process `id` has in use, without files and memory that it shares (proc_pid_statm(5)); `None` if it
/// has ended.
#[must_use]
pub fn resident_bytes(id: u32) -> Option<u64> {
    let text =
        std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("statm")).ok()?;
    let mut numbers = text
        .split(' ')
        .skip(1)
        .map_while(|word| word.parse::<u64>().ok());
    let (resident, shared) = (numbers.next()?, numbers.next()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_the_other_reads() {
        let ours = Shared::new().unwrap();
        let theirs = Shared::inherited(ours.number()).unwrap();
        ours.write(b"some bytes").unwrap();
        let mut read = vec![7; 30];
        theirs.read(4, &mut read).unwrap();
        assert_eq!(read, b"some");
        theirs.write(b"S").unwrap();
        ours.read(10, &mut read).unwrap();
        assert_eq!(read, b"Some bytes");
        ours.shrink(2).unwrap();
        assert!(theirs.read(3, &mut read).is_err());
    }

    #[test]
    fn memory_of_a_process() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
