//! Memory that this process shares with one that it has started, and what it needs to know of that process.
//!
//! The memory is a file without a name (memfd_create(2)), written by offset as a file is. Who reads it copies what is there,
//! or has it mapped, as long as the other side keeps to their agreement and does not write; what somebody needs for longer
//! becomes a copy in its place ([`Mapped::keep`]). It goes when the last process that has it open does, however that ends.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

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

    /// Puts `pieces` at its start, one behind the other.
    ///
    /// # Errors
    /// As [`Shared::write`].
    pub fn write_pieces(&self, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        /// The system takes no more at once (IOV_MAX).
        const PIECES_MAX: usize = 1024;
        let (mut pieces, mut offset) = (pieces, 0);
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let some = &pieces[..pieces.len().min(PIECES_MAX)];
            let moved = match rustix::io::pwritev(&self.file, some, offset) {
                Err(rustix::io::Errno::INTR) => continue,
                moved => moved?,
            };
            if moved == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            offset += moved as u64;
            IoSlice::advance_slices(&mut pieces, moved);
        }
        Ok(())
    }

    /// The first `bytes` bytes, and room behind them, in this process's own memory, to be read.
    ///
    /// # Errors
    /// The system's, and when there are not so many.
    ///
    /// # Safety
    /// Nobody writes there or gives them back as long as something reads them that has not been kept ([`Mapped::keep`]).
    pub unsafe fn map(&self, bytes: usize) -> io::Result<Mapped> {
        const LEAST_BYTES: usize = 2 << 20;
        let length = bytes.max(LEAST_BYTES).next_power_of_two();
        self.check_length(bytes)?;
        // SAFETY: a mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                &self.file,
                0,
            )
        }?;
        let start = NonNull::new(start.cast()).expect("a mapping is not at address zero");
        Ok(Mapped { start, length })
    }

    /// Refuses to read more than there is: behind the end of a file that is mapped nothing can be read.
    ///
    /// # Errors
    /// The system's, and when there are fewer than `bytes` bytes.
    pub fn check_length(&self, bytes: usize) -> io::Result<()> {
        match self.file.metadata()?.len() < bytes as u64 {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Ok(()),
        }
    }

    /// Reads the first `count` bytes in place of what is in `into`.
    ///
    /// # Errors
    /// The system's, and when there are not so many.
    pub fn read(&self, count: usize, into: &mut Vec<u8>) -> io::Result<()> {
        self.check_length(count)?;
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

/// Shared memory as it lies in this process's own, from its first byte on.
pub struct Mapped {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it is memory that is only read; that nobody writes it is whoever mapped it's promise.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes can lie there.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The first `bytes` bytes, of which there must be so many.
    ///
    /// # Panics
    /// When there is no room for so many.
    #[must_use]
    pub fn bytes(&self, bytes: usize) -> &[u8] {
        assert!(bytes <= self.length);
        // SAFETY: they are mapped as long as `self` is, and nobody writes them, as whoever mapped them has promised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), bytes) }
    }

    /// Puts a copy of the first `bytes` bytes in their place, which is shared with nobody: what refers to them reads the
    /// same as before, at the same addresses, whatever becomes of the shared memory.
    ///
    /// # Errors
    /// The system's: no memory above all.
    ///
    /// # Panics
    /// When there is no room for so many.
    pub fn keep(&self, bytes: usize) -> io::Result<()> {
        let from = self.bytes(bytes);
        if from.is_empty() {
            return Ok(());
        }
        let length = bytes.next_multiple_of(rustix::param::page_size());
        // SAFETY: a mapping at an address of the kernel's choice touches no other memory.
        let copy = unsafe {
            let both = ProtFlags::READ | ProtFlags::WRITE;
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, both, MapFlags::PRIVATE)
        }?;
        // SAFETY: the copy has room for so many bytes and was just made, so nothing else lies there. Moving it replaces
        // pages of this mapping in one step by others that read the same, so that no reference can tell.
        let moved = unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), copy.cast(), bytes);
            let to = self.start.as_ptr().cast();
            rustix::mm::mremap_fixed(copy, length, length, MremapFlags::MAYMOVE, to)
        };
        if let Err(error) = moved {
            // SAFETY: it was just mapped, and nothing refers to it.
            let _ = unsafe { rustix::mm::munmap(copy, length) };
            return Err(error.into());
        }
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: that is what was mapped, kept or not, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
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

/// Whether process `id`, a child's child of this one, has ended and nobody has asked how yet.
#[must_use]
pub fn has_ended(id: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("stat"));
    // Behind the name, which may hold anything and stands in brackets.
    let state = |stat: &String| {
        stat.rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next())
    };
    stat.is_ok_and(|stat| matches!(state(&stat), Some('Z' | 'X')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(!has_ended(child.id()));
        drop(child.stdin.take());
        while !has_ended(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!has_ended(child.id()), "nobody has that number any more");
    }

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
    fn pieces_lie_one_behind_the_other() {
        let shared = Shared::new().unwrap();
        let all: Vec<Vec<u8>> = (0..3000)
            .map(|length| vec![length as u8; length % 7])
            .collect();
        let mut pieces: Vec<IoSlice<'_>> = all.iter().map(|piece| IoSlice::new(piece)).collect();
        shared.write_pieces(&mut pieces).unwrap();
        let all = all.concat();
        let mut read = Vec::new();
        shared.read(all.len(), &mut read).unwrap();
        assert_eq!(read, all);
        shared.write_pieces(&mut []).unwrap();
        shared.write_pieces(&mut [IoSlice::new(&[])]).unwrap();
    }

    #[test]
    fn what_is_kept_stays_as_it_was() {
        let ours = Shared::new().unwrap();
        let theirs = Shared::inherited(ours.number()).unwrap();
        for bytes in [1, 4096, 5000, 3 << 20] {
            let before = vec![7; bytes];
            ours.write(&before).unwrap();
            // SAFETY: it is kept before it is written to.
            let mapped = unsafe { theirs.map(bytes) }.unwrap();
            assert_eq!(mapped.bytes(bytes), before);
            mapped.keep(bytes).unwrap();
            let at = mapped.bytes(bytes).as_ptr();
            ours.write(&vec![8; bytes]).unwrap();
            ours.shrink(0).unwrap();
            assert_eq!(mapped.bytes(bytes), before);
            assert_eq!(mapped.bytes(bytes).as_ptr(), at);
            // SAFETY: as above.
            assert!(unsafe { theirs.map(bytes) }.is_err());
        }
    }

    #[test]
    fn memory_of_a_process() {
        assert!(resident_bytes(std::process::id()).unwrap() > 100_000);
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
