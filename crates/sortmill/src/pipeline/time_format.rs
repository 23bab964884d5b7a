//! Times in a format of their own, as logs have them: what a part of `strftime` says, and no more.
//!
//! ```text
//! %d/%b/%Y:%H:%M:%S %z     23/Nov/2026:01:30:00 +0100
//! ```

use super::time::{MICROS, Moment, TIMESTAMPS, days_of, digits, zone};
use super::wrong;
use crate::error::{Error, ErrorKind, Result};

/// What a text is to be, byte by byte.
#[derive(Clone, Debug)]
pub(super) struct TimeFormat {
    said: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Year,
    Month,
    MonthName,
    Day,
    Hour,
    Minute,
    Second,
    Fraction,
    Zone,
    Byte(u8),
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

impl TimeFormat {
    /// The one that `text` says.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a letter behind `%` that is not known, what is said twice, and a format without a day of a year.
    pub fn new(text: &str) -> Result<Self> {
        let refused = |why: &str| wrong(format!("{text:?} is no format of times: {why}"));
        let mut parts = Vec::new();
        let mut bytes = text.trim_ascii().bytes();
        while let Some(byte) = bytes.next() {
            let part = match byte {
                b'%' => match bytes.next() {
                    Some(b'Y') => Part::Year,
                    Some(b'm') => Part::Month,
                    Some(b'b') => Part::MonthName,
                    Some(b'd') => Part::Day,
                    Some(b'H') => Part::Hour,
                    Some(b'M') => Part::Minute,
                    Some(b'S') => Part::Second,
                    Some(b'f') => Part::Fraction,
                    Some(b'z') => Part::Zone,
                    Some(b'%') => Part::Byte(b'%'),
                    _ => {
                        return Err(refused(
                            "behind % stands one of Y m b d H M S f z %, and nothing else is known",
                        ));
                    }
                },
                byte => Part::Byte(byte),
            };
            if !matches!(part, Part::Byte(_)) && parts.contains(&part) {
                return Err(refused("one thing is said twice"));
            }
            parts.push(part);
        }
        let has = |part: Part| parts.contains(&part);
        if !has(Part::Year) || has(Part::Month) == has(Part::MonthName) || !has(Part::Day) {
            return Err(refused("it has %Y, one of %m and %b, and %d"));
        }
        Ok(Self {
            said: text.to_owned(),
            parts,
        })
    }

    /// Microseconds since 1970 of what `text` says.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if it says no time so, or one that is not in [`TIMESTAMPS`] once it is in UTC.
    pub fn read(&self, text: &[u8]) -> Result<i64> {
        self.find(text.trim_ascii()).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&text[..text.len().min(60)]);
            let cause = format!(
                "{shown:?} is no value of type timestamp as {:?} has it",
                self.said
            );
            Error::new(ErrorKind::Input, "reading a value", cause)
        })
    }

    fn find(&self, mut rest: &[u8]) -> Option<i64> {
        let mut moment = Moment {
            year: 1970,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            micro: 0,
        };
        let mut ahead = 0;
        for part in &self.parts {
            let rest = &mut rest;
            match part {
                Part::Year => moment.year = digits(rest, 4).filter(|year| *year > 0)?,
                Part::Month => {
                    moment.month = digits(rest, 2).filter(|month| (1..=12).contains(month))?;
                }
                Part::MonthName => {
                    let (name, behind) = rest.split_at_checked(3)?;
                    *rest = behind;
                    let is_it = |month: &&str| name.eq_ignore_ascii_case(month.as_bytes());
                    moment.month = 1 + MONTHS.iter().position(is_it)? as i64;
                }
                Part::Day => moment.day = digits(rest, 2).filter(|day| *day > 0)?,
                Part::Hour => moment.hour = digits(rest, 2).filter(|hour| *hour < 24)?,
                Part::Minute => moment.minute = digits(rest, 2).filter(|minute| *minute < 60)?,
                Part::Second => moment.second = digits(rest, 2).filter(|second| *second < 60)?,
                Part::Fraction => moment.micro = micros(rest)?,
                Part::Zone if rest.is_empty() => return None,
                Part::Zone => ahead = zone(rest)?,
                Part::Byte(byte) => *rest = rest.strip_prefix(&[*byte])?,
            }
        }
        if moment.day > days_of(moment.year, moment.month) {
            return None;
        }
        let micros = moment.micros() - ahead * MICROS;
        (rest.is_empty() && TIMESTAMPS.contains(&micros)).then_some(micros)
    }
}

