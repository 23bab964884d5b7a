//! A loaded partition to entries, and sorted entries to output: the two passes over its records.

use sortmill::io::{Host, Pool, RingKind};
use sortmill::metrics::{Meter, Stage};
use sortmill::order::Order;
use sortmill::queue::{Queue, Stop};
use sortmill::stage::kernel::{self, Entry};
use sortmill::stage::reduce::Gather;
use sortmill::stage::sort::{self, Keys, Load, Slab};
use sortmill::stage::write::{OutBlock, Output, Seams, Sink};

use crate::copy::copy_inline;
use crate::data::{KEY, Partitions, hash_bytes, line_order, order};
use crate::streaming;
use crate::timing::{Bench, Group, Watch};

/// Checking blocks and making entries.
pub fn lay_out(bench: &Bench) {
    for (name, order, lines) in [
        ("lay out, binary records", order(), false),
        ("lay out, lines", line_order(), true),
    ] {
        if !bench.wants(name) {
            continue;
        }
        let partitions = Partitions::new(bench, lines);
        let entries = vec![0; 2 * partitions.records_max];
        let (records, bytes) = (partitions.records, partitions.bytes);
        let (one, two) = (order.clone(), order);
        Group::new(name, records, bytes, (partitions, entries))
            .variant("Slab::lay_out, with checksums", move |state, watch| {
                lay_out_each(&one, state, true, watch)
            })
            .variant("Slab::lay_out, without", move |state, watch| {
                lay_out_each(&two, state, false, watch)
            })
            .run(bench);
    }
}

fn lay_out_each(
    order: &Order,
    (partitions, entries): &mut (Partitions, Vec<Entry>),
    unchecked: bool,
    watch: &mut Watch,
) -> u64 {
    let mut sum = 0_u64;
    for partition in 0..partitions.count() {
        let framed = partitions.framed(partition, unchecked);
        let block_bytes = partitions.block_bytes();
        let laid = watch
            .time(|| Slab::lay_out(order, &framed, block_bytes, Keys::default(), None, entries));
        let Ok((_, load)) = laid else {
            panic!("the blocks are sound");
        };
        // In whatever order: sorting comes next.
        let made = entries[..load.records as usize].iter();
        sum = made.fold(sum, |sum, &entry| {
            sum.wrapping_add(kernel::word(entry) ^ (entry as u64).rotate_left(7))
        });
    }
    sum
}

/// Taking records in their order: proof, copy into the output.
pub fn gather(bench: &Bench) {
    if !bench.wants("gather") {
        return;
    }
    for (kind, order, lines) in [
        ("binary records", order(), false),
        ("lines", line_order(), true),
    ] {
        let order = &order;
        let state = State::new(bench, order, lines);
        let (records, bytes) = (state.partitions.records, state.partitions.bytes);
        let group =
            |part: &str, state| Group::new(format!("gather, {kind}{part}"), records, bytes, state);
        group("", state)
            .variant("Slab, Gather, Sink", |state, watch| {
                to_sink(state, order, with_proof::<16>, watch)
            })
            .variant("8 records ahead", |state, watch| {
                to_sink(state, order, with_proof::<8>, watch)
            })
            .variant("32 records ahead", |state, watch| {
                to_sink(state, order, with_proof::<32>, watch)
            })
            .variant("without prefetch", |state, watch| {
                to_sink(state, order, with_proof::<0>, watch)
            })
            .variant("without the proof", |state, watch| {
                to_sink(state, order, without_proof, watch)
            })
            .run(bench);
        group(", copying alone", State::new(bench, order, lines))
            .variant("copy_from_slice", |state, watch| {
                to_slice(state, order, watch, |slab, entries, mean, into| {
                    let records = fetched(order, slab, entries, mean);
                    copy_each(records, into, |from, to| to.copy_from_slice(from));
                })
            })
            .variant("without calling memcpy", |state, watch| {
                to_slice(state, order, watch, |slab, entries, mean, into| {
                    let records = fetched(order, slab, entries, mean);
                    copy_each(records, into, copy_inline);
                })
            })
            .variant("together, then streaming stores", |state, watch| {
                to_slice(state, order, watch, |slab, entries, mean, into| {
                    streamed(fetched(order, slab, entries, mean), into);
                })
            })
            .run(bench);
        group(", proof alone", State::new(bench, order, lines))
            .variant("Slab, Gather", |state, watch| {
                proof_alone(state, order, watch)
            })
            .run(bench);
    }
}

