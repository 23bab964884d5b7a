//! Processes of ours: started with a pipe each way, ended, waited for.
//!
//! In come a program and its words, out come its two pipes as streams and a [`Child`] that owns the process:
//! dropping it kills what still runs, so that no error leaves a process behind. The pipes' ends on our side are
//! closed when another program is executed, so no process holds those of its sister.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::host::stream;
use crate::os::File;

/// A process and the pipes to and from it.
pub struct Started {
    /// The process.
    pub child: Child,
    /// What it reads as its standard input. Dropping it is how it is told to end.
    pub to: File,
    /// What it writes to its standard output; ends when it ends.
    pub from: File,
}

/// Starts `program` with `words`, called `name` in messages and, where it must not see its own, `called` in lists of
/// processes. Its standard error is ours.
///
/// # Errors
/// The system's, when the program cannot be started.
pub fn start(
    program: &Path,
    called: Option<&str>,
    words: &[OsString],
    name: &str,
) -> io::Result<Started> {
    crate::signals::hear_of_children();
    let called = called.map_or(program.as_os_str(), OsStr::new);
    let mut child = Command::new(program)
        .arg0(called)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let to = OwnedFd::from(child.stdin.take().expect("it was asked for"));
    let from = OwnedFd::from(child.stdout.take().expect("it was asked for"));
    Ok(Started {
        child: Child { child },
        to: stream(to, name),
        from: stream(from, name),
    })
}

/// Does nothing for so many nanoseconds.
pub fn pause(ns: u32) {
    let pause = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(ns.min(999_999_999)),
    };
    let _ = rustix::event::poll(&mut [], Some(&pause));
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal that somebody else sent, or that its own fault caused.
    Signal(i32),
    /// It did not end in time and was killed by its owner.
    Killed,
}

/// A process of ours. Dropping it kills it, if it still runs.
pub struct Child {
    child: std::process::Child,
}

impl Child {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended, and kills it after `patience_ns` nanoseconds.
    ///
    /// # Errors
    /// The system's.
    pub fn end(&mut self, patience_ns: u64) -> io::Result<Ending> {
        let deadline = Instant::now() + Duration::from_nanos(patience_ns);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                let signal = status.signal().map(Ending::Signal);
                return Ok(signal.unwrap_or(Ending::Exited(status.code().unwrap_or(-1))));
            }
            pause(2_000_000);
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(Ending::Killed)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Of a process that was waited for nothing is left to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
