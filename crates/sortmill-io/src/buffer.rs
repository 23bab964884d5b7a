//! Memory for bytes: one mapped region per pool, cut into equal, page-aligned buffers.
//!
//! A [`Buffer`] has one owner. Whoever drops it gives it back to its [`Pool`]; whoever submits I/O on it
//! hands it to the kernel and gets it back with the completion. Nothing is allocated after the start:
//! a pool maps its whole region at once, asks for huge pages, and touches a page only when it is used
//! (the most recently returned buffer goes out first, so small jobs stay small).

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::sync::{Arc, Condvar, Mutex, lock, wait};

/// Mapped, zeroed, page-aligned memory, unmapped when dropped.
struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region is plain memory; who may touch which part of it is decided by `Pool` and `Table`,
// which hand out disjoint parts.
unsafe impl Send for Region {}
// SAFETY: as above; the region itself offers no access.
unsafe impl Sync for Region {}

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What memory is mapped and given back in multiples of: pages of 16 or 64 KiB on some processors.
fn page_bytes() -> usize {
    rustix::param::page_size().max(crate::ALIGN_BYTES)
}

impl Region {
    fn map(bytes: usize) -> io::Result<Self> {
        // A region that starts on a huge page can be made of huge pages from its first byte.
        let bytes = bytes.max(1).next_multiple_of(page_bytes());
        let padded = bytes + HUGE_PAGE_BYTES;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no other memory.
        let raw = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                padded,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::PRIVATE | rustix::mm::MapFlags::NORESERVE,
            )
        }?;
        let address = raw as usize;
        let start = address.next_multiple_of(HUGE_PAGE_BYTES);
        let head = start - address;
        // SAFETY: both ranges lie inside the mapping just made and outside the part that is kept.
        unsafe {
            if head > 0 {
                rustix::mm::munmap(raw, head)?;
            }
            let tail = padded - head - bytes;
            if tail > 0 {
                rustix::mm::munmap((start + bytes) as *mut _, tail)?;
            }
        }
        let start = NonNull::new(start as *mut u8).expect("a mapping is not at address zero");
        // A process that is started while the device moves bytes here must not share these pages (open(2), O_DIRECT), and it
        // need not copy tables of them. A refusal is no error: it is about to run another program.
        // SAFETY: the range is this region's own mapping; the advice changes no contents.
        let _ = unsafe {
            rustix::mm::madvise(
                start.as_ptr().cast(),
                bytes,
                rustix::mm::Advice::LinuxDontFork,
            )
        };
        if bytes >= HUGE_PAGE_BYTES {
            // A refusal costs speed only, so it is not an error.
            // SAFETY: the range is this region's own mapping; the advice changes no contents.
            let _ = unsafe {
                rustix::mm::madvise(
                    start.as_ptr().cast(),
                    bytes,
                    rustix::mm::Advice::LinuxHugepage,
                )
            };
        }
        Ok(Self { start, bytes })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `start` and `bytes` are exactly the part of the mapping that `map` kept, and nobody
        // holds a part of it any more: buffers and tables keep their region alive.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A fixed number of equal buffers. Cloning shares the pool.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    region: Region,
    buffer_bytes: usize,
    buffer_count: usize,
    state: Mutex<State>,
    returned: Condvar,
}

struct State {
    free: Vec<u32>,
    free_min: usize,
    closed: bool,
}

impl Pool {
    /// Maps `buffer_count` buffers of `buffer_bytes` (a multiple of 4 KiB) each.
    ///
    /// # Errors
    /// When the system refuses the address space.
    pub fn new(buffer_count: usize, buffer_bytes: usize) -> io::Result<Self> {
        assert!(buffer_bytes > 0 && buffer_bytes.is_multiple_of(crate::ALIGN_BYTES));
        let region = Region::map(buffer_count * buffer_bytes)?;
        let free = (0..u32::try_from(buffer_count).expect("fewer than 2^32 buffers"))
            .rev()
            .collect();
        Ok(Self {
            shared: Arc::new(Shared {
                region,
                buffer_bytes,
                buffer_count,
                state: Mutex::new(State {
                    free,
                    free_min: buffer_count,
                    closed: false,
                }),
                returned: Condvar::new(),
            }),
        })
    }

