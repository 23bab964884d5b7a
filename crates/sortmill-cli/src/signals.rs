//! SIGINT and SIGTERM, which end a job cleanly; a second one ends the process.
//!
//! A thread that watches for them takes longer to come and go than a few lines take to sort. So they are only noted at
//! first, in a flag that the job's switch looks at whenever somebody asks it. Before a job has threads that wait for each
//! other, one more begins to watch, and throws the switch for all of them at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{SigId, flag, iterator, low_level};
use sortmill::queue::Stop;

const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// What throws a job's switch.
pub struct Signals {
    stop: Stop,
    noting: Vec<SigId>,
    watching: Once,
}

impl Signals {
    /// Signals are noted from now on.
    pub fn note() -> Self {
        let has_come = Arc::new(AtomicBool::new(false));
        let mut noting = Vec::new();
        for signal in SIGNALS {
            // In this order, so that the second of two finds what the first one left.
            noting.extend(flag::register_conditional_default(
                signal,
                Arc::clone(&has_come),
            ));
            noting.extend(flag::register(signal, Arc::clone(&has_come)));
        }
        Self {
            stop: Stop::told_by(move || has_come.load(Ordering::SeqCst)),
            noting,
            watching: Once::new(),
        }
    }

    /// The switch, for one thread that asks it as often as it waits.
    pub fn noted(&self) -> &Stop {
        &self.stop
    }

    /// The switch, which is thrown from now on without being asked.
    pub fn watched(&self) -> &Stop {
        self.watching.call_once(|| self.watch());
        &self.stop
    }

    fn watch(&self) {
        let Ok(mut arrived) = iterator::Signals::new(SIGNALS) else {
            // They are still noted.
            return;
        };
        for id in &self.noting {
            low_level::unregister(*id);
        }
        // One that came before throws it now.
        let _ = self.stop.is_stopped();
        let stop = self.stop.clone();
        std::thread::spawn(move || {
            let mut count = 0;
            for signal in arrived.forever() {
                count += 1;
                stop.interrupt();
                if count > 1 {
                    let _ = low_level::emulate_default_handler(signal);
                }
            }
        });
    }
}

/// A switch that SIGINT and SIGTERM throw.
pub fn stop_on_signals() -> Stop {
    Signals::note().watched().clone()
}