struct State {
    partitions: Partitions,
    /// Sorted, for each partition.
    entries: Vec<Vec<Entry>>,
    host: Host,
    pool: Pool,
    blocks: Queue<OutBlock>,
    stop: Stop,
    /// Room for the largest partition's output.
    flat: Vec<u8>,
}

impl State {
    fn new(bench: &Bench, order: &Order, lines: bool) -> Self {
        let partitions = Partitions::new(bench, lines);
        let sorted = (0..partitions.count()).map(|partition| {
            let mut entries = vec![0; 2 * partitions.records_max];
            let framed = partitions.framed(partition, false);
            let block_bytes = partitions.block_bytes();
            let laid = Slab::lay_out(
                order,
                &framed,
                block_bytes,
                Keys::default(),
                None,
                &mut entries,
            );
            let Ok((slab, load)) = laid else {
                panic!("the blocks are sound");
            };
            let (sorted, scratch) = entries.split_at_mut(load.records as usize);
            sort::sort(order, &slab, sorted, scratch);
            sorted.to_vec()
        });
        let entries = sorted.collect();
        let flat = vec![0; bench.size(32 << 20, 128 << 10)];
        let (buffers, buffer_bytes) = (12, bench.size((4 << 20) + (68 << 10), 32 << 10));
        Self {
            partitions,
            entries,
            host: Host::new(RingKind::Posix, false).expect("a host"),
            pool: Pool::new(buffers, buffer_bytes).expect("memory"),
            blocks: Queue::new(2 * buffers),
            stop: Stop::new(),
            flat,
        }
    }
}