    /// Bytes of each buffer.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.shared.buffer_bytes
    }

    /// How many buffers there are, free or not.
    #[must_use]
    pub fn buffer_count(&self) -> usize {
        self.shared.buffer_count
    }

    /// Bytes of all buffers.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.shared.buffer_count * self.shared.buffer_bytes) as u64
    }

    /// How many buffers are free now.
    #[must_use]
    pub fn free_count(&self) -> usize {
        lock(&self.shared.state).free.len()
    }

    /// The most bytes that were out at once so far.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        let free_min = lock(&self.shared.state).free_min;
        ((self.shared.buffer_count - free_min) * self.shared.buffer_bytes) as u64
    }

    /// Waits for a free buffer. `None` once the pool is closed.
    #[must_use]
    pub fn take(&self) -> Option<Buffer> {
        let mut state = lock(&self.shared.state);
        loop {
            if state.closed {
                return None;
            }
            if let Some(index) = state.free.pop() {
                return Some(self.hand_out(&mut state, index));
            }
            state = wait(&self.shared.returned, state);
        }
    }

    /// A free buffer if there is one now.
    #[must_use]
    pub fn try_take(&self) -> Option<Buffer> {
        let mut state = lock(&self.shared.state);
        if state.closed {
            return None;
        }
        let index = state.free.pop()?;
        Some(self.hand_out(&mut state, index))
    }

    /// `count` of the free buffers, or as many as are free, whose memory the system gets back meanwhile: nobody has them
    /// until they are dropped.
    #[must_use]
    pub fn set_aside(&self, count: usize) -> Vec<Buffer> {
        let mut aside: Vec<Buffer> = {
            let mut state = lock(&self.shared.state);
            // Neighbours, whose huge pages go back whole.
            state.free.sort_unstable_by(|one, other| other.cmp(one));
            let count = count.min(state.free.len());
            let indices: Vec<u32> = state.free.drain(..count).collect();
            (indices.into_iter())
                .map(|index| Buffer {
                    shared: Arc::clone(&self.shared),
                    index,
                })
                .collect()
        };
        for buffer in &mut aside {
            // Only whole pages, which may be larger than what buffers are aligned to.
            let start = buffer.start();
            let skipped = start.align_offset(page_bytes());
            let bytes =
                self.shared.buffer_bytes.saturating_sub(skipped) / page_bytes() * page_bytes();
            if bytes == 0 {
                continue;
            }
            // A refusal costs memory that nobody uses, so it is not an error.
            // SAFETY: the range is the buffer's own and nobody else sees it; it reads as zeros afterwards, and a buffer's contents
            // are whatever was there.
            let _ = unsafe {
                rustix::mm::madvise(
                    start.add(skipped).cast(),
                    bytes,
                    rustix::mm::Advice::LinuxDontNeed,
                )
            };
        }
        aside
    }

    fn hand_out(&self, state: &mut State, index: u32) -> Buffer {
        state.free_min = state.free_min.min(state.free.len());
        Buffer {
            shared: Arc::clone(&self.shared),
            index,
        }
    }

    /// Ends every wait, now and later: [`Pool::take`] answers `None`.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Closes the pool when it is called, if the pool is still there; holds none of its memory.
    pub fn closer(&self) -> impl Fn() + Send + 'static {
        let pool = Arc::downgrade(&self.shared);
        move || {
            if let Some(shared) = pool.upgrade() {
                shared.close();
            }
        }
    }
}

impl Shared {
    fn close(&self) {
        lock(&self.state).closed = true;
        self.returned.notify_all();
    }
}

/// Aligned memory with one owner; it goes back to its pool when dropped. Contents are whatever the last
/// owner left.
pub struct Buffer {
    shared: Arc<Shared>,
    index: u32,
}

