//! `sortmill node`: what `sort --on` starts. Nobody else has a use for it.

use std::process::ExitCode;

use clap::Args;
use sortmill::error::Result;
use sortmill::run;

use crate::common::Machine;
use crate::signals::stop_on_signals;

/// Take part in a job of `sort --on`, which starts it and talks to it through standard input and output
#[derive(Args)]
pub struct Node {
    #[command(flatten)]
    machine: Machine,
}

impl Node {
    /// Runs the command. Its errors are told by the coordinator.
    pub fn run(self) -> Result<ExitCode> {
        let os = self.machine.open()?;
        let stop = stop_on_signals();
        Ok(match run::node(&os, &stop) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        })
    }
}