/// One partition's records, in the order of its entries, to a sink.
type Way = fn(&Order, &Slab<'_>, &[Entry], usize, &mut Sink<'_>, &mut Meter<'_>);

/// The records of each partition to output buffers, as the phase does.
fn to_sink(state: &mut State, order: &Order, way: Way, watch: &mut Watch) -> u64 {
    let mut sum = 0;
    each(state, order, |state, slab, entries, load| {
        let seams = Seams::default();
        let output = Output {
            pool: &state.pool,
            blocks: &state.blocks,
            seams: &seams,
            ends_exactly: false,
            stage: Stage::Reduce,
            total: Some(load.bytes),
            stop: &state.stop,
        };
        let mut sink = Sink::new(&output, 0);
        let mut meter = Meter::start(&state.host, &[]);
        let record_bytes = (load.bytes / load.records) as usize;
        watch.time(|| {
            way(order, slab, entries, record_bytes, &mut sink, &mut meter);
            sink.finish(&mut meter).expect("the job is not ending");
        });
        while let Some(block) = state.blocks.try_pop() {
            let turn = (block.offset >> 12) as u32;
            sum ^= hash_bytes(&block.buffer[block.range]).rotate_left(turn);
        }
    });
    sum
}

/// The records of each partition to plain memory.
fn to_slice(
    state: &mut State,
    order: &Order,
    watch: &mut Watch,
    copy: impl Fn(&Slab<'_>, &[Entry], usize, &mut [u8]),
) -> u64 {
    let mut into = std::mem::take(&mut state.flat);
    let mut sum = 0;
    each(state, order, |_, slab, entries, load| {
        let record_bytes = (load.bytes / load.records) as usize;
        let into = &mut into[..load.bytes as usize];
        watch.time(|| copy(slab, entries, record_bytes, into));
        sum ^= hash_bytes(into);
    });
    state.flat = into;
    sum
}

fn proof_alone(state: &mut State, order: &Order, watch: &mut Watch) -> u64 {
    let mut sum = 0;
    each(state, order, |_, slab, entries, load| {
        let record_bytes = (load.bytes / load.records) as usize;
        let mut proof = Gather::new(order, KEY);
        watch.time(|| {
            let records = fetched(order, slab, entries, record_bytes);
            for (record, &entry) in records.zip(entries) {
                let ordinal = u64::from(kernel::ordinal(entry));
                proof.next(record, ordinal).expect("they are sorted");
            }
        });
        sum ^= proof.fingerprint.sum as u64;
    });
    sum
}

/// Calls `work` with the slab and the sorted entries of each partition.
fn each(state: &State, order: &Order, mut work: impl FnMut(&State, &Slab<'_>, &[Entry], Load)) {
    let mut scratch = vec![0; state.partitions.records_max];
    for (partition, entries) in state.entries.iter().enumerate() {
        let framed = state.partitions.framed(partition, false);
        let block_bytes = state.partitions.block_bytes();
        let laid = Slab::lay_out(
            order,
            &framed,
            block_bytes,
            Keys::default(),
            None,
            &mut scratch,
        );
        let Ok((slab, load)) = laid else {
            panic!("the blocks are sound");
        };
        work(state, &slab, entries, load);
    }
}

/// As the phase does, with any distance.
fn with_proof<const AHEAD: usize>(
    order: &Order,
    slab: &Slab<'_>,
    entries: &[Entry],
    record_bytes: usize,
    sink: &mut Sink<'_>,
    meter: &mut Meter<'_>,
) {
    let mut proof = Gather::new(order, KEY);
    for (index, &entry) in entries.iter().enumerate() {
        if AHEAD > 0
            && let Some(&later) = entries.get(index + AHEAD)
        {
            slab.prefetch(kernel::location(later), record_bytes);
        }
        let record = slab.record(order, kernel::location(entry));
        let ordinal = u64::from(kernel::ordinal(entry));
        proof.next(record, ordinal).expect("they are sorted");
        sink.put(record, meter).expect("the job is not ending");
    }
}

fn without_proof(
    order: &Order,
    slab: &Slab<'_>,
    entries: &[Entry],
    record_bytes: usize,
    sink: &mut Sink<'_>,
    meter: &mut Meter<'_>,
) {
    for record in fetched(order, slab, entries, record_bytes) {
        sink.put(record, meter).expect("the job is not ending");
    }
}

/// The records of sorted entries, each asked for 16 records before it comes.
fn fetched<'s>(
    order: &'s Order,
    slab: &'s Slab<'_>,
    entries: &'s [Entry],
    record_bytes: usize,
) -> impl Iterator<Item = &'s [u8]> {
    entries.iter().enumerate().map(move |(index, &entry)| {
        if let Some(&later) = entries.get(index + 16) {
            slab.prefetch(kernel::location(later), record_bytes);
        }
        slab.record(order, kernel::location(entry))
    })
}

fn copy_each<'s>(
    records: impl Iterator<Item = &'s [u8]>,
    into: &mut [u8],
    copy: impl Fn(&[u8], &mut [u8]),
) {
    let mut at = 0;
    for record in records {
        copy(record, &mut into[at..at + record.len()]);
        at += record.len();
    }
}

/// Copies records into a piece of the first-level cache, and from there past the caches.
fn streamed<'s>(records: impl Iterator<Item = &'s [u8]>, into: &mut [u8]) {
    const PIECE_BYTES: usize = 4 << 10;
    let mut piece = [0; PIECE_BYTES];
    let (mut filled, mut at) = (0, 0);
    for record in records {
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
