//! `sortmill report`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sortmill::error::{Error, ErrorKind, Result};

use crate::common::print;

/// Print a report that `sort --report FILE` wrote
#[derive(Args)]
pub struct Report {
    /// The report file
    file: PathBuf,
}

impl Report {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let wrong = |cause: String| {
            Error::new(ErrorKind::Input, "reading the report", cause).at(&self.file)
        };
        let text = std::fs::read_to_string(&self.file).map_err(|error| wrong(error.to_string()))?;
        let report: sortmill::report::Report =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        print(&report.details())?;
        Ok(ExitCode::SUCCESS)
    }
}
