//! `sortmill report`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sortmill::compare::compare;
use sortmill::error::{Error, ErrorKind, Result};

use crate::common::print;

/// Print a report that `sort --report FILE` wrote, or what changed from one to another
#[derive(Args)]
pub struct Report {
    /// The report file
    file: PathBuf,

    /// Another one: prints what changed from the first to this one, most first
    other: Option<PathBuf>,
}

impl Report {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let report = read(&self.file)?;
        let text = match &self.other {
            None => report.details(),
            Some(other) => compare(&report, &read(other)?),
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read(file: &Path) -> Result<sortmill::report::Report> {
    let wrong = |cause: String| Error::new(ErrorKind::Input, "reading the report", cause).at(file);
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}
