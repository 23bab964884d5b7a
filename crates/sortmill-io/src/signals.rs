//! Signals that end a process, noted so that it can take away what it has made, and then end by the same signal.
//!
//! [`note`] has them noted, but for those that the caller ignores: a job in the background of a script is not to end by
//! Ctrl-C. What comes is one number, [`noted`], which is asked for, and one thread may wait for it ([`wait`]). Another
//! signal a while later ends the process at once; the same told twice in a row, as `timeout` and closed terminals do,
//! is one. Signals belong to the process, and so does what is kept of them here. When all is taken away, [`end_by`]
//! lets the signal do what it would have done, so that the caller sees it in the status.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use libc::c_int;

/// What ends a process unless it does something about it. GNU sort takes its files away on the same, but for USR1 and USR2, which
/// batch systems send before they kill.
const ENDING: [c_int; 13] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGIO,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// A write to a pipe that nobody reads.
pub const PIPE: c_int = libc::SIGPIPE;

/// What comes within so many nanoseconds of the first tells nothing new.
const ONE_NS: u64 = 500_000_000;

/// The first that came; 0 before it has.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// When it came, by the clock that never goes back.
static FIRST_NS: AtomicU64 = AtomicU64::new(0);

/// Where the first one is told, for who waits; -1 where nobody does.
static TOLD: AtomicI32 = AtomicI32::new(-1);

/// Has signals noted from now on that would end this process.
pub fn note() {
    for signal in ENDING {
        // The start of a program ignores this one.
        let ignored = match signal == libc::SIGPIPE {
            true => crate::caller::ignores_pipe(),
            false => is_ignored(signal),
        };
        if !ignored {
            // SAFETY: a sigaction of zeros is a valid one: no flags, an empty mask.
            let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
            let arrived: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) = arrived;
            action.sa_sigaction = arrived as usize;
            // Calls that wait go on.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: `action` is whole, and its function does only what is allowed in a signal's handler.
            unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
    }
}

/// The first signal that came since [`note`].
#[must_use]
pub fn noted() -> Option<c_int> {
    Some(FIRST.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// Waits for the first signal. To be called by one thread, once.
///
/// # Errors
/// The system's, when there can be no pipe.
pub fn wait() -> io::Result<c_int> {
    let (mut from, to) = io::pipe()?;
    // What handles a signal must find it open whenever that is: it stays so until the process ends.
    TOLD.store(to.into_raw_fd(), Ordering::SeqCst);
    loop {
        if let Some(signal) = noted() {
            return Ok(signal);
        }
        match from.read(&mut [0]) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Ends this process by `signal`, as if nobody had done anything about it.
pub fn end_by(signal: c_int) {
    let_it_end(signal);
    // SAFETY: it sends the signal to this very thread, and touches no memory.
    unsafe { libc::raise(signal) };
}

/// Has the system keep how the processes ended that this one starts: of a caller that ignores SIGCHLD it would not, and GNU sort
/// does the same.
pub(crate) fn hear_of_children() {
    if is_ignored(libc::SIGCHLD) {
        // SAFETY: a sigaction of zeros is a valid one: what the system does by itself, no flags, an empty mask.
        unsafe {
            let action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(libc::SIGCHLD, &action, ptr::null_mut());
        }
    }
}

/// Whether the caller, or this process, has `signal` ignored.
pub(crate) fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed; what is there is written to `action`, which has room for it.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: it has been written, or is zeros, which are valid too.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// From now on `signal` ends the process, in this thread too.
fn let_it_end(signal: c_int) {
    // SAFETY: zeros are a valid sigaction, and the default one; the set is made empty before a signal is added. Both calls
    // are allowed in a signal's handler, and read nothing but their arguments.
    unsafe {
        let action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, &action, ptr::null_mut());
        let mut set = MaybeUninit::zeroed();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
}

/// What a signal calls, in the midst of anything: it may call little, and keeps what the calls change.
extern "C" fn arrived(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a whole siginfo_t, of a signal that has a sender's number or zero in its place.
    let sender = unsafe { (*info).si_pid() };
    // SAFETY: it takes nothing and cannot fail.
    if signal == libc::SIGPIPE && sender == unsafe { libc::getpid() } {
        // A write to a pipe without a reader, which fails: whoever wrote knows which pipe it is.
        return;
    }
    let now_ns = now_ns();
    match FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {
            FIRST_NS.store(now_ns, Ordering::SeqCst);
            let told = TOLD.load(Ordering::SeqCst);
            if told != -1 {
                // SAFETY: it is open, and never closed.
                let told = unsafe { BorrowedFd::borrow_raw(told) };
                // The call may be made here. The pipe has room for one byte, and nobody writes a second one.
                let _ = rustix::io::write(told, &[1]);
            }
        }
        Err(_) => {
            // Of one that came this moment the time is not there yet. And the kernel tells again and again of limits.
            let first_ns = FIRST_NS.load(Ordering::SeqCst);
            let is_another = first_ns != 0 && now_ns.saturating_sub(first_ns) > ONE_NS;
            if is_another && !matches!(signal, libc::SIGXCPU | libc::SIGXFSZ) {
                end_by(signal);
            }
        }
    }
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
