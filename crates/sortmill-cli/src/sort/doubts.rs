//! What `sort --debug` says on stderr of keys that may not be what was meant.
//!
//! The cases are those of GNU coreutils 9.1, the words ours.

use sortmill::line_keys::LastResort;

use super::keys::{Key, Keys, Options};
use super::words::OldKey;
use crate::common::noted;

/// Everything that is doubtful, one line for each, after the one that says how text is compared.
pub fn doubts(keys: &Keys, old_keys: &[OldKey]) -> String {
    let mut lines = vec!["text is ordered by its bytes".to_owned()];
    for OldKey { old, new } in old_keys {
        lines.push(format!(
            "{old} is an old form of a key; -k {new} is the same"
        ));
    }
    let has_separator = keys.order.separator.is_some();
    for (number, key) in (1..).zip(&keys.written) {
        let options = of(key, keys.global);
        let told = doubt(key, options, has_separator);
        lines.extend(told.map(|told| format!("key {number} {told}")));
    }
    lines.extend(numbers(keys));
    lines.extend(without_effect(keys));
    lines.iter().map(|line| noted(line)).collect()
}

/// What counts for `key`.
fn of(key: &Key, global: Options) -> Options {
    if key.inherits() { global } else { key.options }
}

fn doubt(key: &Key, options: Options, has_separator: bool) -> impl Iterator<Item = String> {
    let (start, end) = (key.start, key.end);
    let never = end.is_some_and(|(field, _)| field < start.0);
    let within_line = end.is_some_and(|(field, byte)| field == 1 && byte != 0);
    let (skips_start, skips_end) = options.skips_blanks();
    let counts_blanks = !skips_start && (!options.is_understood() || start.1 > 1)
        || !skips_end && end.is_some_and(|(_, byte)| byte != 0);
    let spans = options.is_number() && end.is_none_or(|(field, _)| start.0 < field);
    let cases = [
        (never, "ends before it begins, so it decides nothing"),
        (
            !never && !has_separator && !within_line && counts_blanks,
            "begins with the blanks in front of its field; b leaves them out",
        ),
        (spans, "is a number and spans several fields"),
    ];
    let true_ones = cases.into_iter().filter(|(is_true, _)| *is_true);
    true_ones.map(|(_, told)| told.to_owned())
}

/// What belongs to a number.
fn numbers(keys: &Keys) -> Vec<String> {
    let of_line = [keys.global];
    let all: Vec<Options> = match keys.written.is_empty() {
        true => of_line.to_vec(),
        false => keys
            .written
            .iter()
            .map(|key| of(key, keys.global))
            .collect(),
    };
    if !all.iter().any(|options| options.is_number()) {
        return Vec::new();
    }
    let spanning = keys.written.iter().filter(|key| {
        let options = of(key, keys.global);
        options.is_number() && key.end.is_none_or(|(field, _)| key.start.0 < field)
    });
    let spanning: Vec<Options> = spanning.map(|key| of(key, keys.global)).collect();
    let is_general = spanning
        .iter()
        .any(|options| options.letters().contains('g'));
    let part = match keys.order.separator {
        _ if spanning.is_empty() => None,
        Some(b'.') => return vec!["the separator . is the point of numbers too".into()],
        Some(b'-') => Some("the separator - is the sign of numbers too"),
        Some(b'+') if is_general => Some("the separator + is the sign of numbers too"),
        _ => None,
    };
    let point = "a point stands before the fraction of a number, and nothing between thousands";
    part.into_iter().chain([point]).map(str::to_owned).collect()
}

/// Options for all keys that none of them has.
fn without_effect(keys: &Keys) -> Vec<String> {
    if keys.written.is_empty() || keys.written.iter().any(Key::inherits) {
        return Vec::new();
    }
    let taken: String = keys
        .written
        .iter()
        .map(|key| key.options.letters())
        .collect();
    // One letter for both ends of a field, of which a key may have one.
    let ends = |of: &Options| of.skips_blanks();
    let of_keys = || keys.written.iter().map(|key| ends(&key.options));
    let (skips_start, skips_end) = ends(&keys.global);
    let idle_b = skips_start && !of_keys().any(|(start, _)| start)
        || skips_end && !of_keys().any(|(_, end)| end);
    let idle = |letter: &char| match letter {
        'b' => idle_b,
        letter => !taken.contains(*letter),
    };
    let mut letters: String = keys.global.letters().chars().filter(idle).collect();
    let mut told = Vec::new();
    let decides_ties = keys.order.last_resort != LastResort::Place && letters.contains('r');
    if decides_ties {
        letters.retain(|letter| letter != 'r');
    }
    if !letters.is_empty() {
        told.push(format!(
            "-{letters} counts for no key: each has options of its own"
        ));
    }
    if decides_ties {
        told.push("-r counts only where keys are equal".into());
    }
    told
}
