//! A program that makes something of what it reads: started, fed, read and waited for, all at once.
//!
//! In come its words and all it is to read, out come all it wrote, the end of what it said on standard error, and how it
//! ended. It is the first of a process group, which is killed when anything goes wrong, and it is killed by the system when
//! the thread that started it has died (prctl(2), `PR_SET_PDEATHSIG`), so that no error leaves it behind.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};

use crate::process::{Ending, pause};

/// So much of what a program says on standard error is kept, its end.
const SAID_BYTES: usize = 4 << 10;

/// So often it is looked whether to go on.
const LOOK_NS: u32 = 50_000_000;

/// What a program did.
#[derive(Debug)]
pub struct Filtered {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote.
    pub made: Vec<u8>,
    /// The end of what it said on standard error.
    pub said: Vec<u8>,
}

/// Why a program was not let go on.
#[derive(Debug)]
pub enum Refused {
    /// It took too long.
    Late,
    /// It wrote too much.
    Long,
    /// Nobody wants it any more.
    Stopped,
    /// The system's.
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Has the program `words[0]` read `given`. It may write at most `made_bytes_max` bytes and take `limit`; `stopped` is asked
/// several times a second.
///
/// # Errors
/// [`Refused`], when the program has been killed or could not be started.
///
/// # Panics
/// When there are no words.
pub fn filter(
    words: &[OsString],
    given: &[u8],
    made_bytes_max: usize,
    limit: Option<Duration>,
    stopped: &dyn Fn() -> bool,
) -> Result<Filtered, Refused> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    crate::signals::hear_of_children();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let dies_too = || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    };
    // SAFETY: between fork and exec it makes one system call and touches no memory of other threads.
    unsafe { command.pre_exec(dies_too) };
    let mut running = Running(command.spawn()?);
    let mut filtered = Filtered {
        ending: Ending::Killed,
        made: Vec::new(),
        said: Vec::new(),
    };
    running.talk(given, &mut filtered, made_bytes_max, &|| match deadline
        .is_some_and(|deadline| Instant::now() >= deadline)
    {
        true => Err(Refused::Late),
        false if stopped() => Err(Refused::Stopped),
        false => Ok(()),
    })?;
    Ok(filtered)
}

/// A program at work; dropping it kills it and whatever it has started in its group.
struct Running(Child);

impl Running {
    fn talk(
        &mut self,
        mut given: &[u8],
        filtered: &mut Filtered,
        made_bytes_max: usize,
        go_on: &dyn Fn() -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut to = self.0.stdin.take();
        let mut from = self.0.stdout.take();
        let mut saying = self.0.stderr.take();
        if let Some(to) = &to {
            rustix::io::ioctl_fionbio(to, true).map_err(io::Error::from)?;
        }
        let mut buffer = vec![0; 64 << 10];
        while from.is_some() || saying.is_some() {
            go_on()?;
            if given.is_empty() {
                to = None;
            }
            let mut polled = Vec::with_capacity(3);
            polled.extend(to.as_ref().map(|to| PollFd::new(to, PollFlags::OUT)));
            polled.extend(from.as_ref().map(|from| PollFd::new(from, PollFlags::IN)));
            polled.extend(saying.as_ref().map(|from| PollFd::new(from, PollFlags::IN)));
            let wait = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(LOOK_NS),
            };
            match rustix::event::poll(&mut polled, Some(&wait)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let is_ready: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
            let mut is_ready = is_ready.into_iter();
            drop(polled);
            if let Some(pipe) = &mut to
                && is_ready.next() == Some(true)
            {
                match pipe.write(given) {
                    Ok(moved) => given = &given[moved..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // It has read all it wants.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => given = &[],
                    Err(error) => return Err(error.into()),
                }
            }
            if let Some(pipe) = &mut from
                && is_ready.next() == Some(true)
            {
                let moved = pipe.read(&mut buffer)?;
                filtered.made.extend_from_slice(&buffer[..moved]);
                if filtered.made.len() > made_bytes_max {
                    return Err(Refused::Long);
                }
                if moved == 0 {
                    from = None;
                }
            }
            if let Some(pipe) = &mut saying
                && is_ready.next() == Some(true)
            {
                let moved = pipe.read(&mut buffer)?;
                let said = &mut filtered.said;
                said.extend_from_slice(&buffer[..moved]);
                said.drain(..said.len().saturating_sub(SAID_BYTES));
                if moved == 0 {
                    saying = None;
                }
            }
        }
        drop(to);
        loop {
            if let Some(status) = self.0.try_wait()? {
                let signal = status.signal().map(Ending::Signal);
                filtered.ending = signal.unwrap_or(Ending::Exited(status.code().unwrap_or(-1)));
                return Ok(());
            }
            go_on()?;
            pause(1_000_000);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            if let Some(group) = Pid::from_raw(self.0.id() as i32) {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(words: &str, given: &[u8], limit: Option<Duration>) -> Result<Filtered, Refused> {
        let words = ["sh", "-c", words].map(OsString::from);
        filter(&words, given, 1 << 20, limit, &|| false)
    }

    #[test]
    fn more_than_a_pipe_holds_goes_through() {
        let given: Vec<u8> = (0..900_000u32).map(|number| number as u8).collect();
        let done = sh("cat; echo so >&2; exit 3", &given, None).unwrap();
        assert!(done.made == given);
        assert_eq!(
            (done.ending, &done.said[..]),
            (Ending::Exited(3), &b"so\n"[..])
        );
        // One that does not read all.
        let done = sh("head -c 5", &given, None).unwrap();
        assert_eq!(
            (done.ending, &done.made[..]),
            (Ending::Exited(0), &given[..5])
        );
        let done = sh("kill -9 $$", b"", None).unwrap();
        assert_eq!(done.ending, Ending::Signal(9));
        let done = sh("yes said | head -n 9000 >&2; echo end >&2", b"", None).unwrap();
        assert_eq!(done.said.len(), SAID_BYTES);
        assert!(done.said.ends_with(b"said\nend\n"));
    }

    #[test]
    fn what_goes_on_too_long_is_killed() {
        let limit = Some(Duration::from_millis(50));
        assert!(matches!(
            sh("sleep 1000 | cat", b"", limit),
            Err(Refused::Late)
        ));
        assert!(matches!(sh("yes", b"", None), Err(Refused::Long)));
        let words = ["sleep", "1000"].map(OsString::from);
        let stopped = filter(&words, b"", 1, None, &|| true);
        assert!(matches!(stopped, Err(Refused::Stopped)));
        let none = filter(&[OsString::from("/no/program")], b"", 1, None, &|| false);
        assert!(matches!(none, Err(Refused::Io(error)) if error.kind() == io::ErrorKind::NotFound));
    }
}
