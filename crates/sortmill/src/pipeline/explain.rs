//! What a pipeline would do: its phases, and the plan of each.

use sortmill_io::Os;

use super::go::Means;
use super::{Pipeline, Settings};
use crate::chunks::Extent;
use crate::error::Result;
use crate::plan::{Inputs, Plan};
use crate::queue::Stop;
use crate::report::plan_lines;
use crate::{run, text};

impl Pipeline {
    /// What would be done: phases and their verbs, and the plan of each. How much comes out of a phase nobody knows before, so
    /// the one behind it is planned for as much as the phase brings together, as far as that can be foreseen.
    ///
    /// # Errors
    /// As [`Pipeline::run`], as far as that shows before.
    pub fn explain(&self, settings: &Settings, os: &dyn Os) -> Result<String> {
        let phases = self.phases();
        let mut told = String::new();
        for (number, phase) in phases.iter().enumerate() {
            let from = match number {
                0 => self.table.inputs.words(),
                _ => "what the phase before made".to_owned(),
            };
            let to = match number + 1 == phases.len() {
                true => self.to.words(),
                false => "pairs to a temporary folder".to_owned(),
            };
            told += &format!("phase {}\n  reads {from}\n", phase.name);
            for word in &phase.words {
                told += &format!("  {word}\n");
            }
            told += &format!("  writes {to}\n");
        }
        let means = Means::default();
        let job = self.job(&phases, 0, settings, os, &means)?;
        let (job, sources) = self.open((job, false), &phases[0], os, &Stop::new())?;
        let mut plan = run::prepare_opened(&job, sources, os)?.plan;
        told += &format!("plan of phase {}\n{}", phases[0].name, plan_lines(&plan));
        let mut bytes = plan.mapped_bytes;
        for (at, phase) in phases.iter().enumerate().skip(1) {
            let (name, before) = (&phase.name, &phases[at - 1].name);
            let Some(assumed) = bytes else {
                told += &format!("plan of phase {name}: follows from how much there is to read\n");
                continue;
            };
            let inputs = Inputs {
                extents: vec![Extent::File(assumed)],
                record_bytes_mean: Some(plan.record_bytes_mean as f64),
                ..Inputs::default()
            };
            let job = self.job(&phases, at, settings, os, &means)?;
            plan = Plan::new(&job, &inputs, &os.machine())?;
            bytes = plan.mapped_bytes;
            told += &format!(
                "plan of phase {name}, if as much comes out of {before} as it brings together, {}\n{}",
                text::bytes(assumed),
                plan_lines(&plan)
            );
        }
        Ok(told)
    }
}
