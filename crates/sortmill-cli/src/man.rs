//! `sortmill man`: the man pages, one for each command, made from the table of flags.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sortmill::error::{Error, Result};

/// Write the man pages to a folder (`make install` does)
#[derive(Args)]
pub struct Man {
    /// The folder, which is there already: .../share/man/man1
    folder: PathBuf,
}

impl Man {
    /// Runs the command. `table` is that of all commands.
    pub fn run(self, table: clap::Command) -> Result<ExitCode> {
        clap_mangen::generate_to(table, &self.folder)
            .map_err(|error| Error::io("writing the man pages", &self.folder, &error))?;
        Ok(ExitCode::SUCCESS)
    }
}
