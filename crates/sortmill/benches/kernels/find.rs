//! Which slot of the table each record falls into, and the batch sorted by slot.

use std::hint::black_box;

use sortmill::order::Order;
use sortmill::stage::partition::{Scratch, partition};
use sortmill::table::Table;

use crate::data::{Chunks, hash, order, table};
use crate::timing::{Bench, Group, Watch};

const SLOTS: [usize; 3] = [64, 299, 4096];

/// The search alone, in a chunk that has just been read.
pub fn find_partition(bench: &Bench) {
    if !bench.wants("find") {
        return;
    }
    let order = order();
    for slots in SLOTS {
        let slots = bench.size(slots, slots.min(300));
        let table = table(&order, slots);
        let words = words(&order, &table);
        let eytzinger = Eytzinger::new(&words);
        let tops = [12, 16].map(|bits| Tops::new(&words, bits));
        let chunks = Chunks::new(bench);
        let (records, bytes) = (chunks.records(), chunks.bytes());
        Group::new(
            format!("find partition, {slots} slots"),
            records,
            bytes,
            chunks,
        )
        .variant("Table::slot", |chunks, watch| {
            let mut key = Vec::new();
            each(chunks, watch, |record, chunk| {
                table.slot(&order, record, order.word(record, 0), chunk, &mut key)
            })
        })
        .variant("binary search of all words", |chunks, watch| {
            each(chunks, watch, |record, _| {
                let word = order.word(record, 0);
                words.partition_point(|&bound| bound < word)
            })
        })
        .variant("Eytzinger, without a branch", |chunks, watch| {
            each(chunks, watch, |record, _| {
                eytzinger.slot(order.word(record, 0))
            })
        })
        .variant("top 12 bits, then one by one", |chunks, watch| {
            each(chunks, watch, |record, _| {
                tops[0].slot(order.word(record, 0))
            })
        })
        .variant("top 16 bits, then one by one", |chunks, watch| {
            each(chunks, watch, |record, _| {
                tops[1].slot(order.word(record, 0))
            })
        })
        .run(bench);
    }
}

/// The whole of `partition`: search, counting, indexes.
pub fn partition_batches(bench: &Bench) {
    if !bench.wants("partition") {
        return;
    }
    let order = order();
    for slots in SLOTS {
        let slots = bench.size(slots, slots.min(300));
        let table = table(&order, slots);
        let chunks = Chunks::new(bench);
        let (records, bytes) = (chunks.records(), chunks.bytes());
        Group::new(format!("partition, {slots} slots"), records, bytes, chunks)
            .variant("partition", |chunks, watch| {
                let mut scratch = Scratch::default();
                let mut sum = 0;
                for number in 0..chunks.count() {
                    let batch = chunks.warm_batch(number);
                    watch.time(|| partition(&order, &table, &batch, &mut scratch, |_| true));
                    let (rows, _) = scratch.rows_and_spare();
                    sum ^= hash(rows.iter().map(|&row| u64::from(row)));
                }
                sum
            })
            .run(bench);
    }
}

/// Times `slot` over all records of each chunk.
fn each(chunks: &Chunks, watch: &mut Watch, mut slot: impl FnMut(&[u8], u64) -> usize) -> u64 {
    let mut sum = 0_u64;
    for number in 0..chunks.count() {
        let batch = black_box(chunks.warm_batch(number));
        sum += watch.time(|| {
            let slots = batch.records().map(|record| slot(record, batch.chunk));
            slots
                .zip(1..)
                .map(|(slot, at)| slot as u64 * at)
                .sum::<u64>()
        });
    }
    sum
}

/// Word 0 of each boundary.
fn words(order: &Order, table: &Table) -> Vec<u64> {
    (0..table.slot_count() - 1)
        .map(|slot| {
            let (_, upper) = table.around(slot);
            order.word_of_key(&upper.expect("a boundary above it").key, 0)
        })
        .collect()
}

/// Words in the order of a breadth-first walk of their search tree, filled up to a whole tree: each step is
/// a comparison and an addition (Khuong and Morin 2017). Ties are not decided.
struct Eytzinger {
    tree: Vec<u64>,
    levels: u32,
}

impl Eytzinger {
    fn new(words: &[u64]) -> Self {
        let levels = (words.len() + 1).next_power_of_two().ilog2();
        let mut tree = vec![u64::MAX; 1 << levels];
        fn fill(tree: &mut [u64], node: usize, words: &mut impl Iterator<Item = u64>) {
            if node < tree.len() {
                fill(tree, 2 * node, words);
                tree[node] = words.next().unwrap_or(u64::MAX);
                fill(tree, 2 * node + 1, words);
            }
        }
        fill(&mut tree, 1, &mut words.iter().copied());
        Self { tree, levels }
    }

    #[inline]
    fn slot(&self, word: u64) -> usize {
        let mut node = 1;
        for _ in 0..self.levels {
            node = 2 * node + usize::from(self.tree[node] < word);
        }
        node - self.tree.len()
    }
}

/// The engine's first step with any number of bits, then a comparison with each boundary of the stretch:
/// none or one of them, mostly. Ties are not decided.
struct Tops {
    shift: u32,
    below: Vec<u32>,
    words: Vec<u64>,
}

impl Tops {
    fn new(words: &[u64], bits: u32) -> Self {
        let shift = 64 - bits;
        let below = (0..=1_u64 << bits)
            .map(|top| words.partition_point(|word| (word >> shift) < top) as u32)
            .collect();
        Self {
            shift,
            below,
            words: words.to_vec(),
        }
    }

    #[inline]
    fn slot(&self, word: u64) -> usize {
        let top = (word >> self.shift) as usize;
        let (from, to) = (self.below[top] as usize, self.below[top + 1] as usize);
        let near = &self.words[from..to];
        from + near.iter().filter(|&&bound| bound < word).count()
    }
}
