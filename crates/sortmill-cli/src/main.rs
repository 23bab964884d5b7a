//! The program `sortmill`: the command line of the library beside it.

#![no_main]

sortmill::io::main!(sortmill_cli::run);
