//! What the machine's facts mean for sorting, and what to do about each shortcoming. Pure: [`Facts`] in,
//! an [`Examination`] out.
//!
//! `bad` is kept for what a job fails by, what defeats its purpose or what puts data at risk; what costs
//! time only could be better. What could not be learnt is a finding too, with the reason.

mod device;
mod folder;
mod machine;
mod memory;

use std::path::PathBuf;

use serde::Serialize;
use sortmill_io::facts::{FolderFacts, MachineFacts, MemoryFacts};

/// Everything that was learnt.
pub struct Facts {
    /// Kernel, processors, cards, limits.
    pub machine: MachineFacts,
    /// Memory.
    pub memory: MemoryFacts,
    /// Folders, each once.
    pub folders: Vec<Folder>,
}

/// A folder and what a job would use it for.
pub struct Folder {
    /// What it offers.
    pub facts: FolderFacts,
    /// Whether temporary files go there.
    pub is_temp: bool,
    /// Whether the output goes there.
    pub is_output: bool,
}

/// All findings.
#[derive(Debug, Serialize)]
pub struct Examination {
    /// Of this form; 1.
    pub version: u32,
    /// The machine, its memory, and each folder.
    pub sections: Vec<Section>,
}

/// Findings about one thing, the worst first.
#[derive(Debug, Serialize)]
pub struct Section {
    /// `machine`, `memory` or `folder`.
    pub name: &'static str,
    /// The folder, without symlinks if it is there.
    #[serde(serialize_with = "as_text")]
    pub path: Option<PathBuf>,
    /// What a job would use the folder for: `temporary files`, `output`.
    pub uses: Vec<&'static str>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// How good something is; the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A job fails by it, it defeats the purpose, or data are at risk.
    Bad,
    /// It costs time.
    CouldBeBetter,
    /// It could not be learnt.
    NotKnown,
    /// Nothing to do.
    Good,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What was looked at; the same word for it always.
    pub about: &'static str,
    /// How good it is.
    pub level: Level,
    /// What it is.
    pub found: String,
    /// What that means for sorting; empty where there is nothing to say.
    pub means: String,
    /// What to do about it, in words.
    pub advice: Option<String>,
    /// What to do about it, as a command.
    pub command: Option<String>,
}

/// Judges everything.
#[must_use]
pub fn examine(facts: &Facts) -> Examination {
    let mut sections = vec![
        section("machine", machine::findings(&facts.machine)),
        section("memory", memory::findings(&facts.memory)),
    ];
    let output = facts.folders.iter().find(|folder| folder.is_output);
    for folder in &facts.folders {
        let mut found = folder::findings(folder, &facts.machine);
        if let Some(output) = output.filter(|_| folder.is_temp) {
            found.push(folder::shared_device(&folder.facts, &output.facts));
        }
        let temps = facts.folders.iter().filter(|other| other.is_temp);
        let others = temps.filter(|other| !std::ptr::eq(*other, folder));
        found.extend(folder::shared_temps(folder, others));
        let uses = [
            (folder.is_temp, "temporary files"),
            (folder.is_output, "output"),
        ];
        sections.push(Section {
            path: Some(
                folder
                    .facts
                    .resolved
                    .as_ref()
                    .unwrap_or(&folder.facts.path)
                    .clone(),
            ),
            uses: uses
                .into_iter()
                .filter_map(|(is_used, name)| is_used.then_some(name))
                .collect(),
            ..section("folder", found)
        });
    }
    Examination {
        version: 1,
        sections,
    }
}

/// Names need not be text: of one that is none, what can be read.
fn as_text<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| path.to_string_lossy())
        .serialize(to)
}

impl Examination {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("an examination is data");
        text.push('\n');
        text
    }
}

fn section(name: &'static str, mut findings: Vec<Finding>) -> Section {
    findings.sort_by_key(|finding| finding.level);
    Section {
        name,
        path: None,
        uses: Vec::new(),
        findings,
    }
}

impl Finding {
    fn new(about: &'static str, level: Level, found: impl Into<String>) -> Self {
        Self {
            about,
            level,
            found: found.into(),
            means: String::new(),
            advice: None,
            command: None,
        }
    }

    fn good(about: &'static str, found: impl Into<String>) -> Self {
        Self::new(about, Level::Good, found)
    }

    fn better(about: &'static str, found: impl Into<String>) -> Self {
        Self::new(about, Level::CouldBeBetter, found)
    }

    fn bad(about: &'static str, found: impl Into<String>) -> Self {
        Self::new(about, Level::Bad, found)
    }

    fn unknown(about: &'static str, why: impl Into<String>) -> Self {
        Self::new(about, Level::NotKnown, why)
    }

    fn means(mut self, means: impl Into<String>) -> Self {
        self.means = means.into();
        self
    }

    fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}
