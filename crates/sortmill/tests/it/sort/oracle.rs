//! What the right answer is, found the obvious way: records as vectors, keys as numbers, a stable sort.
//!
//! Nothing of the engine is used here but the names of formats and keys.

use std::cmp::Ordering;

use sortmill::order::{Format, KeyPart, Number};
use sortmill::yields::Yield;

/// The records of one input; a line that lacks its newline has it.
pub fn records(format: Format, input: &[u8]) -> Vec<Vec<u8>> {
    match format {
        Format::Fixed(size) => input.chunks(size as usize).map(<[u8]>::to_vec).collect(),
        Format::Lines => {
            let mut lines: Vec<Vec<u8>> = input
                .split_inclusive(|&byte| byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            if let Some(last) = lines.last_mut().filter(|last| !last.ends_with(b"\n")) {
                last.push(b'\n');
            }
            lines
        }
        Format::Kv => {
            let mut pairs = Vec::new();
            let mut rest = input;
            while !rest.is_empty() {
                let (pair, after) = rest.split_at(8 + length(rest, 0) + length(rest, 4));
                pairs.push(pair.to_vec());
                rest = after;
            }
            pairs
        }
        // Those of columns have a model of their own.
        Format::Quoted(_) => unreachable!(),
    }
}

/// One of the two lengths in front of a pair's key.
fn length(pair: &[u8], at: usize) -> usize {
    u32::from_le_bytes(pair[at..at + 4].try_into().unwrap()) as usize
}

/// Every record of every input in order, equal keys in input order.
pub fn sorted(format: Format, keys: &[KeyPart], inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = inputs
        .iter()
        .flat_map(|input| records(format, input))
        .collect();
    all.sort_by(|a, b| compare(format, keys, a, b));
    all
}

/// Of sorted records with equal keys the first.
pub fn without_repeats(format: Format, keys: &[KeyPart], sorted: &mut Vec<Vec<u8>>) {
    sorted.dedup_by(|later, first| compare(format, keys, first, later).is_eq());
}

/// What comes out of sorted records.
pub fn yielded(yields: Yield, mut sorted: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let asked = match yields {
        Yield::All => return sorted,
        Yield::Shuffled(_) => unreachable!("the order is drawn"),
        Yield::First(count) => {
            sorted.truncate(count as usize);
            return sorted;
        }
        Yield::Runs(asked) => asked,
    };
    let is_equal = |a: &Vec<u8>, b: &Vec<u8>| match asked.fold {
        true => a.eq_ignore_ascii_case(b),
        false => a == b,
    };
    let runs = sorted.chunk_by(is_equal);
    let wanted = runs.filter(|run| match run.len() {
        1 => !asked.repeated_only,
        _ => !asked.single_only,
    });
    let lines = wanted.map(|run| match asked.counted {
        true => [format!("{:>7} ", run.len()).as_bytes(), &run[0]].concat(),
        false => run[0].clone(),
    });
    lines
        .take(asked.first.map_or(usize::MAX, |first| first as usize))
        .collect()
}

/// Compares the keys of two records.
pub fn compare(format: Format, keys: &[KeyPart], a: &[u8], b: &[u8]) -> Ordering {
    if format == Format::Lines {
        return a[..a.len() - 1].cmp(&b[..b.len() - 1]);
    }
    if format == Format::Kv {
        let key = |pair: &[u8]| pair[8..8 + length(pair, 0)].to_vec();
        return key(a).cmp(&key(b));
    }
    if keys.is_empty() {
        return a.cmp(b);
    }
    keys.iter()
        .map(|part| {
            let range = part.offset as usize..(part.offset + part.bytes) as usize;
            let order = compare_part(part, &a[range.clone()], &b[range]);
            if part.reversed {
                order.reverse()
            } else {
                order
            }
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Numbers are compared as the numbers they are.
fn compare_part(part: &KeyPart, a: &[u8], b: &[u8]) -> Ordering {
    let most_significant_first = |bytes: &[u8]| -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if part.little_endian {
            bytes.reverse();
        }
        bytes
    };
    let (a, b) = (most_significant_first(a), most_significant_first(b));
    match part.number {
        Number::Bytes => a.cmp(&b),
        Number::Unsigned => unsigned(&a).cmp(&unsigned(&b)),
        Number::Signed => signed(&a).cmp(&signed(&b)),
        Number::Float if a.len() == 4 => {
            let float = |bytes: &[u8]| f32::from_be_bytes(bytes.try_into().unwrap());
            float(&a).total_cmp(&float(&b))
        }
        Number::Float => {
            let float = |bytes: &[u8]| f64::from_be_bytes(bytes.try_into().unwrap());
            float(&a).total_cmp(&float(&b))
        }
    }
}

fn unsigned(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0, |sum, &byte| sum << 8 | u128::from(byte))
}

fn signed(bytes: &[u8]) -> i128 {
    let spare = 128 - 8 * bytes.len() as u32;
    ((unsigned(bytes) << spare) as i128) >> spare
}

#[test]
fn the_oracle_knows_numbers() {
    let part = |number, little_endian| KeyPart {
        number,
        little_endian,
        ..KeyPart::plain(0, 2)
    };
    for (number, little_endian, a, b) in [
        (Number::Unsigned, false, [0, 255], [1, 0]),
        (Number::Unsigned, true, [255, 0], [0, 1]),
        (Number::Signed, false, [255, 255], [0, 0]),
        (Number::Signed, true, [0, 128], [255, 127]),
    ] {
        assert_eq!(
            compare_part(&part(number, little_endian), &a, &b),
            Ordering::Less,
            "{number:?} {little_endian} {a:?} {b:?}"
        );
    }
}
