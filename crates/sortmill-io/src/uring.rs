//! The ring over io_uring: what the engine uses where the kernel allows it.
//!
//! Each [`UringRing`] belongs to one thread, so submission needs no lock. An [`Op`] stays in its slot,
//! and its buffer with it, until the kernel has completed it: memory the kernel may write to is never
//! anybody else's. Several requests in flight are what flash needs (CD 2.3.2).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode, types};

use crate::os::{Done, Handle, Next, Op, OpKind, Ring, after_transfer};

pub struct UringRing {
    ring: IoUring,
    slots: Vec<Option<Slot>>,
    finished: Vec<Done>,
    in_flight: usize,
}

struct Slot {
    op: Op,
    /// The descriptor of a file that has none of its own, open as long as the kernel may use it.
    parked: Option<Arc<OwnedFd>>,
    moved: usize,
}

impl UringRing {
    pub fn new(depth: usize) -> io::Result<Self> {
        let ring = IoUring::builder().build(u32::try_from(depth.max(1)).expect("a small depth"))?;
        Ok(Self {
            ring,
            slots: (0..depth).map(|_| None).collect(),
            finished: Vec::with_capacity(depth),
            in_flight: 0,
        })
    }

    /// Whether rings do here what they are asked: kernels before 5.6 have some without reads and writes, and sandboxes
    /// let one be made that may not be entered.
    ///
    /// # Errors
    /// The system's, or that the kernel knows no such request.
    pub fn tried() -> io::Result<()> {
        let mut ring: IoUring = IoUring::builder().build(1)?;
        let mut known = Probe::new();
        ring.submitter().register_probe(&mut known)?;
        if ![opcode::Read::CODE, opcode::Write::CODE]
            .iter()
            .all(|&code| known.is_supported(code))
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let nothing = opcode::Nop::new().build();
        // SAFETY: it refers to no memory and no file.
        unsafe { ring.submission().push(&nothing) }.expect("there is room for one");
        ring.submit_and_wait(1)?;
        Ok(())
    }

    /// Queues the not yet moved part of slot `index` for the kernel.
    fn push(&mut self, index: usize) {
        let slot = self.slots[index].as_mut().expect("the slot is taken");
        let from = slot.op.range.start + slot.moved;
        let bytes = u32::try_from(slot.op.range.end - from).expect("an op is below 4 GiB");
        let offset = slot.op.offset + slot.moved as u64;
        let fd = match (&slot.op.file.handle, slot.parked.as_deref()) {
            (Handle::Fd(fd), _) | (_, Some(fd)) => fd,
            _ => unreachable!("a simulated file is never given to the kernel"),
        };
        let fd = types::Fd(std::os::fd::AsRawFd::as_raw_fd(fd));
        let memory = &mut slot.op.buffer[from..];
        let entry = match slot.op.kind {
            OpKind::Read => opcode::Read::new(fd, memory.as_mut_ptr(), bytes)
                .offset(offset)
                .build(),
            OpKind::Write => opcode::Write::new(fd, memory.as_ptr(), bytes)
                .offset(offset)
                .build(),
        };
        let entry = entry.user_data(index as u64);
        // SAFETY: file and buffer stay in the slot, untouched, until this request's completion has been
        // seen; dropping the ring waits for all of them.
        unsafe { self.ring.submission().push(&entry) }
            .expect("no more ops in flight than the ring was made for");
    }

    /// Takes what the kernel has completed and starts the rest of what it moved in part.
    fn reap(&mut self) {
        loop {
            let Some(entry) = self.ring.completion().next() else {
                return;
            };
            let index = usize::try_from(entry.user_data()).expect("a slot number");
            let result = match entry.result() {
                error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
                moved => Ok(moved as usize),
            };
            let slot = self.slots[index].as_mut().expect("the slot is taken");
            let moved = result.as_ref().map_or(0, |moved| *moved);
            let result = match after_transfer(&slot.op, slot.moved, result) {
                Next::Rest => {
                    slot.moved += moved;
                    self.push(index);
                    self.start();
                    continue;
                }
                Next::Done(bytes) => Ok(bytes),
                Next::Fail(error) => Err(error),
            };
            let op = self.slots[index].take().expect("the slot is taken").op;
            self.finished.push(Done { op, result });
        }
    }
}

impl Ring for UringRing {
    fn submit(&mut self, op: Op) {
        self.line_up(op);
        self.start();
    }

    fn line_up(&mut self, op: Op) {
        let index = self
            .slots
            .iter()
            .position(Option::is_none)
            .expect("no more ops in flight than the ring was made for");
        self.in_flight += 1;
        let parked = match op.file.unpark() {
            Ok(parked) => parked,
            Err(error) => {
                let result = Err(error);
                self.finished.push(Done { op, result });
                return;
            }
        };
        self.slots[index] = Some(Slot {
            op,
            parked,
            moved: 0,
        });
        self.push(index);
    }

    /// What comes to the kernel in one call and lies side by side goes to the device as one request.
    fn start(&mut self) {
        if !self.ring.submission().is_empty() {
            // What is refused stays queued; the next call, at the latest the wait, submits it again.
            let _ = self.ring.submit();
        }
    }

    fn complete(&mut self, wait: bool) -> Option<Done> {
        self.start();
        loop {
            self.reap();
            if let Some(done) = self.finished.pop() {
                self.in_flight -= 1;
                return Some(done);
            }
            if !wait || self.in_flight == 0 {
                return None;
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
                    ) => {}
                // The kernel holds memory of ours and will not say when it is done with it.
                Err(error) => panic!("io_uring_enter cannot fail here: {error}"),
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl Drop for UringRing {
    fn drop(&mut self) {
        // Buffers must not go back to their pool while the kernel may still write to them.
        while self.in_flight > 0 {
            let _ = self.complete(true);
        }
    }
}
