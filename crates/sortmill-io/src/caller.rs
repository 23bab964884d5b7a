//! What this process was started with, and how its program begins: with the `main` that the C library calls, and without
//! the start that Rust puts in front of another.
//!
//! That one opens `/dev/null` in the place of a standard stream that the caller has closed, and ignores SIGPIPE. Both hide
//! what was there: records that go to a closed standard output would be gone without a word. It also asks for the stack of
//! the main thread, which the C library reads out of a text of the kernel's, and sees to it that an overflow of that is told
//! in words, which a sort of a few lines notices (docs/drop-in.md, Measured). So [`crate::main`] begins by itself. It
//! takes the places of closed streams by what cannot be read, or cannot be written, so that whoever uses one gets
//! the error that it is (gnulib's `stdopen` does the same for GNU's programs). A library in another program, as Python's
//! module is, has nothing to take and does not look.

use std::ffi::{CStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStringExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a broken pipe, or anybody, may end this process by SIGPIPE.
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

/// Whether the caller had SIGPIPE ignored; `false` where nobody looked.
#[must_use]
pub fn ignores_pipe() -> bool {
    IGNORES_PIPE.load(Ordering::Relaxed)
}

/// Looks, has a write to a broken pipe be an error, does what `run` does with the words of the command line, and ends the
/// process with the exit code that it answers, 101 after a panic.
///
/// # Safety
/// `words` are `count` pointers to strings that end in NUL, as the C library has them for `main`.
#[doc(hidden)]
pub unsafe fn start(count: c_int, words: *const *const c_char, run: fn(Vec<OsString>) -> u8) -> ! {
    look();
    // SAFETY: to ignore a signal needs no function that could do anything.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let word = |number| {
        // SAFETY: the caller vouches for so many words.
        let word = unsafe { CStr::from_ptr(*words.add(number)) };
        OsString::from_vec(word.to_bytes().to_vec())
    };
    let words = (0..usize::try_from(count).unwrap_or(0)).map(word).collect();
    // No panic may leave a function of C's; its words have been written.
    let code = std::panic::catch_unwind(|| run(words)).unwrap_or(101);
    std::process::exit(code.into())
}

fn look() {
    // In this order: what is opened gets the lowest number that is free.
    let closed = [
        (0, c"/dev/null", libc::O_WRONLY),
        // Opened anew by a name, as `/dev/stdout`, it is still full.
        (1, c"/dev/full", libc::O_RDONLY),
        (2, c"/dev/full", libc::O_RDONLY),
    ];
    for (number, path, mode) in closed {
        // SAFETY: it asks for flags, and neither takes nor changes memory.
        let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } != -1;
        if !is_open {
            // SAFETY: the path is a constant that ends in NUL. The place that it takes belongs to nobody.
            let opened = unsafe { libc::open(path.as_ptr(), mode) };
            if opened == -1 && mode == libc::O_RDONLY {
                // There is no such device. This cannot be written to, either.
                // SAFETY: as above.
                unsafe { libc::open(c"/dev/null".as_ptr(), mode) };
            }
        }
    }
    IGNORES_PIPE.store(crate::signals::is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// The `main` of a program whose function `fn(Vec<OsString>) -> u8` does what the words of the command line say and answers
/// the exit code. To stand once in its `main.rs`, beside `#![no_main]`.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        /// Where the C library begins.
        ///
        /// # Safety
        /// `words` are `count` strings that end in NUL.
        // SAFETY: no other function has this name where Rust makes none.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn main(
            count: std::ffi::c_int,
            words: *const *const std::ffi::c_char,
        ) -> std::ffi::c_int {
            // SAFETY: they are what the C library calls this with.
            unsafe { $crate::caller::start(count, words, $run) }
        }
    };
}
