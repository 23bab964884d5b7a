//! `sortmill gen clicks` and `sortmill gen json`: lines as programs write them.

use std::process::ExitCode;

use clap::Args;
use sortmill::error::Result;
use sortmill::generate::clicks::{Clicks as ClickLines, PER_SECOND_MAX, USERS_MAX};
use sortmill::generate::json::{Json as JsonLines, Shares};

use super::{Output, Seed, at_most, exponent, percent};

/// A click log: time, user and path
///
/// COUNT is the number of lines. A line has the milliseconds since 1970 (13 digits), the user (from 0 on, all
/// with as many digits as the last) and the path, with tabs between them. Lines are in the order of time to
/// within 5 seconds. What a user does is told apart into the same sessions by any pause of 21 to 39 minutes: time
/// is cut into stretches of 20 minutes, and a third of the users click in each, the others in the next two.
#[derive(Args)]
pub struct Clicks {
    #[command(flatten)]
    output: Output,

    /// How many users there are; rounded up to a multiple of 3
    #[arg(long, value_name = "N", default_value = "300000", value_parser = users)]
    users: u32,

    /// Clicks in a second, of all users together
    #[arg(long, value_name = "N", default_value = "1000", value_parser = rate)]
    rate: u64,

    /// Exponent: the k-th most active users make a visit in proportion to 1 / k^S
    #[arg(long, value_name = "S", default_value = "1", value_parser = exponent)]
    exponent: f64,

    #[command(flatten)]
    seed: Seed,
}

impl Clicks {
    pub fn run(&self) -> Result<ExitCode> {
        self.output.run(false, |amount, _, _| {
            let seed = self.seed.number;
            let clicks = ClickLines::new(seed, self.users, self.exponent, self.rate, amount)?;
            Ok((clicks, amount))
        })
    }
}

/// JSON, an object in each line: nested fields, escapes, nulls
///
/// COUNT is the number of lines. An object has id, time, user (name, age and city), tags, score, active and note.
/// All but id may be missing or null, and name is wherever user is. Numbers come in every way there is to write them.
#[derive(Args)]
pub struct Json {
    #[command(flatten)]
    output: Output,

    /// How many of 100 fields are missing
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    missing: f64,

    /// How many of 100 fields that are there are null
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    null: f64,

    /// How many of 100 strings have an escape or letters beyond ASCII
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent)]
    escaped: f64,

    #[command(flatten)]
    seed: Seed,
}

impl Json {
    pub fn run(&self) -> Result<ExitCode> {
        let shares = Shares {
            missing: self.missing / 100.0,
            null: self.null / 100.0,
            escaped: self.escaped / 100.0,
        };
        self.output.run(false, |amount, _, _| {
            Ok((JsonLines::new(self.seed.number, shares), amount))
        })
    }
}

fn users(text: &str) -> std::result::Result<u32, String> {
    at_most(text, 1, USERS_MAX.into()).map(|users| users as u32)
}

fn rate(text: &str) -> std::result::Result<u64, String> {
    at_most(text, 1, PER_SECOND_MAX)
}
