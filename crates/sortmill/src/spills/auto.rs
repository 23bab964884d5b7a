//! Which blocks are worth compressing, of a job that compresses only what costs it no time: numbers in, a codec out. Pure.
//!
//! **Slack** is the part of their time that all workers together had no work while blocks waited for the disk, what they
//! spent on compressing included, in the last whole stretch of time. It says that the disk is what the job waits for; and
//! that the phase to come, which moves about as many bytes and has to decompress, will wait for it, too. What remains of
//! slack although blocks are compressed says that there is time for the codec that makes them smaller still.
//!
//! ```text
//!  slack   0      0.3             0.6
//!          |------|---------------|------------------>
//!           plain  workers: lz4    workers and spiller: lz4, or zstd where they wait for half of their time even so
//! ```

use sortmill_io::codec::BlockCodec;

/// Threads that had nothing else to do for less of their time than this have none for compressing, nor will they for
/// decompressing.
const SLACK_LEAST: f64 = 0.3;
/// From here on the disk is so slow that one more thread can work for it.
const SLACK_PLENTY: f64 = 0.6;
/// Threads that wait for more of their time than this, though blocks are compressed, have time for zstd; it takes some
/// three times as long as lz4.
const WAITING_FOR_ZSTD: f64 = 0.5;
/// Where they wait for less of it than this, they have no time for zstd any more.
const WAITING_FOR_LZ4: f64 = 0.1;
/// Slack is that of a stretch of so long.
pub const STRETCH_NS: u64 = 150_000_000;
/// Blocks in a row that did not shrink are followed by as many that are not tried, twice as many each time, up to this.
const PASSED_MAX: u32 = 256;

/// What is known, and what follows from it.
pub struct Auto {
    worker_count: u64,
    /// The stretch that is being summed up: since when; nanoseconds that all threads together waited, and compressed.
    began_ns: Option<u64>,
    waited_ns: u64,
    worked_ns: u64,
    /// Of the last whole one.
    slack: f64,
    knows_zstd: bool,
    /// Whether zstd's turn has come.
    is_zstd: bool,
    /// Blocks that the next failure has passed over, and that are still to be passed over.
    passes: u32,
    left: u32,
}

impl Auto {
    /// Of a job of which nothing is known yet, in which `worker_count` threads compute.
    #[must_use]
    pub fn new(worker_count: usize, knows_zstd: bool) -> Self {
        Self {
            worker_count: worker_count.max(1) as u64,
            began_ns: None,
            waited_ns: 0,
            worked_ns: 0,
            slack: 0.0,
            knows_zstd,
            is_zstd: false,
            passes: 0,
            left: 0,
        }
    }

    /// A thread has waited for the disk for `ns`, until `now_ns`.
    pub fn waited(&mut self, now_ns: u64, ns: u64) {
        self.waited_ns += ns;
        self.pass(now_ns);
    }

    /// A thread that would have waited has compressed a block instead, for `ns`, until `now_ns`.
    pub fn worked(&mut self, now_ns: u64, ns: u64) {
        self.worked_ns += ns;
        self.pass(now_ns);
    }

    /// By what a thread that would wait now is to compress the next block, if it is to.
    pub fn for_waiting(&mut self, now_ns: u64) -> Option<BlockCodec> {
        self.codec(now_ns, SLACK_LEAST)
    }

    /// By what the thread that writes blocks is to compress the next one first, if it is to.
    pub fn for_writing(&mut self, now_ns: u64) -> Option<BlockCodec> {
        self.codec(now_ns, SLACK_PLENTY)
    }

    /// A block was compressed, or did not become smaller.
    pub fn tried(&mut self, has_shrunk: bool) {
        self.passes = match has_shrunk {
            true => 0,
            false => (2 * self.passes).clamp(1, PASSED_MAX),
        };
        self.left = self.passes;
    }

    fn codec(&mut self, now_ns: u64, slack_least: f64) -> Option<BlockCodec> {
        self.pass(now_ns);
        if self.slack < slack_least {
            return None;
        }
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        Some(match self.is_zstd {
            true => BlockCodec::Zstd,
            false => BlockCodec::Lz4,
        })
    }

