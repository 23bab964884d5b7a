//! Points in time: what text says of one, and how it is written.
//!
//! A value of type [`Type::Timestamp`](super::Type::Timestamp) is a whole number of microseconds since 1970-01-01 in UTC, without
//! leap seconds, as POSIX counts. Only the years 1 to 9999 are times, because no text as RFC 3339 has it, and no `datetime` of
//! Python's, says others.
//!
//! ```text
//! 2026-11-23T01:30:00.25+01:00     read; any of these may be absent: fraction, seconds, time of day; zone (then it is UTC)
//! 2026-11-23T00:30:00.250000Z      written; the fraction only where there is one
//! ```

use std::ops::RangeInclusive;

pub(super) const MICROS: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;

/// Microseconds since 1970 of the first and the last point in time: 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z.
pub const TIMESTAMPS: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// A point in time as a calendar and a clock in UTC tell it (the proleptic Gregorian calendar, as in ISO 8601).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// Hours of the day, to 23.
    pub hour: i64,
    /// Minutes of the hour.
    pub minute: i64,
    /// Seconds of the minute.
    pub second: i64,
    /// Microseconds of the second.
    pub micro: i64,
}

impl Moment {
    /// What stands on calendar and clock `micros` microseconds after 1970 began.
    #[must_use]
    pub fn of(micros: i64) -> Self {
        let (seconds, micro) = (micros.div_euclid(MICROS), micros.rem_euclid(MICROS));
        let (days, of_day) = (
            seconds.div_euclid(DAY_SECONDS),
            seconds.rem_euclid(DAY_SECONDS),
        );
        let (year, month, day) = date(days);
        Self {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            micro,
        }
    }

    /// Its microseconds since 1970.
    #[must_use]
    pub fn micros(&self) -> i64 {
        let days = days_since_1970(self.year, self.month, self.day);
        let seconds = days * DAY_SECONDS + self.hour * 3600 + self.minute * 60 + self.second;
        seconds * MICROS + self.micro
    }
}

/// Microseconds since 1970 of what `text` says: a date, or date and time, as RFC 3339 has it, or with less of it. `None` if it says
/// no time, or one that is not in [`TIMESTAMPS`] once it is in UTC.
pub(super) fn read(text: &[u8]) -> Option<i64> {
    let mut rest = text.trim_ascii();
    let year = digits(&mut rest, 4).filter(|year| *year > 0)?;
    let month = behind(&mut rest, b'-', 1..=12)?;
    let day = behind(&mut rest, b'-', 1..=days_of(year, month))?;
    let mut moment = Moment {
        year,
        month,
        day,
        hour: 0,
        minute: 0,
        second: 0,
        micro: 0,
    };
    let mut ahead = 0;
    if let Some((b'T' | b't' | b' ', time)) = rest.split_first() {
        rest = time;
        moment.hour = digits(&mut rest, 2).filter(|hour| *hour < 24)?;
        moment.minute = behind(&mut rest, b':', 0..=59)?;
        if rest.first() == Some(&b':') {
            moment.second = behind(&mut rest, b':', 0..=59)?;
            moment.micro = fraction(&mut rest)?;
        }
        ahead = zone(&mut rest)?;
    }
    let micros = moment.micros() - ahead * MICROS;
    (rest.is_empty() && TIMESTAMPS.contains(&micros)).then_some(micros)
}

/// Appends what [`read`] reads: date and time in UTC, as RFC 3339 has them, and six digits behind the point if not all are 0.
pub(super) fn write(micros: i64, to: &mut Vec<u8>) {
    let moment = Moment::of(micros);
    let parts = [
        (moment.year, 4, b'-'),
        (moment.month, 2, b'-'),
        (moment.day, 2, b'T'),
        (moment.hour, 2, b':'),
        (moment.minute, 2, b':'),
        (moment.second, 2, b'.'),
        (moment.micro, 6, b'Z'),
    ];
    let shown = if moment.micro == 0 { 6 } else { 7 };
    for (number, count, behind) in &parts[..shown] {
        let mut unit = 10_i64.pow(*count);
        for _ in 0..*count {
            unit /= 10;
            to.push(b'0' + (number / unit % 10) as u8);
        }
        to.push(*behind);
    }
    if let Some(last) = to.last_mut() {
        *last = b'Z';
    }
}

/// Microseconds that a point, or a comma as ISO 8601 has it, and digits say, of which six count; 0 where there is none.
fn fraction(rest: &mut &[u8]) -> Option<i64> {
    let Some((b'.' | b',', digits)) = rest.split_first() else {
        return Some(0);
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let (digits, behind) = digits.split_at(count.count());
    *rest = behind;
    digits.first()?;
    let digit = |at: usize| i64::from(digits.get(at).map_or(0, |byte| byte - b'0'));
    Some((0..6).fold(0, |sum, at| 10 * sum + digit(at)))
}

/// Seconds that a zone is ahead of UTC: `Z`, `+01:00`, `-0130`, `+01`, or nothing.
pub(super) fn zone(rest: &mut &[u8]) -> Option<i64> {
    let Some((&sign, behind_sign)) = rest.split_first() else {
        return Some(0);
    };
    *rest = behind_sign;
    let sign = match sign {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(rest, 2).filter(|hours| *hours < 24)?;
    if rest.is_empty() {
        return Some(sign * hours * 3600);
    }
    *rest = rest.strip_prefix(b":").unwrap_or(rest);
    let minutes = digits(rest, 2).filter(|minutes| *minutes < 60)?;
    Some(sign * (hours * 3600 + minutes * 60))
}

/// The number that just `count` digits make.
pub(super) fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (number, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    number.iter().try_fold(0, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| 10 * sum + i64::from(byte - b'0'))
    })
}