impl Buffer {
    fn start(&self) -> *mut u8 {
        // SAFETY: `index` is below `buffer_count`, so the offset lies inside the region.
        unsafe {
            self.shared
                .region
                .start
                .as_ptr()
                .add(self.index as usize * self.shared.buffer_bytes)
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range is mapped and zeroed at first, and no other buffer has this index while this
        // one lives, so nobody writes to it.
        unsafe { std::slice::from_raw_parts(self.start(), self.shared.buffer_bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.shared.buffer_bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        lock(&self.shared.state).free.push(self.index);
        self.shared.returned.notify_one();
    }
}

/// Types that are valid whatever their bytes are, so that zeroed mapped memory is a slice of them.
///
/// # Safety
/// Every bit pattern must be a valid value, and dropping one must do nothing.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers have no invalid bit pattern.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u128 {}

/// A mapped array of `T`, zeroed, in huge pages where the system has them, touched only as used.
pub struct Table<T> {
    region: Region,
    count: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T: Plain> Table<T> {
    /// Maps room for `count` values.
    ///
    /// # Errors
    /// When the system refuses the address space.
    pub fn new(count: usize) -> io::Result<Self> {
        Ok(Self {
            region: Region::map(count * size_of::<T>())?,
            count,
            kind: std::marker::PhantomData,
        })
    }
}

impl<T: Plain> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the region is page-aligned, holds `count` values, is zeroed or was written through
        // `deref_mut`, and `T: Plain` makes any contents valid.
        unsafe { std::slice::from_raw_parts(self.region.start.as_ptr().cast(), self.count) }
    }
}

impl<T: Plain> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(self.region.start.as_ptr().cast(), self.count) }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// A program that is started while a device writes to them must not share their pages.
    #[test]
    fn processes_that_are_started_have_no_buffers() {
        let pool = Pool::new(2, 4 << 20).unwrap();
        let buffer = pool.take().unwrap();
        let at = buffer.as_ptr() as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_here = false;
        let flags = maps.lines().find_map(|line| {
            if let Some((from, to)) = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'))
            {
                let number = |text| usize::from_str_radix(text, 16).ok();
                if let (Some(from), Some(to)) = (number(from), number(to)) {
                    is_here = (from..to).contains(&at);
                }
            }
            line.strip_prefix("VmFlags:").filter(|_| is_here)
        });
        let flags = flags.unwrap();
        assert!(flags.split(' ').any(|flag| flag == "dc"), "{flags}");
    }

    #[test]
    fn buffers_are_disjoint_aligned_and_come_back() {
        let pool = Pool::new(3, 8192).unwrap();
        let mut taken: Vec<Buffer> = (0..3).map(|_| pool.take().unwrap()).collect();
        assert!(pool.try_take().is_none());
        for (number, buffer) in taken.iter_mut().enumerate() {
            assert_eq!(buffer.as_ptr() as usize % crate::ALIGN_BYTES, 0);
            buffer.fill(number as u8 + 1);
        }
        for (number, buffer) in taken.iter().enumerate() {
            assert!(buffer.iter().all(|&byte| byte == number as u8 + 1));
        }
        drop(taken);
        assert_eq!(pool.free_count(), 3);
        assert_eq!(pool.peak_bytes(), 3 * 8192);
    }

    #[test]
    fn what_is_set_aside_is_nobodys_and_holds_no_memory() {
        const BYTES: usize = 4 << 20;
        let pool = Pool::new(4, BYTES).unwrap();
        let mut all: Vec<Buffer> = (0..4).map(|_| pool.take().unwrap()).collect();
        all.iter_mut().for_each(|buffer| buffer.fill(1));
        let kept = all.swap_remove(1);
        drop(all);
        let peak = pool.peak_bytes();
        let aside = pool.set_aside(2);
        let zeros = |buffer: &Buffer| buffer.iter().all(|&byte| byte == 0);
        assert!(aside.len() == 2 && aside.iter().all(zeros));
        assert!(kept.iter().all(|&byte| byte == 1));
        let last = pool.take().unwrap();
        assert!(pool.try_take().is_none() && pool.set_aside(1).is_empty());
        drop((aside, last));
        assert_eq!((pool.free_count(), pool.set_aside(9).len()), (3, 3));
        assert_eq!(pool.peak_bytes(), peak);
    }

    /// Many pools of a job come and go, and all may have to be closed until it ends.
    #[test]
    fn what_closes_a_pool_holds_none_of_its_memory() {
        let pool = Pool::new(1, 4096).unwrap();
        let closers = [pool.closer(), pool.closer()];
        assert_eq!(Arc::strong_count(&pool.shared), 1);
        closers[0]();
        assert!(pool.take().is_none());
        drop(pool);
        closers[1]();
    }

    #[test]
    fn a_closed_pool_ends_the_wait() {
        let pool = Pool::new(1, 4096).unwrap();
        let held = pool.take().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take().is_none());
            pool.close();
            assert!(waiting.join().unwrap());
        });
        drop(held);
    }

    #[test]
    fn a_table_is_zeroed_and_writable() {
        let mut table = Table::<u128>::new(1 << 18).unwrap();
        assert!(table.iter().all(|&value| value == 0));
        table[(1 << 18) - 1] = u128::MAX;
        assert_eq!(table[(1 << 18) - 1], u128::MAX);
    }
}
