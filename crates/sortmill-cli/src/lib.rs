//! The `sortmill` command: a table of contents. Each command has a file of its own.
//!
//! stdout is data, stderr is words. Exit 0: done; 1: compared and found out of order; 2: anything else. What a signal has
//! ended ends by that signal.
//!
//! It is a library so that Python's `sortmill` is this command too; `main.rs` is the program.

mod bench;
mod check;
mod columns;
mod common;
mod completions;
mod count;
mod disks;
mod doctor;
mod r#gen;
mod man;
mod merge;
mod node;
mod place;
mod progress;
mod report;
mod shuffle;
mod signals;
mod size;
mod sort;
mod top;
mod uniq;

pub use common::nodes_are_started_by;
pub use size::size_in_bytes;
pub use sort::silent::{sort_as_asked, sort_options};

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use sortmill::error::Result;
use sortmill::queue::with_threads;

/// Sorts, groups and reduces data far larger than memory at the speed of the disks.
#[derive(Parser)]
#[command(name = "sortmill", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Sort(Box<sort::Sort>),
    Merge(Box<merge::Merge>),
    Shuffle(Box<shuffle::Shuffle>),
    Uniq(Box<uniq::Uniq>),
    Count(Box<count::Count>),
    Top(Box<top::Top>),
    /// Generate test data
    #[command(subcommand)]
    Gen(r#gen::Gen),
    Check(check::Check),
    /// Measure the machine
    #[command(subcommand)]
    Bench(Bench),
    Report(report::Report),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(hide = true)]
    Node(node::Node),
}

#[derive(Subcommand)]
enum Bench {
    Disk(bench::Disk),
}

/// Does what the command line `words` says, the first of which is the program's name, and answers the exit code. What
/// cannot be read ends the process with words and code, and so do `--help` and `--version`.
pub fn run(words: Vec<OsString>) -> u8 {
    let code = with_threads(|| done(words)).unwrap_or_else(|error| common::ended(&error));
    // Whatever ended it, nothing of it is left; and one that was done when a signal came tells its caller of that, too, who may
    // have others to end.
    signals::end_by_what_came();
    // An exit code tells nothing of itself but whether it is another one.
    (0..=u8::MAX)
        .find(|&number| ExitCode::from(number) == code)
        .expect("it was made of a number")
}

fn done(words: Vec<OsString>) -> Result<ExitCode> {
    if let Some(sort) = sort::asked(words.iter().cloned()) {
        return sort.run();
    }
    let words = r#gen::arranged(words, &Arguments::command());
    let arguments = Arguments::try_parse_from(words).unwrap_or_else(|told| common::end_with(&told));
    match arguments.command {
        // These are read by themselves, above: where they are not the first word, they are none.
        Command::Sort(sort) => sort.run(),
        Command::Merge(merge) => merge.run(),
        Command::Shuffle(shuffle) => shuffle.run(),
        Command::Uniq(uniq) => uniq.run(),
        Command::Count(count) => count.run(),
        Command::Top(top) => top.run(),
        Command::Gen(kind) => kind.run(),
        Command::Check(check) => check.run(),
        Command::Bench(Bench::Disk(disk)) => disk.run(),
        Command::Report(report) => report.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Completions(completions) => completions.run(Arguments::command()),
        Command::Man(man) => man.run(Arguments::command()),
        Command::Node(node) => node.run(),
    }
}
