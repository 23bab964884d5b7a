//! Times that are made of numbers, text and other times, record by record: what expressions say of them (`express.rs`).
//!
//! ```text
//! from_epoch(1_000)   1767225600013 ms           ->  2026-01-01T00:00:00.013Z
//! truncate("1h")      2026-11-23T01:30:00.25Z    ->  2026-11-23T01:00:00Z         from 1970 on; weeks from a Monday on
//! offset_by(-1)       2026-11-23T01:30:00Z       ->  2026-11-23T01:29:59.999999Z
//! parse_time(format)  23/Nov/2026:01:30:00 +0100 ->  2026-11-23T00:30:00Z
//! ```

use super::column::{Type, Value};
use super::express::{Expr, Function, col};
use super::reckon::shown;
use super::time::TIMESTAMPS;
use super::time_format::TimeFormat;
use super::wrong;
use crate::error::{Error, ErrorKind, Result};

/// The point in time that the text of `column` says in a format of its own, a timestamp: [`Expr::parse_time`].
pub fn parse_time(column: impl Into<String>, format: impl Into<String>) -> Expr {
    col(column).parse_time(format)
}

/// The point in time that the whole number in `column` is, a timestamp: [`Expr::from_epoch`].
pub fn from_epoch(column: impl Into<String>, unit_micros: u64) -> Expr {
    col(column).from_epoch(unit_micros)
}

impl Expr {
    /// The point in time that text says as `format` has it, a timestamp. Of the format `%Y` stands for a year of four digits, `%m`, `%d`,
    /// `%H`, `%M` and `%S` for two digits of month, day, hour, minute and second, `%f` for one to six of the second's fraction, `%b` for
    /// the first three letters of a month's English name, `%z` for a zone (`+01:00`, `+0100`, `+01`, `Z`), `%%` for `%`, and anything else
    /// for itself. It has a year, a month and a day; without a zone the time is in UTC. Any other text is bad input.
    #[must_use]
    pub fn parse_time(self, format: impl Into<String>) -> Self {
        self.function(Function::Parse {
            kind: Type::Timestamp,
            or_null: false,
            format: Some(format.into()),
        })
    }

    /// The point in time so many units of `unit_micros` microseconds after 1970 began in UTC, or before for a number below zero. A time
    /// that is not in the years 1 to 9999 is bad input.
    #[must_use]
    pub fn from_epoch(self, unit_micros: u64) -> Self {
        self.function(Function::FromEpoch(unit_micros))
    }

    /// The greatest multiple of `every` since 1970 in UTC that is no later than a time: a whole number and a unit (`us`, `ms`, `s`, `m`, `h`,
    /// `d`, `w`), as `"15m"`. Weeks begin on Mondays, several of them with that of 1970-01-05.
    #[must_use]
    pub fn truncate(self, every: impl Into<String>) -> Self {
        self.function(Function::Truncate(every.into()))
    }

    /// The time so many microseconds later, or earlier for a number below zero. One that is not in the years 1 to 9999 is bad input.
    #[must_use]
    pub fn offset_by(self, micros: i64) -> Self {
        self.function(Function::OffsetBy(micros))
    }
}

/// What is done to one value.
#[derive(Clone, Debug)]
pub(super) enum Timed {
    FromEpoch(u64),
    Truncate(Every),
    OffsetBy(i64),
    /// What text says.
    Said(TimeFormat),
}

impl Timed {
    /// What comes of a value that is there.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for what is no time.
    pub fn value(&self, value: Value<'_>) -> Result<Value<'static>> {
        match (self, value) {
            (Self::Said(format), text) => format.read(text.bytes()).map(Value::Timestamp),
            (Self::Truncate(every), Value::Timestamp(micros)) => time(every.begin(micros), || {
                format!("{} cut to {}", shown(value), every.said)
            }),
            (Self::OffsetBy(by), Value::Timestamp(micros)) => {
                let micros = i128::from(micros) + i128::from(*by);
                time(micros, || format!("{} and {by} microseconds", shown(value)))
            }
            (Self::FromEpoch(unit), value) => {
                let count = match value {
                    Value::U64(count) => i128::from(count),
                    Value::I64(count) => i128::from(count),
                    _ => unreachable!("only whole numbers are taken"),
                };
                let unit = *unit;
                time(count.saturating_mul(i128::from(unit)), || {
                    format!("{count} times {unit} microseconds since 1970")
                })
            }
            _ => unreachable!("only times are taken"),
        }
    }
}

fn time(micros: i128, what: impl Fn() -> String) -> Result<Value<'static>> {
    let time = i64::try_from(micros).ok();
    let time = time.filter(|micros| TIMESTAMPS.contains(micros));
    time.map(Value::Timestamp).ok_or_else(|| {
        let cause = format!("{} is not in the years 1 to 9999", what());
        Error::new(ErrorKind::Input, "computing a column", cause)
    })
}

