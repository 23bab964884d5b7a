//! How sizes, times, rates and counts are shown, everywhere.

/// Behind what is wrong at an offset of an input that was compressed.
pub const OF_UNPACKED: &str = " (the offset is that in the decompressed bytes)";

/// `1536` as `1.5 KiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Nanoseconds as `12.3 s`.
#[must_use]
pub fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}

/// Nanoseconds that are guessed, as `12 s`, `3 min` or `2 h 05 min`.
#[must_use]
pub fn about(ns: u64) -> String {
    let seconds = (ns as f64 / 1e9).round() as u64;
    let minutes = (ns as f64 / 60e9).round() as u64;
    match (seconds, minutes) {
        (0..100, _) => format!("{seconds} s"),
        (_, 0..100) => format!("{minutes} min"),
        _ => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}

/// Bytes in nanoseconds as `640 MB/s`.
#[must_use]
pub fn rate(bytes: u64, ns: u64) -> String {
    if ns == 0 {
        return "-".into();
    }
    format!("{:.0} MB/s", bytes as f64 * 1e3 / ns as f64)
}

/// Nanoseconds divided by a number of units as `12.3 ns`, `4.5 us` or `1.6 ms`; `-` for no units.
#[must_use]
pub fn time_each(ns: u64, count: f64) -> String {
    if count <= 0.0 {
        return "-".into();
    }
    match ns as f64 / count {
        each if each < 999.95 => format!("{each:.1} ns"),
        each if each < 999_950.0 => format!("{:.1} us", each / 1e3),
        each => format!("{:.1} ms", each / 1e6),
    }
}

/// `0.963` as `96 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Seconds since 1970 as the day in Greenwich, `2026-11-22`.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
#[must_use]
pub fn date(seconds_since_1970: u64) -> String {
    // Days since the first of March of the year 0, so that a leap day is a year's last.
    let days = seconds_since_1970 / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `1234567` as `1,234,567`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_round() {
        for (seconds, expected) in [
            (0.4, "0 s"),
            (11.6, "12 s"),
            (99.4, "99 s"),
            (99.6, "2 min"),
            (5_000.0, "83 min"),
            (5_999.0, "1 h 40 min"),
            (7_500.0, "2 h 05 min"),
        ] {
            assert_eq!(about((seconds * 1e9) as u64), expected);
        }
    }

    #[test]
    fn days_have_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (20_779, "2026-11-22"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days * 86_400), expected);
            assert_eq!(date(days * 86_400 + 86_399), expected);
        }
    }
}
