//! How sizes, times, rates and counts are shown, everywhere.

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
