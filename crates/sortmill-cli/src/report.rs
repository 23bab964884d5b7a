//! `sortmill report`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sortmill::compare::compare;
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::report::DryRun;

use crate::common::print;

/// Print a report, or the plan of a dry run, that `sort --report FILE` wrote; or what changed from a report to another
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
        let told = read(&self.file)?;
        let text = match (&self.other, serde_json::from_str::<DryRun>(&told)) {
            (None, Ok(plan)) => plan.lines(),
            (None, Err(_)) => {
                let report = report(&self.file, &told)?;
                let before = report.before.as_ref();
                let before =
                    before.map_or_else(String::new, |before| before.details() + "\nthen\n\n");
                before + &report.details()
            }
            (Some(other), _) => {
                let after = report(other, &read(other)?)?;
                compare(&report(&self.file, &told)?, &after)
            }
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|error| wrong(file, error.to_string()))
}

fn report(file: &Path, told: &str) -> Result<sortmill::report::Report> {
    serde_json::from_str(told).map_err(|error| wrong(file, error.to_string()))
}

fn wrong(file: &Path, cause: String) -> Error {
    Error::new(ErrorKind::Input, "reading the report", cause).at(file)
}
