//! Click logs: when who clicked on what, in sessions that are told apart by any pause in a wide range.
//!
//! ```text
//! 1767225600013<tab>004711<tab>/tine/ro
//! milliseconds since 1970, user, path
//! ```
//!
//! Time is cut into stretches of 20 minutes. In each only every third user clicks, the same ones again three
//! stretches later: so what a user does in one stretch is one session, whoever says that a session ends with a
//! pause of 21 to 39 minutes, and a model needs only to count the pairs of user and stretch.
//!
//! ```text
//! stretch    0       1       2       3       4      ...
//! users      0 3 6   1 4 7   2 5 8   0 3 6   1 4 7  ...
//! line       | 1,200 seconds' lines each, visits of 1 to 19 clicks mixed all over it
//! ```
//!
//! A stretch consists of visits; whose each is, is drawn by Zipf's law, and several by one user are one session.

use super::Amount;
use super::data::{Data, Draws, scaled};
use super::digits;
use super::permutation::Permutation;
use super::words::{Vocabulary, WORD_BYTES_MAX};
use super::zipf::Alias;
use crate::error::{Error, ErrorKind, Result};

/// Lines of a click log.
pub struct Clicks {
    seed: u64,
    per_second: u64,
    /// The clicks of a stretch, mixed: a turn for each stretch.
    mixed: Permutation,
    /// What users' ranks are drawn from, for each visit.
    visits_seed: u64,
    ranks: Alias,
    /// Which user has a rank: a turn for each group of users.
    users: Permutation,
    user_digits: usize,
    vocabulary: Vocabulary,
}

/// One of so many users clicks in a stretch.
pub const GROUPS: u32 = 3;
/// The seconds of a stretch.
pub const STRETCH_SECONDS: u64 = 1_200;
/// The first click's time, in milliseconds: the year 2026 begins.
pub const START_MS: u64 = 1_767_225_600_000;
/// A click is told less than so many milliseconds late.
pub const LATE_MS: u64 = 5_000;
/// The most users.
pub const USERS_MAX: u32 = 3 << 22;
/// The most clicks in a second.
pub const PER_SECOND_MAX: u64 = 1_000_000;

/// Milliseconds with 13 digits are told until the year 2286.
const TIME_DIGITS: usize = 13;
const SECONDS_MAX: u64 = (10_000_000_000_000 - START_MS) / 1_000 - STRETCH_SECONDS;

/// How many clicks the visits have of which stretches are made: 60 in all, 6 in the mean.
const VISIT_CLICKS: [usize; 10] = [1, 1, 2, 2, 3, 4, 6, 9, 13, 19];
const PATTERN_CLICKS: u64 = 60;
const PATTERN_VISITS: u64 = VISIT_CLICKS.len() as u64;

/// Which visit of the pattern each of its clicks belongs to.
const VISIT_OF: [u8; PATTERN_CLICKS as usize] = {
    let mut visit_of = [0; PATTERN_CLICKS as usize];
    let (mut visit, mut click) = (0, 0);
    while visit < VISIT_CLICKS.len() {
        let end = click + VISIT_CLICKS[visit];
        while click < end {
            visit_of[click] = visit as u8;
            click += 1;
        }
        visit += 1;
    }
    assert!(click == visit_of.len());
    visit_of
};
const _: () = assert!(STRETCH_SECONDS.is_multiple_of(PATTERN_CLICKS));

const VOCABULARY_WORDS: u32 = 5_000;
const WORDS: usize = 2;

impl Clicks {
    /// Clicks of `users`, 1 to [`USERS_MAX`] and made a multiple of [`GROUPS`], of whom the `k`-th most active in
    /// each group makes a visit in proportion to `1 / k^exponent`, `per_second` clicks in each second, 1 to
    /// [`PER_SECOND_MAX`]. There will be `amount` of them.
    ///
    /// # Errors
    /// A usage error for so much that it may go on beyond the year 2286.
    pub fn new(
        seed: u64,
        users: u32,
        exponent: f64,
        per_second: u64,
        amount: Amount,
    ) -> Result<Self> {
        let ranks = users.div_ceil(GROUPS);
        let users = u64::from(ranks * GROUPS);
        let mut draws = Draws::of(seed, u64::MAX - 1);
        let clicks = Self {
            seed,
            per_second,
            mixed: Permutation::new(draws.other(), per_second * STRETCH_SECONDS),
            visits_seed: draws.word(),
            ranks: Alias::zipf(ranks, exponent),
            users: Permutation::new(draws.other(), ranks.into()),
            user_digits: digits::count(users - 1),
            vocabulary: Vocabulary::new(seed, VOCABULARY_WORDS, 1.0),
        };
        let most = match amount {
            Amount::Records(count) => count,
            // Words of one letter.
            Amount::Bytes(bytes) => bytes / (clicks.path_at() + 2 * WORDS + 1) as u64,
        };
        if most / per_second > SECONDS_MAX {
            let cause = format!(
                "{most} clicks, {per_second} in a second, may go on beyond the year 2286, which times have no \
                 digits for"
            );
            return Err(
                Error::new(ErrorKind::Usage, "generating a click log", cause)
                    .hint("Choose fewer clicks, or more in a second."),
            );
        }
        Ok(clicks)
    }