/// The number of two digits behind `mark`, if it is one of `allowed`.
fn behind(rest: &mut &[u8], mark: u8, allowed: RangeInclusive<i64>) -> Option<i64> {
    *rest = rest.strip_prefix(&[mark])?;
    digits(rest, 2).filter(|number| allowed.contains(number))
}

/// How many days a month of a year has.
pub(super) fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of 400 years, and of those between the first of March of the year 0 and 1970.
const ERA_DAYS: i64 = 146_097;
const DAYS_BEFORE_1970: i64 = 719_468;

/// Days from 1970-01-01 on, by counting years from March, so that a leap day is a year's last (H. Hinnant, chrono-Compatible
/// Low-Level Date Algorithms, `days_from_civil`).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_BEFORE_1970
}

/// Year, month and day of a day since 1970-01-01 (the same, `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(micros: i64) -> String {
        let mut text = Vec::new();
        write(micros, &mut text);
        String::from_utf8(text).unwrap()
    }

    /// What `date -u -d ... +%s` says of them, times a million.
    #[test]
    fn times_are_microseconds_since_1970() {
        for (text, wanted, back) in [
            ("1970-01-01", 0, "1970-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59Z", -1_000_000, "1969-12-31T23:59:59Z"),
            (
                "2000-02-29 12:00:00",
                951_825_600_000_000,
                "2000-02-29T12:00:00Z",
            ),
            (
                "2026-11-23T01:30:00.25+01:00",
                1_795_393_800_250_000,
                "2026-11-23T00:30:00.250000Z",
            ),
            (
                "2026-11-23T01:30:00,1234567-0030",
                1_795_399_200_123_456,
                "2026-11-23T02:00:00.123456Z",
            ),
            (
                " 0001-01-01t00:00:00z ",
                -62_135_596_800_000_000,
                "0001-01-01T00:00:00Z",
            ),
            (
                "9999-12-31T23:59:59.999999Z",
                253_402_300_799_999_999,
                "9999-12-31T23:59:59.999999Z",
            ),
            (
                "2026-01-01T00:00-02",
                1_767_232_800_000_000,
                "2026-01-01T02:00:00Z",
            ),
        ] {
            assert_eq!(read(text.as_bytes()), Some(wanted), "{text}");
            assert_eq!(written(wanted), back);
        }
        for text in [
            "",
            "2026",
            "0000-01-01",
            "2026-13-01",
            "2026-02-29",
            "1900-02-29",
            "2026-1-01",
            "2026-01-01T",
            "2026-01-01T00",
            "2026-01-01T24:00:00",
            "2026-01-01T00:60:00",
            "2026-01-01T00:00:60",
            "2026-01-01T00:00:",
            "2026-01-01T00:00:00.",
            "2026-01-01T00:00.5",
            "2026-01-01T00:00:00+1",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+01:60",
            "2026-01-01T00:00:00 x",
            "2026-01-01x",
            "2026-01-01Z",
            "+026-01-01",
            // Times, but not in UTC.
            "0001-01-01T00:59:59+01:00",
            "9999-12-31T23:00:00-01:00",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }

    /// Days are counted one by one from the first of January of the year 1 on.
    #[test]
    fn each_day_of_all_years_follows_the_one_before() {
        let mut days = TIMESTAMPS.start() / (DAY_SECONDS * MICROS);
        for year in 1..=9999 {
            for month in 1..=12 {
                for day in 1..=days_of(year, month) {
                    assert_eq!(days_since_1970(year, month, day), days);
                    assert_eq!(date(days), (year, month, day));
                    days += 1;
                }
            }
        }
        assert_eq!(days * DAY_SECONDS * MICROS - 1, *TIMESTAMPS.end());
    }

    /// Any time comes back, however it is said, and any bytes are a time or none.
    #[test]
    fn drawn_times_come_back() {
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|text| text.parse().ok());
        let mut state = seed.unwrap_or(1u64);
        println!("SEED={state}");
        let mut below = |bound: i64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            ((state >> 11) as i64).rem_euclid(bound)
        };
        let day_micros = DAY_SECONDS * MICROS;
        let (first, last) = (*TIMESTAMPS.start(), *TIMESTAMPS.end());
        for _ in 0..20_000 {
            // A day from either end, so that any zone leaves it within the years that there are.
            let micros =
                first + day_micros + below((last - first) / 1000 - 2 * day_micros / 1000) * 1000;
            let micros = micros + below(1000);
            assert_eq!(read(written(micros).as_bytes()), Some(micros));
            let ahead = below(2 * 1439) - 1439;
            let there = Moment::of(micros + ahead * 60 * MICROS);
            assert_eq!(there.micros(), micros + ahead * 60 * MICROS);
            let Moment {
                year,
                month,
                day,
                hour,
                minute,
                second,
                micro,
            } = there;
            let sign = if ahead < 0 { '-' } else { '+' };
            let (hours, minutes) = (ahead.abs() / 60, ahead.abs() % 60);
            let colon = [":", ""][below(2) as usize];
            let mark = ['T', 't', ' '][below(3) as usize];
            let more = ["", "0", "999"][below(3) as usize];
            let text = format!(
                "{year:04}-{month:02}-{day:02}{mark}{hour:02}:{minute:02}:{second:02}.{micro:06}{more}\
                 {sign}{hours:02}{colon}{minutes:02}"
            );
            assert_eq!(read(text.as_bytes()), Some(micros), "{text}");
            let mut bytes = text.into_bytes();
            let (at, byte) = (below(bytes.len() as i64) as usize, below(256) as u8);
            bytes[at] = byte;
            if let Some(other) = read(&bytes) {
                assert_eq!(read(written(other).as_bytes()), Some(other));
            }
        }
    }
}
