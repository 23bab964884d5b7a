//! Jobs that several processes share: what is asked, what they tell each other, and who decides.
//!
//! The process that the user started is the **coordinator**. It plans, draws the sample, starts the nodes, tells each
//! what is its share, and gives the output its name; no record comes to it. Nodes read a share of the chunks each,
//! send every record to the node in whose range its key lies, sort what they received, and write it to its place in
//! the one output. All are processes of one program on one machine, and share its file system and nothing else.
//!
//! ```text
//!   coordinator                 node                        other nodes
//!       | starts it, by a pipe each way                          |
//!       | <--------------- Ready: where it listens               |
//!       | Start: plan, table, inputs, ports -->                  |
//!       |                     | <== hello, frames, end marker ==> |
//!       | <--------------- Distributed: how much it has          |
//!       |   (when all have)                                      |
//!       | Write: where in the output -------->                   |
//!       | <--------------- Done: fingerprints, edges             |
//!       |   (when all are)                                       |
//!     edges, sync, verify, rename
//! ```
//!
//! [`coordinator`] is that as a state machine without I/O; [`message`] is what goes through the pipes. `run::local`
//! does what the one says, `run::node` is the other end.

pub mod coordinator;
pub mod message;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::job::{Boundaries, Job, Output};

/// Where the nodes of a job are: so many processes on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct On {
    /// How many, from 1 to [`NODE_COUNT_MAX`].
    pub node_count: u32,
    /// The program that becomes one.
    pub program: PathBuf,
    /// The words it is started with.
    pub words: Vec<OsString>,
}

/// The most nodes of one machine: each has a connection, and two threads, for each other.
pub const NODE_COUNT_MAX: u32 = 64;

/// Refuses what several nodes cannot do yet.
///
/// # Errors
/// [`ErrorKind::Usage`] that names it.
pub fn check(job: &Job) -> Result<()> {
    let Some(on) = &job.on else {
        return Ok(());
    };
    let refuse = |cause: &str| {
        Err(Error::new(
            ErrorKind::Usage,
            "sharing the job between nodes",
            cause,
        ))
    };
    if !(1..=NODE_COUNT_MAX).contains(&on.node_count) {
        return refuse(&format!("there can be 1 to {NODE_COUNT_MAX} nodes"));
    }
    match &job.output {
        Output::Path(_) => {}
        Output::Stdout => {
            return refuse("--on writes a file, not standard output; name one with -o");
        }
        Output::Parts(_) => return refuse("--on writes one file: it does not go with --parts"),
    }
    if job.map.is_some() || job.reduce.is_some() {
        return refuse("map and reduce functions do not go to other processes");
    }
    if job.is_unique() {
        return refuse(
            "where repeats are dropped nobody knows before where a node's output begins",
        );
    }
    if job.columns.is_some() {
        return refuse("--on does not know of columns yet");
    }
    if job.until.is_some() {
        return refuse("--on runs whole jobs: it does not go with --until");
    }
    if job.trace.is_some() {
        return refuse("each node is a process of its own: --on does not go with --trace");
    }
    if job.boundaries != Boundaries::Sample {
        return refuse("--on cuts by a sample: it does not go with --boundaries");
    }
    Ok(())
}
