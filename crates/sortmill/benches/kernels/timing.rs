//! Groups of variants that take turns, and how their times are told.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use sortmill::text;

/// What was asked for.
pub struct Bench {
    /// Whether data are as large as the job's; else small, for a test.
    pub large: bool,
    wanted: Vec<String>,
}

/// Timed rounds of each variant, after one that is not counted.
const ROUNDS: usize = 9;

impl Bench {
    /// `cargo bench` says `--bench`. Other flags are meant for the test programs that `cargo test` starts
    /// with the same ones; anything else is the beginning of a group's name.
    pub fn from_args(args: impl Iterator<Item = String>) -> Self {
        let (flags, wanted): (Vec<String>, Vec<String>) =
            args.partition(|argument| argument.starts_with('-'));
        let large = flags.iter().any(|flag| flag == "--bench");
        if large {
            println!("group,variant,round,records,bytes,cpu_ns,clock_mhz,hash");
        }
        Self { large, wanted }
    }

    /// Whether a group whose name begins so may have been asked for; its data are made only then.
    pub fn wants(&self, group: &str) -> bool {
        let is_wanted = |begin: &String| group.starts_with(begin) || begin.starts_with(group);
        self.wanted.is_empty() || self.wanted.iter().any(is_wanted)
    }

    /// `large` for a benchmark, `small` for a test.
    pub fn size(&self, large: usize, small: usize) -> usize {
        if self.large { large } else { small }
    }
}

/// Counts the processor's time for what is to be measured, and for nothing else: on a machine that others
/// use too, the time on the wall would say how busy they are.
#[derive(Default)]
pub struct Watch {
    ns: u64,
}

/// This thread's processor time. A call takes a quarter of a microsecond: what is timed takes more than ten.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Watch {
    /// Adds the time `work` takes.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began_ns = cpu_ns();
        let made = black_box(work());
        self.ns += cpu_ns() - began_ns;
        made
    }
}

/// Measures what it gives to the watch and answers a hash of the result.
type Run<'a, S> = Box<dyn Fn(&mut S, &mut Watch) -> u64 + 'a>;

/// Variants of one loop over the same data; the first is the engine's own.
pub struct Group<'a, S> {
    name: String,
    records: u64,
    bytes: u64,
    state: S,
    variants: Vec<(String, Run<'a, S>)>,
}

impl<'a, S> Group<'a, S> {
    /// No variant yet. Each will go over `records` records of `bytes` bytes in all.
    pub fn new(name: impl Into<String>, records: usize, bytes: usize, state: S) -> Self {
        Self {
            name: name.into(),
            records: records as u64,
            bytes: bytes as u64,
            state,
            variants: Vec::new(),
        }
    }

    /// One more.
    pub fn variant(
        mut self,
        name: impl Into<String>,
        run: impl Fn(&mut S, &mut Watch) -> u64 + 'a,
    ) -> Self {
        self.variants.push((name.into(), Box::new(run)));
        self
    }

    /// Runs them all in turn and tells the times.
    ///
    /// # Panics
    /// When two variants do not come to the same result.
    pub fn run(mut self, bench: &Bench) {
        let is_wanted = |begin: &String| self.name.starts_with(begin);
        if !bench.wanted.is_empty() && !bench.wanted.iter().any(is_wanted) {
            return;
        }
        let count = self.variants.len();
        let mut times = vec![Vec::new(); count];
        let mut clocks = Vec::new();
        let mut expected = None;
        let rounds = if bench.large { ROUNDS + 1 } else { 1 };
        for round in 0..rounds {
            for turn in 0..count {
                let index = if round % 2 == 0 {
                    turn
                } else {
                    count - 1 - turn
                };
                let (name, run) = &self.variants[index];
                let mut watch = Watch::default();
                let hash = run(&mut self.state, &mut watch);
                let first = *expected.get_or_insert(hash);
                assert_eq!(hash, first, "{}: {name} made something else", self.name);
                if bench.large && round > 0 {
                    let clock_mhz = clock_mhz();
                    clocks.push(clock_mhz);
                    times[index].push(watch.ns);
                    println!(
                        "\"{}\",\"{name}\",{round},{},{},{},{clock_mhz},{hash:016x}",
                        self.name, self.records, self.bytes, watch.ns
                    );
                }
            }
        }
        if bench.large {
            self.tell(&times, median(&clocks), expected.unwrap_or(0));
        }
    }

    fn tell(&self, times: &[Vec<u64>], clock_mhz: u64, hash: u64) {
        eprintln!(
            "\n{}: {} records, {}, {clock_mhz} MHz, hash {hash:016x}",
            self.name,
            text::count(self.records),
            text::bytes(self.bytes),
        );
        eprintln!(
            "  {:<40} {:>21} {:>8} {:>11}  over the first",
            "", "ns a record", "cycles", ""
        );
        for ((name, _), ns) in self.variants.iter().zip(times) {
            let each = |ns: u64| ns as f64 / self.records as f64;
            let (low, middle, high) = spread(ns.iter().map(|&ns| each(ns)));
            let ratios = ns.iter().zip(&times[0]);
            let (least, ratio, most) = spread(ratios.map(|(&ns, &first)| ns as f64 / first as f64));
            eprintln!(
                "  {name:<40} {middle:>6.2} ({low:>5.2} - {high:>5.2}) {:>8.1} {:>11}  \
                 {ratio:.2} ({least:.2} - {most:.2})",
                middle * clock_mhz as f64 / 1e3,
                text::rate(self.bytes, (middle * self.records as f64) as u64),
            );
        }
    }
}

/// Least, median and most.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    (
        sorted[0],
        sorted[sorted.len() / 2],
        sorted[sorted.len() - 1],
    )
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The core's clock now, by a chain of multiplications and exclusive ors, which take 3 + 1 cycles each on
/// every x86-64 and 64-bit Arm of the last ten years: where counters may not be read this still tells
/// cycles, at whatever clock the core runs.
fn clock_mhz() -> u64 {
    const STEPS: u64 = 1 << 20;
    let (factor, mask) = (black_box(0x9e37_79b9_7f4a_7c15_u64), black_box(0x55_u64));
    let mut least_ns = u64::MAX;
    for _ in 0..3 {
        let mut value = black_box(1_u64);
        let began_ns = cpu_ns();
        for _ in 0..STEPS {
            value = value.wrapping_mul(factor) ^ mask;
        }
        black_box(value);
        least_ns = least_ns.min(cpu_ns() - began_ns);
    }
    4 * STEPS * 1000 / least_ns
}