/// Stretches of time that all are as long.
#[derive(Clone, Debug)]
pub(super) struct Every {
    said: String,
    micros: i64,
    /// Where one of them begins.
    from: i64,
}

impl Every {
    const UNITS: [(&'static str, i64); 7] = [
        ("us", 1),
        ("ms", 1_000),
        ("s", 1_000_000),
        ("m", 60_000_000),
        ("h", 3_600_000_000),
        ("d", 86_400_000_000),
        ("w", 604_800_000_000),
    ];
    /// The first Monday since 1970.
    const MONDAY: i64 = 4 * 86_400_000_000;

    /// What `text` says.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for what is no length of time.
    pub fn new(text: &str) -> Result<Self> {
        let refused = || {
            wrong(format!(
                "{text:?} is no length of time: it is a whole number and a unit, us, ms, s, m, h, d or w, as \"15m\" (months and years \
                 are not all as long)"
            ))
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (count, unit) = text.split_at(digits);
        let count: i64 = count.parse().map_err(|_| refused())?;
        let found = Self::UNITS.into_iter().find(|(name, _)| *name == unit);
        let unit_micros = found.ok_or_else(refused)?.1;
        let micros = count.checked_mul(unit_micros).filter(|micros| *micros > 0);
        Ok(Self {
            said: text.to_owned(),
            micros: micros.ok_or_else(refused)?,
            from: if unit == "w" { Self::MONDAY } else { 0 },
        })
    }

    /// Where the one begins that a time is in.
    fn begin(&self, micros: i64) -> i128 {
        i128::from(micros) - i128::from((micros - self.from).rem_euclid(self.micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Moment;

    #[test]
    fn stretches_begin_before_what_is_in_them() {
        let hour = 3_600_000_000;
        for (every, micros, wanted) in [
            ("1h", hour + 5, hour),
            ("1h", -1, -hour),
            ("1h", -hour, -hour),
            ("15m", hour - 1, hour / 4 * 3),
            ("1us", -7, -7),
            ("2ms", -1, -2_000),
            ("1d", -1, -24 * hour),
            // 1970 began on a Thursday.
            ("1w", 0, -72 * hour),
            ("1w", 96 * hour, 96 * hour),
            ("2w", 0, -240 * hour),
            ("90000s", 25 * hour, 25 * hour),
        ] {
            let every = Every::new(every).unwrap();
            assert_eq!(
                every.begin(micros),
                i128::from(wanted),
                "{every:?} of {micros}"
            );
        }
        for text in [
            "",
            "h",
            "1",
            "0h",
            "-1h",
            "1 h",
            "1mo",
            "1y",
            "1.5h",
            "1h30m",
            "+1h",
            "99999999999w",
        ] {
            let error = Every::new(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.cause.contains("is no length of time"), "{error}");
        }
    }

    #[test]
    fn times_leave_no_years() {
        let last = *TIMESTAMPS.end();
        let first = *TIMESTAMPS.start();
        let is_refused = |timed: Timed, value: Value<'_>, cause: &str| {
            let error = timed.value(value).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Input);
            assert!(error.cause.contains(cause), "{error}");
        };
        let later = Value::Timestamp(last);
        is_refused(
            Timed::OffsetBy(1),
            later,
            "9999-12-31T23:59:59.999999Z and 1 micros",
        );
        is_refused(Timed::OffsetBy(i64::MAX), later, "not in the years");
        is_refused(Timed::OffsetBy(-1), Value::Timestamp(first), "years");
        is_refused(
            Timed::FromEpoch(1_000_000),
            Value::U64(u64::MAX),
            "times 1000000",
        );
        is_refused(Timed::FromEpoch(1), Value::I64(first - 1), "since 1970");
        let every = Every::new("7h").unwrap();
        is_refused(
            Timed::Truncate(every),
            Value::Timestamp(first),
            "0001-01-01T00:00:00Z cut to 7h",
        );
        let found = Timed::FromEpoch(1_000)
            .value(Value::I64(1_767_225_600_013))
            .unwrap();
        let Value::Timestamp(micros) = found else {
            panic!("a time");
        };
        let Moment {
            year,
            month,
            day,
            micro,
            ..
        } = Moment::of(micros);
        assert_eq!((year, month, day, micro), (2026, 1, 1, 13_000));
    }
}
