//! What is told of a job that merged sorted inputs.

use serde::{Deserialize, Serialize};

use crate::text;

/// How sorted inputs were merged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Merged {
    /// Inputs: streams, and files that were not empty.
    pub inputs: u64,
    /// The most that were merged at once, runs among them.
    pub fan_in: u64,
    /// Runs that some of them were merged into before the rest.
    pub runs: u64,
    /// How often a record was read at most.
    pub passes: u32,
    /// Records that came out behind one that belongs behind them: of inputs that were not in order, where that is
    /// allowed.
    #[serde(default)]
    pub breaks: u64,
}

impl Merged {
    /// In a few words.
    pub(super) fn words(&self) -> String {
        let inputs = match self.inputs {
            1 => "1 input".to_owned(),
            count => format!("{} inputs", text::count(count)),
        };
        let breaks = match self.breaks {
            0 => String::new(),
            1 => ", not in order at 1 place".to_owned(),
            count => format!(", not in order at {} places", text::count(count)),
        };
        if self.runs == 0 {
            return format!("{inputs}, merged at once{breaks}");
        }
        let runs = match self.runs {
            1 => "1 run".to_owned(),
            count => format!("{} runs", text::count(count)),
        };
        let most = text::count(self.fan_in);
        format!("{inputs}, at most {most} merged at once, with {runs}{breaks}")
    }
}
