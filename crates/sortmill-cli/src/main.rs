//! The program `sortmill`: the command line of the library beside it.

use std::process::ExitCode;

sortmill::io::seen_before_main!();

fn main() -> ExitCode {
    sortmill_cli::run(std::env::args_os().collect())
}
