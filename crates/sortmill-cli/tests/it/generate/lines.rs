//! Kinds of lines: text, numbers and comma-separated values, each read by somebody else.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

use super::{output, refused};

fn lines(line: &str) -> Vec<String> {
    let text = String::from_utf8(output(line)).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn text_is_words_in_lines() {
    let lines = lines("text --words 6 20000 -");
    assert_eq!(lines.len(), 20_000);
    let mut words_of_lines = [0_u32; 13];
    let mut letters = 0;
    for line in &lines {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        assert_eq!(words.join(" "), *line);
        words_of_lines[words.len()] += 1;
        for word in words {
            letters += word.len();
            assert!((1..=14).contains(&word.len()), "{word}");
            assert!(
                word.bytes().all(|letter| letter.is_ascii_lowercase()),
                "{word}"
            );
        }
    }
    // 0 to 12 words, all equally likely.
    for count in words_of_lines {
        assert!((1_350..=1_730).contains(&count), "{words_of_lines:?}");
    }
    let mean = letters as f64 / (20_000.0 * 6.0);
    assert!((3.0..7.0).contains(&mean), "{mean} letters");
}

/// A vocabulary so small that every word is frequent, and counts have the order of the law.
#[test]
fn words_keep_zipfs_law() {
    for (exponent, words) in [(0.5, 12), (1.0, 40), (1.5, 30)] {
        let line = format!("text --vocabulary {words} --exponent {exponent} 100000 -");
        let mut counts: HashMap<String, u64> = HashMap::new();
        for word in lines(&line).iter().flat_map(|line| line.split(' ')) {
            if !word.is_empty() {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
        assert_eq!(counts.len(), words);
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let total: u64 = counts.iter().sum();
        let weight = |k: usize| (k as f64).powf(-exponent);
        let all: f64 = (1..=words).map(weight).sum();
        let chi_square: f64 = counts
            .iter()
            .enumerate()
            .map(|(index, &count)| {
                let expected = total as f64 * weight(index + 1) / all;
                (count as f64 - expected).powi(2) / expected
            })
            .sum();
        // Five deviations above the mean of this many degrees of freedom.
        let degrees = (words - 1) as f64;
        let most = degrees + 5.0 * (2.0 * degrees).sqrt();
        assert!(
            chi_square < most,
            "{exponent}: {chi_square}, at most {most}"
        );
    }
}

#[test]
fn numbers_are_numbers_of_every_length() {
    let lines = lines("numbers 50000 -");
    assert_eq!(lines.len(), 50_000);
    let (mut negative, mut decimals) = (0, 0);
    let mut digits = [0; 19];
    let mut fraction_digits = [0; 7];
    for line in &lines {
        assert!(line.parse::<f64>().is_ok(), "{line}");
        let unsigned = line.strip_prefix('-').unwrap_or(line);
        negative += u32::from(unsigned.len() < line.len());
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        assert!(whole == "0" || !whole.starts_with('0'), "{line}");
        assert!(
            (whole.to_owned() + fraction)
                .bytes()
                .all(|digit| digit.is_ascii_digit())
        );
        digits[whole.len()] += 1;
        fraction_digits[fraction.len()] += 1;
        decimals += u32::from(unsigned.contains('.'));
    }
    assert!((24_000..26_000).contains(&negative), "{negative}");
    assert!((24_000..26_000).contains(&decimals), "{decimals}");
    assert!(
        digits[1..]
            .iter()
            .all(|count| (2_500..3_060).contains(count)),
        "{digits:?}"
    );
    let decimals = &fraction_digits[1..];
    assert!(
        decimals.iter().all(|count| (3_800..4_540).contains(count)),
        "{decimals:?}"
    );
}

/// Python's reader takes the fields apart, and this says what they are.
const READ_CSV: &str = "
import csv, sys, datetime
lines = list(csv.reader(open(0, newline=''), strict=True))
assert lines[0] == ['id', 'time', 'count', 'price', 'note'], lines[0]
notes = []
for number, (id, time, count, price, note) in enumerate(lines[1:]):
    assert int(id) == number, id
    assert 2000 <= datetime.datetime.strptime(time, '%Y-%m-%dT%H:%M:%SZ').year < 2032, time
    assert abs(int(count)) < 10**9, count
    assert 0 <= float(price) < 10**4 and '.' in price, price
    notes.append(note)
    words = note.replace(',', '').replace('\"', ' ').split()
    assert 2 <= len(words) <= 8 and all(word.isalpha() for word in words), note
print(len(notes), *(sum(mark in note for note in notes) for mark in (',', '\"', '\\n')))
";

#[test]
fn comma_separated_values_are_read_by_others() {
    let mut python = Command::new("python3")
        .args(["-c", READ_CSV])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = output("csv 40000 -");
    python.stdin.take().unwrap().write_all(&text).unwrap();
    let result = python.wait_with_output().unwrap();
    assert!(result.status.success());
    let told = String::from_utf8(result.stdout).unwrap();
    let counts: Vec<u32> = told
        .split_whitespace()
        .map(|count| count.parse().unwrap())
        .collect();
    let [records, commas, quotes, breaks] = counts[..] else {
        panic!("{told}")
    };
    assert_eq!(records, 40_000);
    assert!((4_650..5_350).contains(&commas), "{told}");
    assert!((1_070..1_430).contains(&quotes), "{told}");
    assert!((500..750).contains(&breaks), "{told}");
    // The header is there without any record, and does not count.
    assert_eq!(output("csv 0 -"), b"id,time,count,price,note\n");
}

#[test]
fn flags_out_of_range_are_refused() {
    for (line, expected) in [
        ("text --words 0 5 -", "not between 1 and 10000"),
        ("text --vocabulary 0 5 -", "not between 1 and"),
        ("text --exponent 11 5 -", "at most 10"),
        ("numbers --checksum 5 -", "unexpected argument"),
        ("csv --bytes 25% -", "not a part of something"),
        (
            "text --files 2 5 -",
            "several files cannot go to standard output",
        ),
        ("text 9000000000000000000 -", "at most"),
    ] {
        refused(line, expected);
    }
}
