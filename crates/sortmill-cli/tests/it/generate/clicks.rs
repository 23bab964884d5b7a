//! Click logs: sessions are found by sorting each user's clicks, and by the rule that made them.

use std::collections::{HashMap, HashSet};

use super::{output, refused};

const START_MS: u64 = 1_767_225_600_000;
const MINUTE_MS: u64 = 60_000;

/// Time in milliseconds, user and path of each line.
fn clicks(line: &str) -> Vec<(u64, u64, String)> {
    let text = String::from_utf8(output(line)).unwrap();
    text.lines()
        .map(|click| {
            let fields: Vec<&str> = click.split('\t').collect();
            let [time, user, path] = fields[..] else {
                panic!("{click}")
            };
            assert_eq!(time.len(), 13, "{click}");
            (
                time.parse().unwrap(),
                user.parse().unwrap(),
                path.to_owned(),
            )
        })
        .collect()
}

/// Sessions, where one ends with a pause of so many milliseconds.
fn sessions(clicks: &[(u64, u64, String)], pause_ms: u64) -> usize {
    let mut times: HashMap<u64, Vec<u64>> = HashMap::new();
    for (time, user, _) in clicks {
        times.entry(*user).or_default().push(*time);
    }
    let of_user = |times: &mut Vec<u64>| {
        times.sort_unstable();
        1 + times
            .windows(2)
            .filter(|two| two[1] - two[0] >= pause_ms)
            .count()
    };
    times.values_mut().map(of_user).sum()
}

#[test]
fn sessions_are_those_of_users_and_stretches() {
    for (users, rate, count) in [
        (300_u64, 2, 20_000),
        (3_000, 5, 40_123),
        (4, 1, 9_000),
        (100, 20, 11),
    ] {
        let clicks = clicks(&format!("clicks --users {users} --rate {rate} {count} -"));
        assert_eq!(clicks.len(), count);
        let stretch = 1_200 * rate;
        let pairs: HashSet<(u64, usize)> = clicks
            .iter()
            .enumerate()
            .map(|(number, (_, user, _))| (*user, number / stretch))
            .collect();
        for pause in [21, 30, 39] {
            let found = sessions(&clicks, pause * MINUTE_MS);
            assert_eq!(found, pairs.len(), "{users} users, {pause} minutes");
        }
        for (number, (time, user, path)) in clicks.iter().enumerate() {
            let late = time - (START_MS + (number * 1_000 / rate) as u64);
            assert!(late < 5_000, "{number}: {late}");
            assert_eq!(*user as usize % 3, number / stretch % 3, "{number}");
            assert!(*user < users.div_ceil(3) * 3, "{user}");
            let words: Vec<&str> = path.strip_prefix('/').unwrap().split('/').collect();
            let is_word = |word: &&str| {
                !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_lowercase())
            };
            assert!(words.len() == 2 && words.iter().all(is_word), "{path}");
        }
        assert!(count < 1_000 || clicks.windows(2).any(|two| two[0].0 > two[1].0));
    }
    // Zeros in front, so that the order of bytes is that of numbers.
    let text = String::from_utf8(output("clicks --users 1000 5 -")).unwrap();
    assert!(
        text.lines()
            .all(|click| click.split('\t').nth(1).unwrap().len() == 4)
    );
}

/// Most users are so rare that a visit of theirs is a session of its own.
#[test]
fn visits_have_the_lengths_that_are_said() {
    let clicks = clicks("clicks --users 3000000 --exponent 0.1 --rate 1 3600 -");
    let mut of_sessions: HashMap<(u64, usize), usize> = HashMap::new();
    for (number, (_, user, _)) in clicks.iter().enumerate() {
        *of_sessions.entry((*user, number / 1_200)).or_default() += 1;
    }
    let mut lengths: Vec<usize> = of_sessions.into_values().collect();
    lengths.sort_unstable();
    let mut expected: Vec<usize> = [1, 1, 2, 2, 3, 4, 6, 9, 13, 19].repeat(60);
    expected.sort_unstable();
    // 600 visits by 3,000,000 users: hardly two by the same one.
    for length in 1..=38 {
        let of = |lengths: &[usize]| lengths.iter().filter(|&&one| one == length).count();
        let (found, wanted) = (of(&lengths), of(&expected));
        assert!(
            found.abs_diff(wanted) <= 3,
            "{found} of {length} clicks, not {wanted}"
        );
    }
}

#[test]
fn users_keep_zipfs_law() {
    for exponent in [0.7, 1.0] {
        let line = format!("clicks --users 30 --exponent {exponent} --rate 10 144000 -");
        let mut counts = [[0_u64; 10]; 3];
        for (_, user, _) in clicks(&line) {
            counts[user as usize % 3][user as usize / 3] += 1;
        }
        for group in &mut counts {
            group.sort_unstable_by(|one, other| other.cmp(one));
        }
        let weight = |rank: usize| (rank as f64).powf(-exponent);
        let all: f64 = (1..=10).map(weight).sum();
        for rank in 1..=10 {
            let found: u64 = counts.iter().map(|group| group[rank - 1]).sum();
            let expected = 144_000.0 * weight(rank) / all;
            // Visits are drawn and not clicks, which makes the variance 11.4 times as large: the sum of the
            // squares of a visit's clicks over that of the clicks.
            let bound = 5.0 * (11.4 * expected).sqrt();
            let off = (found as f64 - expected).abs();
            assert!(off < bound, "{exponent}, rank {rank}: {found}, {expected}");
        }
    }
}

#[test]
fn clicks_out_of_range_are_refused() {
    for (line, expected) in [
        ("clicks --users 0 5 -", "not between 1 and"),
        ("clicks --users 12582913 5 -", "not between 1 and 12582912"),
        ("clicks --rate 0 5 -", "not between 1 and 1000000"),
        ("clicks --rate 1 9000000000 -", "beyond the year 2286"),
        ("clicks --rate 1 --bytes 1TB -", "beyond the year 2286"),
    ] {
        refused(line, expected);
    }
}
