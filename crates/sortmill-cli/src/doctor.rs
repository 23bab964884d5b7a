//! `sortmill doctor`: facts from the machine, judged by the engine, in words for people or as JSON.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sortmill::doctor::{Examination, Facts, Finding, Folder, Level, Section, examine};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::survey::Survey;
use sortmill::io::{Host, RingKind};
use sortmill::job::{Job, Output};
use sortmill::order::Format;
use sortmill::run;

use crate::common::{note, print};

/// Tell what this machine offers, and what to do about each shortcoming
///
/// Looks at the machine, its memory, and the folders that `sort` with the same --temp and --output would write
/// to, and at those named; what is bad comes first. Nothing is changed: 64 MiB of memory are touched, and in
/// each folder a file of 64 KiB is written and removed.
///
/// Exit status: 0 unless something is bad, that is, a job fails by it, it defeats the purpose, or data are at
/// risk; then 2. What only costs time could be better, and is no reason for 2.
#[derive(Args)]
pub struct Doctor {
    /// Folders to look at besides. Default: the current one
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,

    /// Folder for temporary files, or several, each with a --temp of its own. Default: as `sort` chooses it
    #[arg(short = 'T', long, value_name = "DIR")]
    temp: Vec<PathBuf>,

    /// The output: whether it shares a disk with temporary files
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let survey = Survey::here();
        let examination = examine(&Facts {
            machine: survey.machine(),
            memory: survey.memory(),
            folders: self.look_at_folders(&survey)?,
        });
        let text = match self.json {
            true => examination.to_json(),
            false => words(&examination),
        };
        print(&text)?;
        let bad = bad_words(&examination);
        if bad.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        note(&format!("bad: {}", bad.join("; ")));
        Ok(ExitCode::from(2))
    }

    /// The folders of a job, then those named, each once.
    fn look_at_folders(&self, survey: &Survey) -> Result<Vec<Folder>> {
        let os = Host::new(RingKind::Posix, true).map_err(|error| {
            Error::new(ErrorKind::Io, "looking at the machine", error.to_string())
        })?;
        let output = match &self.output {
            Some(path) if path.as_os_str() != "-" => Output::Path(path.clone()),
            _ => Output::Stdout,
        };
        let mut job = Job::new(Vec::new(), output, Format::Lines);
        job.temps.clone_from(&self.temp);
        let job = run::folders(&job, &os)?;
        let mut found: Vec<Folder> = Vec::new();
        let mut look_at = |path: &Path, is_temp: bool, is_output: bool| {
            let same = |folder: &&mut Folder| {
                let resolved = folder.facts.resolved.as_ref();
                folder.facts.path == path
                    || resolved
                        .is_ok_and(|known| path.canonicalize().is_ok_and(|path| path == *known))
            };
            match found.iter_mut().find(same) {
                Some(folder) => {
                    folder.is_temp |= is_temp;
                    folder.is_output |= is_output;
                }
                None => found.push(Folder {
                    facts: survey.folder(path),
                    is_temp,
                    is_output,
                }),
            }
        };
        for temp in &job.temps {
            look_at(temp, true, false);
        }
        if let Some(output) = &job.output {
            look_at(output, false, true);
        }
        if self.folders.is_empty() {
            look_at(Path::new("."), false, false);
        }
        for folder in &self.folders {
            look_at(folder, false, false);
        }
        Ok(found)
    }
}

/// What is bad, and where.
fn bad_words(examination: &Examination) -> Vec<String> {
    let mut bad = Vec::new();
    for section in &examination.sections {
        for finding in &section.findings {
            let about = finding.about;
            match (&section.path, finding.level) {
                (Some(path), Level::Bad) => bad.push(format!("{about} of {}", path.display())),
                (None, Level::Bad) => bad.push(about.to_owned()),
                (_, Level::CouldBeBetter | Level::NotKnown | Level::Good) => {}
            }
        }
    }
    bad
}

fn words(examination: &Examination) -> String {
    let sections: Vec<String> = examination.sections.iter().map(section_words).collect();
    sections.join("\n")
}

fn section_words(section: &Section) -> String {
    let mut out = match &section.path {
        Some(path) => format!("{} {}", section.name, path.display()),
        None => section.name.to_owned(),
    };
    if !section.uses.is_empty() {
        let _ = write!(out, " ({})", section.uses.join(", "));
    }
    out.push('\n');
    for finding in &section.findings {
        finding_words(finding, &mut out);
    }
    out
}

fn finding_words(finding: &Finding, out: &mut String) {
    const WIDTH: usize = 19;
    let level = match finding.level {
        Level::Bad => "BAD",
        Level::CouldBeBetter => "could be better",
        Level::NotKnown => "not known",
        Level::Good => "good",
    };
    let first = format!("{}: {}", finding.about, finding.found);
    let rest = [finding.means.as_str()]
        .into_iter()
        .chain(finding.advice.as_deref());
    let mut label = format!("  {level}");
    for text in [first.as_str()].into_iter().chain(rest) {
        for line in wrapped(text, 100 - WIDTH) {
            let _ = writeln!(out, "{label:<WIDTH$}{line}");
            label.clear();
        }
    }
    if let Some(command) = &finding.command {
        // Whole, however long: it is to be copied.
        let _ = writeln!(out, "{:<WIDTH$}$ {command}", "");
    }
}

/// `text` in lines of at most `width` characters, as far as its words allow it.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
