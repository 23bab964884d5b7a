//! Kinds of keys and values behind their lengths.

use std::collections::HashSet;

use super::{output, refused};

/// Keys and values, one by one.
fn pairs(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut pairs = Vec::new();
    let mut rest = bytes;
    while let Some((head, behind)) = rest.split_at_checked(8) {
        let key_bytes = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
        let value_bytes = u32::from_le_bytes(head[4..].try_into().unwrap()) as usize;
        let (key, behind) = behind.split_at(key_bytes);
        let (value, behind) = behind.split_at(value_bytes);
        pairs.push((key, value));
        rest = behind;
    }
    assert!(rest.is_empty());
    pairs
}

/// The largest ones are longer than a buffer, so that they are written in parts by several threads.
#[test]
fn lengths_keep_paretos_law() {
    let bytes = output("pareto --largest 5MB --bytes 30MB -");
    assert!(
        (29_000_000..=30_000_000).contains(&bytes.len()),
        "{}",
        bytes.len()
    );
    let pairs = pairs(&bytes);
    for (number, (_, value)) in pairs.iter().enumerate() {
        assert_eq!(value[..8], (number as u64).to_le_bytes());
    }
    let keys: HashSet<&[u8]> = pairs.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys.len(), pairs.len());

    let keys: Vec<usize> = pairs.iter().map(|(key, _)| key.len()).collect();
    let values: Vec<usize> = pairs.iter().map(|(_, value)| value.len()).collect();
    for lengths in [&keys, &values] {
        let largest = lengths
            .iter()
            .filter(|&&length| length == 5_000_000)
            .count();
        assert_eq!(largest, 1);
        assert!(
            lengths
                .iter()
                .all(|length| (100..=5_000_000).contains(length))
        );
        for limit in [150, 200, 400, 1_000, 5_000, 20_000] {
            let longer = lengths.iter().filter(|&&length| length >= limit).count() as f64;
            let expected = lengths.len() as f64 * (limit as f64 / 100.0).powf(-1.5);
            let bound = 5.0 * expected.sqrt() + 1.0;
            assert!(
                (longer - expected).abs() < bound,
                "{limit}: {longer}, {expected}"
            );
        }
    }
    let planted = |lengths: &[usize]| lengths.iter().position(|&length| length == 5_000_000);
    assert_ne!(planted(&keys), planted(&values));
}

#[test]
fn the_largest_are_planted_wherever_the_seed_says() {
    let mut places = HashSet::new();
    for seed in 0..20 {
        let bytes = output(&format!("pareto --largest 20000 --seed {seed} 50 -"));
        let pairs = pairs(&bytes);
        assert_eq!(pairs.len(), 50);
        let key = pairs.iter().position(|(key, _)| key.len() == 20_000);
        let value = pairs.iter().position(|(_, value)| value.len() == 20_000);
        places.insert((key.unwrap(), value.unwrap()));
    }
    assert!(places.len() > 15, "{places:?}");
    // Of one record both are the largest; of none there is nothing.
    assert_eq!(output("pareto --largest 20000 1 -").len(), 8 + 2 * 20_000);
    assert_eq!(output("pareto --largest 20000 0 -").len(), 0);
}

#[test]
fn empty_ones_are_a_quarter_each() {
    let bytes = output("empty 40000 -");
    let mut counts = [[0; 2]; 2];
    for (number, (key, value)) in pairs(&bytes).into_iter().enumerate() {
        counts[usize::from(key.is_empty())][usize::from(value.is_empty())] += 1;
        assert!(key.len() <= 32 && value.len() <= 64);
        let told = (number as u64).to_le_bytes();
        let beginning = value.len().min(8);
        assert_eq!(value[..beginning], told[..beginning]);
    }
    for count in counts.as_flattened() {
        assert!((9_500..10_500).contains(count), "{counts:?}");
    }
}

#[test]
fn what_has_no_room_is_refused() {
    for (line, expected) in [
        (
            "pareto --largest 100 5 -",
            "101 to 1073741824 bytes, not 100",
        ),
        ("pareto --largest 2GiB 5 -", "not 2147483648"),
        (
            "pareto --largest 5MB --bytes 10MB -",
            "have no room for a key and a value of 5000000",
        ),
    ] {
        refused(line, expected);
    }
}
