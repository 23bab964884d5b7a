//! Sorting the entries of a partition.

use rdst::{RadixKey, RadixSort};
use sortmill::stage::kernel::{self, Entry};
use sortmill::stage::sort::{Keys, Slab};

use crate::data::{Partitions, hash, order};
use crate::timing::{Bench, Group, Watch};

/// Entries of partitions of the best size: words that differ early, words of which few differ, and words
/// that come in order already.
pub fn sort_entries(bench: &Bench) {
    if !bench.wants("sort") {
        return;
    }
    let partitions = Partitions::new(bench, false);
    let random = entries(&partitions);
    drop(partitions);
    let few = map(&random, |word| word % 1000);
    let skewed = map(&random, |word| {
        (word & 0xffff_ffff) >> (((word >> 32) & 0xf) * 2)
    });
    let mut ascending = random.clone();
    ascending.iter_mut().for_each(|entries| entries.sort());
    for (name, entries) in [
        ("sort, random words", random),
        ("sort, 1000 words", few),
        ("sort, skewed words", skewed),
        ("sort, in order already", ascending),
    ] {
        group(name, entries).run(bench);
    }
}

/// What a worker has: a table whose first part is sorted with the help of the second.
struct State {
    /// As they were laid out.
    unsorted: Vec<Vec<Entry>>,
    /// The worker's table, one for each partition so that none is warm.
    tables: Vec<Vec<Entry>>,
    keyed: Vec<Keyed>,
}

fn group<'a>(name: &str, unsorted: Vec<Vec<Entry>>) -> Group<'a, State> {
    let records: usize = unsorted.iter().map(Vec::len).sum();
    let tables = unsorted.iter().map(|entries| vec![0; 2 * entries.len()]);
    let state = State {
        tables: tables.collect(),
        unsorted,
        keyed: Vec::new(),
    };
    Group::new(name, records, records * size_of::<Entry>(), state)
        .variant("kernel::sort_entries, with scratch", |state, watch| {
            each(state, watch, kernel::sort_entries)
        })
        .variant("sort_unstable, its way without scratch", |state, watch| {
            each(state, watch, |entries, _| entries.sort_unstable())
        })
        .variant("rdst, 12 bytes of 16", with_rdst)
        .variant("American flag, in place", |state, watch| {
            each(state, watch, |entries, _| american_flag(entries))
        })
        .variant("least significant digit, 11 bits", |state, watch| {
            each(state, watch, least_significant_first)
        })
}

/// Sorts the entries of each partition, in a table that was filled just before, as laying out does.
fn each(state: &mut State, watch: &mut Watch, sort: impl Fn(&mut [Entry], &mut [Entry])) -> u64 {
    let mut sum = 0_u64;
    for (unsorted, table) in state.unsorted.iter().zip(&mut state.tables) {
        let (entries, scratch) = table.split_at_mut(unsorted.len());
        entries.copy_from_slice(unsorted);
        watch.time(|| sort(entries, scratch));
        sum = sum.wrapping_add(hash_entries(entries.iter().copied()));
    }
    sum
}

fn hash_entries(entries: impl Iterator<Item = Entry>) -> u64 {
    hash(entries.map(|entry| kernel::word(entry) ^ entry as u64))
}

/// An entry as rdst sees it: word and ordinal, from the lowest byte; the location decides nothing.
#[derive(Clone, Copy)]
struct Keyed(Entry);

impl RadixKey for Keyed {
    const LEVELS: usize = 12;

    #[inline]
    fn get_level(&self, level: usize) -> u8 {
        (self.0 >> (32 + 8 * level)) as u8
    }
}

fn with_rdst(state: &mut State, watch: &mut Watch) -> u64 {
    let mut sum = 0_u64;
    for unsorted in &state.unsorted {
        state.keyed.clear();
        state
            .keyed
            .extend(unsorted.iter().map(|&entry| Keyed(entry)));
        watch.time(|| state.keyed.radix_sort_unstable());
        sum = sum.wrapping_add(hash_entries(state.keyed.iter().map(|keyed| keyed.0)));
    }
    sum
}

/// Six scatters of 11 bits from the lowest bit of the word on; entries come in the order of their ordinals,
/// so ties keep it.
fn least_significant_first(entries: &mut [Entry], scratch: &mut [Entry]) {
    const BITS: u32 = 11;
    let (mut from, mut to) = (entries, scratch);
    for step in 0..6 {
        let part = |entry: Entry| (kernel::word(entry) >> (BITS * step)) as usize % (1 << BITS);
        let mut next = [0_u32; 1 << BITS];
        from.iter().for_each(|&entry| next[part(entry)] += 1);
        let mut sum = 0;
        for start in &mut next {
            (*start, sum) = (sum, sum + *start);
        }
        for &entry in from.iter() {
            let place = &mut next[part(entry)];
            to[*place as usize] = entry;
            *place += 1;
        }
        (from, to) = (to, from);
    }
}

/// One step in place, of 11 bits, each swap putting one entry into its part; then comparison (McIlroy, Bostic
/// and McIlroy 1993).
fn american_flag(entries: &mut [Entry]) {
    const BITS: u32 = 11;
    let words = || entries.iter().map(|&entry| kernel::word(entry));
    let min = words().min().unwrap_or(0);
    let span = words().max().unwrap_or(0) - min;
    let shift = (64 - span.leading_zeros()).saturating_sub(BITS);
    let part = |entry: Entry| ((kernel::word(entry) - min) >> shift) as usize;
    let mut ends = [0; 1 << BITS];
    entries.iter().for_each(|&entry| ends[part(entry)] += 1);
    let mut starts = [0; 1 << BITS];
    let mut sum = 0;
    for (start, end) in starts.iter_mut().zip(&mut ends) {
        *start = sum;
        sum += *end;
        *end = sum;
    }
    let mut heads = starts;
    for own in 0..heads.len() {
        while heads[own] < ends[own] {
            let home = part(entries[heads[own]]);
            if home != own {
                entries.swap(heads[own], heads[home]);
            }
            heads[home] += 1;
        }
    }
    for (start, end) in starts.into_iter().zip(ends) {
        entries[start..end].sort_unstable();
    }
}

/// The entries of all partitions, as laying out makes them.
fn entries(partitions: &Partitions) -> Vec<Vec<Entry>> {
    (0..partitions.count())
        .map(|partition| {
            let mut entries = vec![0; partitions.records_max];
            let framed = partitions.framed(partition, false);
            let block_bytes = partitions.block_bytes();
            let laid = Slab::lay_out(
                &order(),
                &framed,
                block_bytes,
                Keys::default(),
                None,
                &mut entries,
            );
            let Ok((_, load)) = laid else {
                panic!("the blocks are sound");
            };
            entries.truncate(load.records as usize);
            entries
        })
        .collect()
}

/// The same entries with other words, in the order of their ordinals.
fn map(entries: &[Vec<Entry>], word: impl Fn(u64) -> u64) -> Vec<Vec<Entry>> {
    let one = |entries: &Vec<Entry>| {
        let changed = entries.iter().map(|&entry| {
            let word = word(kernel::word(entry));
            kernel::entry(word, kernel::ordinal(entry), kernel::location(entry))
        });
        changed.collect()
    };
    entries.iter().map(one).collect()
}
