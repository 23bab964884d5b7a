//! The program `sortmill`: the command line of the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    sortmill_cli::run(std::env::args_os().collect())
}
