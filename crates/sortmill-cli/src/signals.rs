//! Signals that end a process, which end a job cleanly first; another one a while later ends the process at once. What
//! the caller ignores stays ignored.
//!
//! A thread that waits for them takes longer to come and go than a few lines take to sort. So they are only noted at
//! first, where the job's switch looks whenever somebody asks it. Before a job has threads that wait for each other, one
//! more begins to wait, and throws the switch for all of them at once.
//!
//! When the job is over and has told why, the process ends by the same signal ([`end_by_what_came`]): a shell that runs it
//! in a loop sees in the status that Ctrl-C was meant for the loop, too.

use std::sync::Once;

use sortmill::io::signals;
use sortmill::queue::Stop;

/// What throws a job's switch.
pub struct Signals {
    stop: Stop,
    watching: Once,
}

impl Signals {
    /// Signals are noted from now on.
    pub fn note() -> Self {
        signals::note();
        Self {
            stop: Stop::told_by(|| signals::noted().is_some()),
            watching: Once::new(),
        }
    }

    /// The switch, for one thread that asks it as often as it waits.
    pub fn noted(&self) -> &Stop {
        &self.stop
    }

    /// The switch, which is thrown from now on without being asked.
    pub fn watched(&self) -> &Stop {
        self.watching.call_once(|| {
            let stop = self.stop.clone();
            // Where there can be no thread and no pipe, it is still asked.
            let _ = std::thread::Builder::new().spawn(move || {
                if signals::wait().is_ok() {
                    stop.interrupt();
                }
            });
        });
        &self.stop
    }
}

/// A switch that signals throw.
pub fn stop_on_signals() -> Stop {
    Signals::note().watched().clone()
}

/// Ends the process by the signal that ended its job, if one did.
pub fn end_by_what_came() {
    if let Some(signal) = signals::noted() {
        signals::end_by(signal);
    }
}