/// Microseconds that one to six digits behind a point say.
fn micros(rest: &mut &[u8]) -> Option<i64> {
    let few = &rest[..rest.len().min(6)];
    let count = few.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = digits(rest, count).filter(|_| count > 0)?;
    Some(number * 10_i64.pow(6 - count as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::time;

    /// What is read so is what RFC 3339 has of the same time.
    #[test]
    fn texts_are_read_as_their_format_has_them() {
        for (format, text, wanted) in [
            (
                "%d/%b/%Y:%H:%M:%S %z",
                "23/Nov/2026:01:30:00 +0100",
                "2026-11-23T00:30:00Z",
            ),
            (
                "[%d/%b/%Y:%H:%M:%S %z]",
                "[01/jan/1969:00:00:00 -0130]",
                "1969-01-01T01:30:00Z",
            ),
            ("%d.%m.%Y", "29.02.2024", "2024-02-29"),
            (
                "%Y%m%d%H%M%S%f",
                "202611230130005",
                "2026-11-23T01:30:00.5Z",
            ),
            (
                "%Y%m%d%H%M%S%f",
                "20261123013000000007",
                "2026-11-23T01:30:00.000007Z",
            ),
            ("%m/%d/%Y %H:%M%z", "12/31/9999 23:59Z", "9999-12-31T23:59Z"),
            (" %Y-%m-%d %%", "2026-11-23 % ", "2026-11-23"),
        ] {
            let found = TimeFormat::new(format).unwrap().read(text.as_bytes());
            assert_eq!(
                Some(found.unwrap()),
                time::read(wanted.as_bytes()),
                "{text}"
            );
        }
        for (format, text) in [
            ("%d.%m.%Y", "29.02.2023"),
            ("%d.%m.%Y", "1.02.2023"),
            ("%d.%m.%Y", "01.13.2023"),
            ("%d.%m.%Y", "00.12.2023"),
            ("%d.%m.%Y", "01.12.0000"),
            ("%d.%m.%Y", "01.12.20235"),
            ("%d %b %Y", "01 Mai 2023"),
            ("%d %b %Y", "01 M"),
            ("%Y-%m-%d %H:%M:%S", "2026-11-23 24:00:00"),
            ("%Y-%m-%d %H:%M:%S", "2026-11-23 00:60:00"),
            ("%Y-%m-%d %H:%M:%S", "2026-11-23 00:00:60"),
            ("%Y-%m-%d %H:%M:%S.%f", "2026-11-23 00:00:00."),
            ("%Y-%m-%d %H:%M:%S.%f", "2026-11-23 00:00:00.1234567"),
            ("%Y-%m-%d%z", "2026-11-23"),
            ("%Y-%m-%d%z", "2026-11-23+25:00"),
            ("%Y-%m-%d%z", "0001-01-01+01:00"),
            ("%Y-%m-%d", ""),
        ] {
            let error = TimeFormat::new(format).unwrap().read(text.as_bytes());
            let error = error.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Input);
            assert!(
                error.cause.contains("is no value of type timestamp as"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_no_format() {
        for (format, why) in [
            ("", "it has %Y"),
            ("%Y-%m", "and %d"),
            ("%Y-%m-%b-%d", "one of %m and %b"),
            ("%Y-%m-%d %Y", "twice"),
            ("%Y-%m-%d %p", "behind % stands one of"),
            ("%Y-%m-%d %", "behind % stands one of"),
        ] {
            let error = TimeFormat::new(format).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.cause.contains(why), "{error}");
        }
    }
}