    /// Time has passed: a stretch may be over.
    fn pass(&mut self, now_ns: u64) {
        let began_ns = *self.began_ns.get_or_insert(now_ns);
        let passed_ns = now_ns.saturating_sub(began_ns);
        if passed_ns < STRETCH_NS {
            return;
        }
        let part = |ns: u64| ns as f64 / (passed_ns * self.worker_count) as f64;
        let waiting = part(self.waited_ns);
        self.slack = waiting + part(self.worked_ns);
        self.is_zstd = match self.is_zstd {
            true => waiting >= WAITING_FOR_LZ4,
            // Of a stretch in which nothing was compressed nobody knows how much waiting lz4 would leave.
            false => self.knows_zstd && self.worked_ns > 0 && waiting >= WAITING_FOR_ZSTD,
        };
        (self.waited_ns, self.worked_ns) = (0, 0);
        self.began_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches of one thread, each of so many percents of waiting and of compressing: what is thought after each.
    fn check(stretches: &[(u64, u64)], expected: &[Option<BlockCodec>]) {
        let mut auto = Auto::new(1, true);
        auto.waited(0, 0);
        let mut now_ns = 0;
        let thought = stretches.iter().map(|&(waiting, working)| {
            auto.worked(now_ns, STRETCH_NS * working / 100);
            now_ns += STRETCH_NS;
            auto.waited(now_ns, STRETCH_NS * waiting / 100);
            auto.for_waiting(now_ns)
        });
        let thought: Vec<Option<BlockCodec>> = thought.collect();
        assert_eq!(thought, expected, "{stretches:?}");
    }

    const LZ4: Option<BlockCodec> = Some(BlockCodec::Lz4);
    const ZSTD: Option<BlockCodec> = Some(BlockCodec::Zstd);

    #[test]
    fn threads_that_work_have_no_time() {
        check(&[(0, 0), (20, 0), (29, 0)], &[None; 3]);
    }

    #[test]
    fn compressing_does_not_end_what_it_comes_from() {
        check(
            &[(40, 0), (10, 30), (0, 40), (5, 10)],
            &[LZ4, LZ4, LZ4, None],
        );
    }

    #[test]
    fn zstd_where_lz4_leaves_them_waiting() {
        let stretches = [(90, 0), (70, 20), (20, 70), (5, 85), (40, 40), (60, 30)];
        check(&stretches, &[LZ4, ZSTD, ZSTD, LZ4, LZ4, ZSTD]);
        let mut without = Auto::new(1, false);
        without.waited(0, 0);
        without.worked(STRETCH_NS / 2, 1);
        without.waited(STRETCH_NS, STRETCH_NS);
        assert_eq!(without.for_waiting(STRETCH_NS), LZ4);
    }

    #[test]
    fn nothing_is_thought_before_a_stretch_is_over() {
        let mut auto = Auto::new(2, true);
        auto.waited(7 * STRETCH_NS, STRETCH_NS);
        assert_eq!(auto.for_waiting(7 * STRETCH_NS), None);
        // Two threads, each of which waited for half of it.
        auto.waited(8 * STRETCH_NS, 0);
        assert_eq!(auto.for_waiting(8 * STRETCH_NS), LZ4);
        assert_eq!(auto.for_writing(8 * STRETCH_NS), None, "not plenty");
        // What was so once is not so for ever.
        assert_eq!(auto.for_waiting(30 * STRETCH_NS), None);
    }

    #[test]
    fn who_writes_compresses_where_there_is_plenty() {
        let mut auto = Auto::new(1, true);
        auto.waited(0, 0);
        auto.waited(STRETCH_NS, STRETCH_NS * 9 / 10);
        assert_eq!(auto.for_writing(STRETCH_NS), LZ4);
    }

    #[test]
    fn what_does_not_shrink_is_tried_ever_more_seldom() {
        let mut auto = Auto::new(1, true);
        auto.waited(0, 0);
        auto.waited(STRETCH_NS, STRETCH_NS);
        let mut tried = 0;
        for _ in 0..10_000 {
            if auto.for_waiting(STRETCH_NS).is_some() {
                tried += 1;
                auto.tried(false);
            }
        }
        assert!((40..60).contains(&tried), "{tried}");
        auto.tried(true);
        assert!(auto.for_waiting(STRETCH_NS).is_some());
        assert!(auto.for_waiting(STRETCH_NS).is_some());
    }
}
