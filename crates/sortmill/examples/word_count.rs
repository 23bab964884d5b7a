//! Counts the words of text files and writes the most frequent ones, as examples/word_count.py does:
//! `cargo run --release -p sortmill --example word_count -- TEXT... OUTPUT.csv`

use std::process::ExitCode;

use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::{Host, RingKind};
use sortmill::pipeline::{Form, Settings, count, read_text, words};
use sortmill::queue::Stop;

fn main() -> ExitCode {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let Some(output) = names.pop() else {
        eprintln!("word_count TEXT... OUTPUT.csv");
        return ExitCode::from(2);
    };
    match word_count(names, &output) {
        Ok(summary) => {
            print!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Writes the thousand most frequent words of `texts`, and how often they come, to `output`; answers what was done.
///
/// # Errors
/// What keeps the job from a complete output.
pub fn word_count(texts: Vec<String>, output: &str) -> Result<String> {
    let words = read_text(texts, 0).flat_map(&words("line").lower())?;
    let counts = words.group_by(&["word"])?.agg(&[count().named("n")])?;
    let top = counts.top(1000, &[("n", true)])?;
    let pipeline = top.write(output, Form::csv(true))?;
    let settings = Settings {
        memory_bytes: Some(512 << 20),
        ..Settings::default()
    };
    let host = Host::new(RingKind::Auto, true);
    let host = host.map_err(|error| Error::new(ErrorKind::Io, "starting", error.to_string()))?;
    Ok(pipeline.run(&settings, &host, &Stop::new())?.summary())
}
