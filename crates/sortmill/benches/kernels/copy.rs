//! Records of a batch into their partitions' blocks.

use sortmill::batch::Batch;
use sortmill::block::Open;
use sortmill::io::{Buffer, Pool};
use sortmill::stage::kernel;
use sortmill::stage::partition::{Scratch, partition};
use sortmill::table::Table;

use crate::data::{Chunks, hash_bytes, order, table};
use crate::streaming;
use crate::timing::{Bench, Group, Watch};

const SLOTS: [usize; 4] = [64, 299, 1024, 4096];

/// The engine's own way, into memory of huge and of small pages.
pub fn into_blocks(bench: &Bench) {
    if !bench.wants("copy into blocks") {
        return;
    }
    for slots in SLOTS {
        let slots = bench.size(slots, slots.min(300));
        let table = table(&order(), slots);
        let state = State::new(bench, slots);
        let small = small_pages(slots, state.block_bytes);
        let (records, bytes) = (state.chunks.records(), state.chunks.bytes());
        let name = format!("copy into blocks, {slots} slots");
        Group::new(name, records, bytes, (state, small))
            .variant("Open::put, huge pages", |(state, _), watch| {
                let State { chunks, blocks, .. } = state;
                put_all(chunks, &table, blocks, watch)
            })
            .variant("Open::put, pages of 4 KiB", |(state, small), watch| {
                put_all(&state.chunks, &table, small, watch)
            })
            .run(bench);
    }
}

/// The copying alone: rows of a batch back to back.
pub fn copy_rows(bench: &Bench) {
    if !bench.wants("copy rows") {
        return;
    }
    for slots in SLOTS {
        let slots = bench.size(slots, slots.min(300));
        let table = table(&order(), slots);
        let state = State::new(bench, slots);
        let (records, bytes) = (state.chunks.records(), state.chunks.bytes());
        let mut group = Group::new(format!("copy rows, {slots} slots"), records, bytes, state);
        let ways: [(&str, Copy); 6] = [
            ("kernel::copy_rows", kernel::copy_rows),
            ("without prefetch", ahead::<0>),
            ("4 records ahead", ahead::<4>),
            ("32 records ahead", ahead::<32>),
            ("without calling memcpy", inlined),
            ("together, then streaming stores", streamed),
        ];
        for (name, copy) in ways {
            let table = &table;
            group = group.variant(name, move |state, watch| {
                copy_all(state, table, copy, watch)
            });
        }
        group.run(bench);
    }
}

