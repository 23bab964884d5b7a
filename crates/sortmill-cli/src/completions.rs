//! `sortmill completions`: what a shell needs to complete our words, made from the table of flags.

use std::process::ExitCode;

use clap::Args;
use clap_complete::{Shell, generate};
use sortmill::error::Result;

use crate::common::print;

/// Print the completions for a shell, to be kept where it looks for them (`make install` does)
#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Runs the command. `table` is that of all commands.
    pub fn run(self, mut table: clap::Command) -> Result<ExitCode> {
        let mut text = Vec::new();
        generate(self.shell, &mut table, "sortmill", &mut text);
        print(&String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}
