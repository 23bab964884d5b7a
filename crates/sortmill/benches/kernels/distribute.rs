//! Passes over whole chunks and blocks: fingerprints and checksums, from memory and from the cache.

use sortmill::fingerprint::Fingerprint;
use sortmill::io::frame::{HEADER_BYTES, Header, crc32c};
use sortmill::stage::cut::cut;

use crate::data::{Chunks, KEY, Partitions, order};
use crate::timing::{Bench, Group};

/// Bytes of a chunk that stay in the first-level cache.
const CACHED_RECORDS: usize = 128;

/// What `cut` spends on a chunk, and how much of it is reading the chunk for the first time.
pub fn fingerprints(bench: &Bench) {
    if !bench.wants("fingerprint") {
        return;
    }
    let order = order();
    let chunks = Chunks::new(bench);
    let (records, bytes) = (chunks.records(), chunks.bytes());
    Group::new("fingerprint, from memory", records, bytes, chunks)
        .variant("cut", |chunks, watch| {
            let mut offsets = Vec::with_capacity(1 << 16);
            let mut sum = Fingerprint::default();
            for number in 0..chunks.count() {
                let bytes = chunks.chunk(number);
                sum.merge(&watch.time(|| {
                    let batch = cut(&order, bytes, 0, 0, &mut offsets, 1 << 16, KEY);
                    batch.fingerprint
                }));
            }
            sum.sum as u64
        })
        .variant("Fingerprint::add", |chunks, watch| {
            let mut sum = Fingerprint::default();
            for number in 0..chunks.count() {
                let batch = chunks.batch(number);
                watch.time(|| batch.records().for_each(|record| sum.add(record, KEY)));
            }
            sum.sum as u64
        })
        .run(bench);

    let chunks = Chunks::new(bench);
    Group::new("fingerprint, in cache", records, bytes, chunks)
        .variant("Fingerprint::add", |chunks, watch| {
            let batch = chunks.batch(0);
            let mut sum = Fingerprint::default();
            let rounds = chunks.records().div_ceil(CACHED_RECORDS);
            watch.time(|| {
                for _ in 0..rounds {
                    let some = batch.records().take(CACHED_RECORDS);
                    some.for_each(|record| sum.add(record, KEY));
                }
            });
            sum.sum as u64
        })
        .run(bench);

    let chunks = Chunks::new(bench);
    Group::new("fingerprint, reading alone", records, bytes, chunks)
        .variant("adding up its words", |chunks, watch| {
            (0..chunks.count())
                .map(|number| watch.time(|| sum_of_words(chunks.chunk(number))))
                .fold(0, u64::wrapping_add)
        })
        .run(bench);
}

fn sum_of_words(bytes: &[u8]) -> u64 {
    let words = bytes.as_chunks::<8>().0.iter();
    words.fold(0, |sum, &word| sum.wrapping_add(u64::from_le_bytes(word)))
}

/// The checksum of blocks, when they leave for the temporary file and when they are back.
pub fn checksums(bench: &Bench) {
    if !bench.wants("crc") {
        return;
    }
    let partitions = Partitions::new(bench, false);
    let (records, bytes) = (partitions.records, partitions.bytes);
    Group::new("crc, from memory", records, bytes, partitions)
        .variant("Header::seal", |partitions, watch| {
            let mut sum = 0;
            for partition in 0..partitions.count() {
                for (header, buffer) in partitions.blocks_mut(partition) {
                    watch.time(|| header.seal(buffer));
                    sum += stored_sum(buffer);
                }
            }
            sum
        })
        .variant("Header::open", |partitions, watch| {
            let mut sum = 0;
            for partition in 0..partitions.count() {
                for (header, buffer) in partitions.blocks_mut(partition) {
                    watch
                        .time(|| Header::open(buffer, header))
                        .expect("it was sealed");
                    sum += stored_sum(buffer);
                }
            }
            sum
        })
        .run(bench);

    let partitions = Partitions::new(bench, false);
    Group::new("crc, in cache", records, bytes, partitions)
        .variant("16 KiB at a time", |partitions, watch| {
            crc_again_and_again(partitions, 16 << 10, bytes, |work| watch.time(work))
        })
        .run(bench);
    let partitions = Partitions::new(bench, false);
    Group::new("crc, second-level cache", records, bytes, partitions)
        .variant("256 KiB at a time", |partitions, watch| {
            crc_again_and_again(partitions, 256 << 10, bytes, |work| watch.time(work))
        })
        .run(bench);
}

fn stored_sum(block: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes(
        block[4..8].try_into().expect("four bytes"),
    ))
}

fn crc_again_and_again(
    partitions: &mut Partitions,
    piece_bytes: usize,
    bytes: usize,
    timed: impl FnOnce(&mut dyn FnMut() -> u64) -> u64,
) -> u64 {
    let block = &partitions.blocks_mut(0)[0].1;
    let piece = &block[HEADER_BYTES..block.len().min(HEADER_BYTES + piece_bytes)];
    timed(&mut || {
        let rounds = 0..bytes.div_ceil(piece.len());
        rounds
            .map(|_| u64::from(crc32c(std::hint::black_box(piece))))
            .sum()
    })
}
