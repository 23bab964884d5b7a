//! The one parser of sizes.
//!
//! `K M G T P` and `KiB MiB GiB TiB PiB` are powers of 1024, as GNU's tools have them; `KB MB GB TB PB` are
//! powers of 1000; `b` and `B` are bytes. Upper and lower case count alike, but for `kB` meaning what `KB`
//! does; a space may stand before the unit, a fraction before that. A plain number is bytes where Sortmill
//! asks (`--memory`), and KiB where GNU does (`-S`). `%` is a part of all memory.

/// A size as it was given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of the machine's memory.
    Percent(f64),
}

impl Size {
    /// In bytes, where all is `total` bytes.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (total as f64 * percent / 100.0) as u64,
        }
    }
}

/// Reads a size.
pub fn parse(text: &str) -> Result<Size, String> {
    let trimmed = text.trim();
    let digits = trimmed
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..digits], trimmed[digits..].trim_start());
    let value: f64 = number
        .parse()
        .map_err(|_| format!("{text:?} is no size; try 2GiB, 500MB or 25%"))?;
    if unit == "%" {
        return match value > 0.0 && value <= 100.0 {
            true => Ok(Size::Percent(value)),
            false => Err(format!("{text:?} is not between 0% and 100%")),
        };
    }
    let factor = factor(&unit.to_ascii_lowercase())
        .ok_or_else(|| format!("{unit:?} is no unit of size; try K, M, G, GiB or GB"))?;
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => Some((value * factor as f64) as u64).filter(|_| value * (factor as f64) < 1.8e19),
    };
    bytes
        .map(Size::Bytes)
        .ok_or_else(|| format!("{text:?} is more than can be counted"))
}

/// Reads a size as `--memory` has it, in bytes; `total` are those that 100% is.
///
/// # Errors
/// What is wrong with it, in words.
pub fn size_in_bytes(text: &str, total: u64) -> Result<u64, String> {
    parse(text).map(|size| size.of(total))
}

/// Reads a size as GNU sort's `-S` has it: a plain number is KiB, a unit alone one of it, `b` bytes, `%` a part of all
/// memory and perhaps more than that. What GNU refuses and we know elsewhere (2GiB, 1.5G) means the same here.
pub fn parse_wish(text: &str) -> Result<Size, String> {
    let trimmed = text.trim_start();
    let number = trimmed.strip_prefix('+').unwrap_or(trimmed);
    let digits = number
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(number.len());
    let (number, unit) = number.split_at(digits);
    let power = match unit {
        "" => Some(1),
        "b" => Some(0),
        _ => ["k", "m", "g", "t", "P", "E", "Z", "Y"]
            .iter()
            .position(|letter| unit == *letter || unit == letter.to_uppercase())
            .map(|at| at as u32 + 1),
    };
    match (number, unit, power) {
        ("", "" | "b", _) => parse(text),
        (_, "%", _) if !number.is_empty() => {
            let percent = number.parse();
            let percent = percent.map_err(|_| format!("{text:?} is no part of memory"))?;
            Ok(Size::Percent(percent))
        }
        (_, _, Some(power)) => {
            let number = if number.is_empty() { "1" } else { number };
            let bytes = number.parse::<u128>().ok();
            let bytes = bytes.and_then(|number| number.checked_mul(1024u128.pow(power)));
            let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
            bytes
                .map(Size::Bytes)
                .ok_or_else(|| format!("{text:?} is more than can be counted"))
        }
        _ => parse(text),
    }
}

/// Reads a size that has nothing to do with memory.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    match parse(text)? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Percent(_) => Err("a part of memory is no size here; try 2GiB".into()),
    }
}

fn factor(unit: &str) -> Option<u64> {
    if unit.is_empty() || unit == "b" {
        return Some(1);
    }
    let power = "kmgtpe".find(unit.chars().next()?)? as u32 + 1;
    match &unit[1..] {
        "" | "i" | "ib" => 1024u64.checked_pow(power),
        "b" => 1000u64.checked_pow(power),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("123", 123),
            ("123b", 123),
            ("2G", 2 << 30),
            ("2g", 2 << 30),
            ("2GiB", 2 << 30),
            ("2 GiB", 2 << 30),
            ("2gib", 2 << 30),
            ("2GB", 2_000_000_000),
            ("1.5K", 1536),
            ("0.5MB", 500_000),
            ("64k", 65536),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(Size::Bytes(bytes)), "{text}");
        }
        assert_eq!(parse("25%"), Ok(Size::Percent(25.0)));
        assert_eq!(parse("25%").unwrap().of(400), 100);
    }

    #[test]
    fn wishes_as_gnu_has_them() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1024),
            (" +2", 2048),
            ("3b", 3),
            ("2k", 2048),
            ("2M", 2 << 20),
            ("m", 1 << 20),
            ("G", 1 << 30),
            ("2GiB", 2 << 30),
            ("1.5K", 1536),
        ] {
            assert_eq!(parse_wish(text), Ok(Size::Bytes(bytes)), "{text}");
        }
        assert_eq!(parse_wish("200%"), Ok(Size::Percent(200.0)));
        for text in [
            "",
            "b",
            "1X",
            "5%%",
            "-1",
            "%",
            "1Z",
            "1R",
            "99999999999999999999",
        ] {
            assert!(parse_wish(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_size() {
        for text in [
            "",
            "G",
            "2X",
            "2GiBs",
            "-1",
            "1..2",
            "0%",
            "101%",
            "99999999999G",
            "1e3",
            "NaN",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
