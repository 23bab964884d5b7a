//! What this process was started with, seen before anything of it runs.
//!
//! Rust's start opens `/dev/null` in the place of a standard stream that the caller has closed, and ignores SIGPIPE. Both
//! hide what was there: records that go to a closed standard output would be gone without a word. So a program looks
//! before that, in a function that the C library calls on its way to `main`; [`crate::seen_before_main`] puts it there. It
//! takes the places of closed streams itself, by what cannot be read, or cannot be written, so that whoever uses one gets
//! the error that it is (gnulib's `stdopen` does the same for GNU's programs). A library in another program, as Python's
//! module is, has nothing to take and does not look.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a broken pipe, or anybody, may end this process by SIGPIPE.
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

/// Whether the caller had SIGPIPE ignored; `false` where nobody looked.
#[must_use]
pub fn ignores_pipe() -> bool {
    IGNORES_PIPE.load(Ordering::Relaxed)
}

/// Looks. To be called before the start of Rust's runtime, once, by [`crate::seen_before_main`].
#[doc(hidden)]
pub extern "C" fn look() {
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

/// Has a program look at what it was started with, before its `main`: to stand once beside that.
#[macro_export]
macro_rules! seen_before_main {
    () => {
        #[cfg(target_os = "linux")]
        #[used]
        // SAFETY: the C library calls each function whose address lies in this section, without a need for arguments.
        // What this one does needs nothing of Rust's runtime.
        #[unsafe(link_section = ".init_array")]
        static SEEN_BEFORE_MAIN: extern "C" fn() = $crate::caller::look;
    };
}