/// Rows of a batch back to back.
type Copy = fn(&Batch<'_>, &[u32], &mut [u8]);

/// One block for each slot, as large as the plan makes them.
struct State {
    chunks: Chunks,
    blocks: Vec<Option<Open>>,
    block_bytes: usize,
    plain: Vec<(Buffer, usize)>,
}

impl State {
    fn new(bench: &Bench, slots: usize) -> Self {
        let share = (150 << 20) / slots;
        let block_bytes = (1 << share.ilog2()).clamp(64 << 10, 1 << 20);
        let pool = Pool::new(2 * slots, block_bytes).expect("memory");
        let take = || pool.take().expect("a block for each");
        Self {
            chunks: Chunks::new(bench),
            blocks: (0..slots).map(|_| Some(Open::new(take()))).collect(),
            block_bytes,
            plain: (0..slots).map(|_| (take(), 0)).collect(),
        }
    }
}

/// A pool below 2 MiB does not ask for huge pages: one for each block.
fn small_pages(slots: usize, block_bytes: usize) -> Vec<Option<Open>> {
    (0..slots)
        .map(|_| {
            let pool = Pool::new(1, block_bytes).expect("memory");
            Some(Open::new(pool.take().expect("one buffer")))
        })
        .collect()
}

/// Sorts each chunk's records by slot, then, timed, puts each slot's into its block. A full block is begun
/// anew.
fn put_all(chunks: &Chunks, table: &Table, blocks: &mut [Option<Open>], watch: &mut Watch) -> u64 {
    let order = order();
    let mut scratch = Scratch::default();
    for open in blocks.iter_mut() {
        *open = open.take().map(|open| Open::new(open.into_buffer()));
    }
    for number in 0..chunks.count() {
        let batch = chunks.warm_batch(number);
        partition(&order, table, &batch, &mut scratch, |_| true);
        watch.time(|| {
            for (slot, open) in blocks.iter_mut().enumerate() {
                let range = scratch.rows_of(slot);
                let mut rest = &scratch.rows_and_spare().0[range];
                while !rest.is_empty() {
                    let put = open.as_mut().expect("a block").put(&batch, rest, None);
                    rest = &rest[put..];
                    if put == 0 {
                        *open = open.take().map(|open| Open::new(open.into_buffer()));
                    }
                }
            }
        });
    }
    let used = blocks.iter().flatten();
    used.map(|open| u64::from(open.records()) * u64::from(open.payload_bytes()))
        .fold(0, u64::wrapping_add)
}

/// The same without segments, with any way to copy.
fn copy_all(state: &mut State, table: &Table, copy: Copy, watch: &mut Watch) -> u64 {
    let order = order();
    let mut scratch = Scratch::default();
    for (_, used) in &mut state.plain {
        *used = 0;
    }
    for number in 0..state.chunks.count() {
        let batch = state.chunks.warm_batch(number);
        partition(&order, table, &batch, &mut scratch, |_| true);
        watch.time(|| {
            for (slot, (buffer, used)) in state.plain.iter_mut().enumerate() {
                let range = scratch.rows_of(slot);
                let rows = &scratch.rows_and_spare().0[range];
                let lengths = rows.iter().map(|&row| batch.record(row as usize).len());
                let bytes = lengths.sum::<usize>();
                if *used + bytes > buffer.len() {
                    *used = 0;
                }
                copy(&batch, rows, &mut buffer[*used..*used + bytes]);
                *used += bytes;
            }
        });
    }
    let used = state.plain.iter();
    used.map(|(buffer, used)| hash_bytes(&buffer[..*used]))
        .fold(0, u64::wrapping_add)
}

fn ahead<const AHEAD: usize>(batch: &Batch<'_>, rows: &[u32], into: &mut [u8]) {
    let mut at = 0;
    for (index, &row) in rows.iter().enumerate() {
        if AHEAD > 0
            && let Some(&later) = rows.get(index + AHEAD)
        {
            let from = batch.offsets.range(later as usize).start;
            kernel::prefetch(batch.bytes, from, batch.record(later as usize).len());
        }
        let record = batch.record(row as usize);
        into[at..at + record.len()].copy_from_slice(record);
        at += record.len();
    }
}

/// Records of 64 to 128 bytes as two pieces of 64 that may overlap.
fn inlined(batch: &Batch<'_>, rows: &[u32], into: &mut [u8]) {
    let mut at = 0;
    for (index, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(index + 12) {
            let from = batch.offsets.range(later as usize).start;
            kernel::prefetch(batch.bytes, from, batch.record(later as usize).len());
        }
        let record = batch.record(row as usize);
        let to = &mut into[at..at + record.len()];
        copy_inline(record, to);
        at += record.len();
    }
}

/// Copies `from` into `into`, which is as long.
#[inline(always)]
pub fn copy_inline(from: &[u8], into: &mut [u8]) {
    if (64..=128).contains(&from.len()) {
        let first: [u8; 64] = *from.first_chunk().expect("64 bytes or more");
        let last: [u8; 64] = *from.last_chunk().expect("64 bytes or more");
        *into.first_chunk_mut().expect("as long") = first;
        *into.last_chunk_mut().expect("as long") = last;
    } else {
        into.copy_from_slice(from);
    }
}

/// Copies rows into a piece of the first-level cache, and from there past the caches.
fn streamed(batch: &Batch<'_>, rows: &[u32], into: &mut [u8]) {
    const PIECE_BYTES: usize = 8 << 10;
    let mut piece = [0; PIECE_BYTES];
    let (mut filled, mut at) = (0, 0);
    for (index, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(index + 12) {
            let from = batch.offsets.range(later as usize).start;
            kernel::prefetch(batch.bytes, from, batch.record(later as usize).len());
        }
        let record = batch.record(row as usize);
        if filled + record.len() > PIECE_BYTES {
            streaming::copy(&piece[..filled], &mut into[at..at + filled]);
            at += filled;
            filled = 0;
        }
        piece[filled..filled + record.len()].copy_from_slice(record);
        filled += record.len();
    }
    streaming::copy(&piece[..filled], &mut into[at..at + filled]);
}