    /// Where in a line its path begins.
    fn path_at(&self) -> usize {
        TIME_DIGITS + 1 + self.user_digits + 1
    }

    /// Whose the clicks from `first` on are, and when. Each step is done for all of them before the next one, which
    /// waits for it: so a click's does not wait for another click's.
    fn fetch(&self, first: u64, clicks: &mut [Click]) {
        let stretch_clicks = self.per_second * STRETCH_SECONDS;
        let stretch_visits = stretch_clicks / PATTERN_CLICKS * PATTERN_VISITS;
        for (number, click) in (first..).zip(clicks.iter_mut()) {
            click.stretch = number / stretch_clicks;
            click.place = number % stretch_clicks;
            click.user = self.mixed.number(click.stretch, click.place);
        }
        for click in clicks.iter_mut() {
            let in_pattern = VISIT_OF[(click.user % PATTERN_CLICKS) as usize];
            let visit = click.user / PATTERN_CLICKS * PATTERN_VISITS + u64::from(in_pattern);
            let visit = click.stretch * stretch_visits + visit;
            click.user = self.ranks.draw(&mut Draws::of(self.visits_seed, visit));
        }
        for click in clicks {
            let group = click.stretch % u64::from(GROUPS);
            click.user = self.users.number(group, click.user) * u64::from(GROUPS) + group;
        }
    }

    #[inline]
    fn put(&self, number: u64, click: Click, out: &mut [u8]) -> usize {
        let mut path = Draws::of(self.seed, number);
        let late = path.at(WORDS as u64);
        let time_ms =
            click.stretch * STRETCH_SECONDS * 1_000 + click.place * 1_000 / self.per_second;
        digits::store(START_MS + time_ms + scaled(late, LATE_MS), TIME_DIGITS, out);
        out[TIME_DIGITS] = b'\t';
        digits::store(click.user, self.user_digits, &mut out[TIME_DIGITS + 1..]);
        let mut at = self.path_at();
        out[at - 1] = b'\t';
        for _ in 0..WORDS {
            out[at] = b'/';
            at += self.vocabulary.write(&mut path, &mut out[at + 1..]);
        }
        out[at] = b'\n';
        at + 1
    }
}

/// So many clicks are worked out side by side.
const BATCH_CLICKS: usize = 64;

/// Who clicked when: the clicks of a stretch have places in it.
#[derive(Clone, Copy, Default)]
struct Click {
    stretch: u64,
    place: u64,
    user: u64,
}

impl Data for Clicks {
    fn record_bytes_fixed(&self) -> Option<u64> {
        None
    }

    fn record_bytes_max(&self) -> usize {
        // The last word is stored with what the next one would overwrite.
        self.path_at() + (WORDS + 1) * WORD_BYTES_MAX
    }

    #[inline]
    fn record_bytes(&self, number: u64) -> u64 {
        let mut draws = Draws::of(self.seed, number);
        // Each with the slash before it, as long as the space behind it.
        let path: usize = (0..WORDS).map(|_| self.vocabulary.skip(&mut draws)).sum();
        (self.path_at() + path + 1) as u64
    }

    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let mut click = [Click::default()];
        self.fetch(number, &mut click);
        self.put(number, click[0], out)
    }

    fn fill(&self, first: u64, out: &mut [u8]) -> (u64, usize) {
        let mut batch = [Click::default(); BATCH_CLICKS];
        let (mut next, mut at) = (first, 0);
        loop {
            let fitting = (out.len() - at) / self.record_bytes_max();
            let clicks = &mut batch[..fitting.min(BATCH_CLICKS)];
            if clicks.is_empty() {
                return (next - first, at);
            }
            self.fetch(next, clicks);
            for click in clicks {
                at += self.put(next, *click, &mut out[at..]);
                next += 1;
            }
        }
    }
}
