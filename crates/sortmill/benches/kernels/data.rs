//! What the loops work on: chunks, tables and partitions, in the memory the engine takes them from.

use sortmill::batch::{Batch, Offsets};
use sortmill::block::Open;
use sortmill::fingerprint::Fingerprint;
use sortmill::gen_records::{Alphabet, KEY_BYTES, RECORD_BYTES, Records};
use sortmill::io::frame::Header;
use sortmill::io::{Buffer, Pool};
use sortmill::order::{Format, KeyPart, Order};
use sortmill::sample::Sample;
use sortmill::stage::sort::Framed;
use sortmill::table::Table;

use crate::timing::Bench;

/// The key of fingerprints.
pub const KEY: u64 = 0x0123_4567_89ab_cdef;
/// Bytes of a block of the main job, 10 GB in 2 GiB.
pub const BLOCK_BYTES: usize = 512 << 10;
/// Records of one chunk of the main job that fall into one of its 299 partitions.
const SEGMENT_RECORDS: usize = 140;

/// The main job's order: records of 100 bytes by their first 10.
pub fn order() -> Order {
    let key = KeyPart::plain(0, KEY_BYTES as u32);
    Order::new(Format::Fixed(RECORD_BYTES as u32), &[key]).expect("the key lies in the record")
}

/// Lines, whole.
pub fn line_order() -> Order {
    Order::new(Format::Lines, &[]).expect("lines have no key to be wrong")
}

/// A sum that depends on each value and where it stands, in a few cycles.
pub fn hash(values: impl Iterator<Item = u64>) -> u64 {
    values.enumerate().fold(0, |sum: u64, (at, value)| {
        let mixed = (value ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        sum.wrapping_add(mixed ^ (mixed >> 29))
    })
}

/// The same of bytes.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|&word| u64::from_le_bytes(word));
    hash(words.chain(rest.iter().map(|&byte| u64::from(byte))))
}

/// Chunks of binary records in huge pages, more than the caches hold.
pub struct Chunks {
    buffers: Vec<Buffer>,
    records_each: usize,
}

impl Chunks {
    /// 16 chunks of 4 MiB, or 2 of 64 KiB for a test.
    pub fn new(bench: &Bench) -> Self {
        let (count, bytes) = (bench.size(16, 2), bench.size(4 << 20, 64 << 10));
        let pool = Pool::new(count, bytes).expect("memory");
        let records = bytes / RECORD_BYTES;
        let binary = Records {
            alphabet: Alphabet::Binary,
            skew: false,
        };
        let buffers = (0..count)
            .map(|number| {
                let mut buffer = pool.take().expect("a buffer for each");
                let first = (number * records) as u128;
                binary.fill(first, &mut buffer[..records * RECORD_BYTES]);
                buffer
            })
            .collect();
        Self {
            buffers,
            records_each: records,
        }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.buffers.len()
    }

    /// Records in all.
    pub fn records(&self) -> usize {
        self.count() * self.records_each
    }

    /// Bytes of records in all.
    pub fn bytes(&self) -> usize {
        self.records() * RECORD_BYTES
    }

    /// The bytes of one.
    pub fn chunk(&self, number: usize) -> &[u8] {
        &self.buffers[number][..self.records_each * RECORD_BYTES]
    }

    /// The records of one.
    pub fn batch(&self, number: usize) -> Batch<'_> {
        Batch {
            chunk: number as u64,
            bytes: self.chunk(number),
            offsets: Offsets::Every {
                from: 0,
                bytes: RECORD_BYTES as u32,
                count: self.records_each as u32,
            },
            fingerprint: Fingerprint::default(),
        }
    }

    /// The records of one, whose bytes have just been read, as the fingerprint of the input does.
    pub fn warm_batch(&self, number: usize) -> Batch<'_> {
        std::hint::black_box(hash_bytes(self.chunk(number)));
        self.batch(number)
    }
}

/// A table of `slots` slots, its boundaries sampled from other records of the same kind.
pub fn table(order: &Order, slots: usize) -> Table {
    let binary = Records {
        alphabet: Alphabet::Binary,
        skew: false,
    };
    let mut bytes = vec![0; (slots * 16).max(4096) * RECORD_BYTES];
    binary.fill(1 << 64, &mut bytes);
    let mut sample = Sample::default();
    for record in bytes.chunks_exact(RECORD_BYTES) {
        sample.add(order, record, 0);
    }
    Table::range(order, sample.boundaries(slots, false))
}

/// Partitions of the best size, sealed, each as a worker finds it when its blocks were loaded: segments of
/// many chunks, keys from a small part of all. More than the caches hold.
pub struct Partitions {
    partitions: Vec<Vec<(Header, Buffer)>>,
    /// Records in all.
    pub records: usize,
    /// Their bytes.
    pub bytes: usize,
    /// The most records in one.
    pub records_max: usize,
}

impl Partitions {
    /// 4 partitions of 32 MiB, or 2 of 128 KiB for a test; of binary records, or of lines.
    pub fn new(bench: &Bench, lines: bool) -> Self {
        let (count, bytes) = (bench.size(4, 2), bench.size(32 << 20, 128 << 10));
        let block_bytes = bench.size(BLOCK_BYTES, 16 << 10);
        let pool = Pool::new(count * (bytes / block_bytes + 2), block_bytes).expect("memory");
        let mut made = Self {
            partitions: Vec::new(),
            records: 0,
            bytes: 0,
            records_max: 0,
        };
        for partition in 0..count {
            let before = made.records;
            let blocks = made.fill(&pool, partition as u32, bytes, lines);
            made.partitions.push(blocks);
            made.records_max = made.records_max.max(made.records - before);
        }
        made
    }

    fn fill(
        &mut self,
        pool: &Pool,
        partition: u32,
        bytes: usize,
        lines: bool,
    ) -> Vec<(Header, Buffer)> {
        let mut blocks = Vec::new();
        let mut open = Open::new(pool.take().expect("blocks enough"));
        let mut filled = 0;
        for chunk in 0.. {
            let first = u128::from(partition) << 32 | u128::from(chunk) << 8;
            let (slab, offsets) = segment(first, lines);
            if filled + slab.len() > bytes {
                break;
            }
            let batch = Batch {
                chunk,
                bytes: &slab,
                offsets: Offsets::Each(&offsets),
                fingerprint: Fingerprint::default(),
            };
            let rows: Vec<u32> = (0..batch.len() as u32).collect();
            let mut put = open.put(&batch, &rows, None);
            if put < rows.len() {
                let full =
                    std::mem::replace(&mut open, Open::new(pool.take().expect("blocks enough")));
                blocks.push(seal(full, partition, blocks.len()));
                put += open.put(&batch, &rows[put..], None);
            }
            assert_eq!(put, rows.len());
            filled += slab.len();
            self.records += rows.len();
        }
        blocks.push(seal(open, partition, blocks.len()));
        self.bytes += filled;
        blocks
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.partitions.len()
    }

    /// Headers and buffers of one, to be sealed anew.
    pub fn blocks_mut(&mut self, partition: usize) -> &mut [(Header, Buffer)] {
        &mut self.partitions[partition]
    }

    /// One, as the sorter sees it.
    pub fn framed(&self, partition: usize, unchecked: bool) -> Vec<Framed<'_>> {
        let framed = self.partitions[partition]
            .iter()
            .map(|(header, buffer)| Framed {
                header: *header,
                bytes: buffer,
                unchecked,
            });
        framed.collect()
    }

    /// Bytes of each block.
    pub fn block_bytes(&self) -> usize {
        self.partitions[0][0].1.len()
    }
}

/// The records of one chunk that fell into a partition: binary ones whose first byte is the same, or lines
/// of 20 to 98 bytes.
fn segment(first: u128, lines: bool) -> (Vec<u8>, Vec<u32>) {
    let records = Records {
        alphabet: if lines {
            Alphabet::Ascii
        } else {
            Alphabet::Binary
        },
        skew: false,
    };
    let mut slab = vec![0; SEGMENT_RECORDS * RECORD_BYTES];
    records.fill(first, &mut slab);
    let mut offsets = vec![0];
    if !lines {
        for record in slab.chunks_exact_mut(RECORD_BYTES) {
            record[0] = 0x5a;
            offsets.push(offsets.last().expect("a start") + RECORD_BYTES as u32);
        }
        return (slab, offsets);
    }
    let mut cut = Vec::new();
    for line in slab.chunks_exact_mut(RECORD_BYTES) {
        let bytes = 20 + usize::from(line[1]) * 7 % 79;
        line[0] = b'Z';
        line[bytes - 1] = b'\n';
        cut.extend_from_slice(&line[..bytes]);
        offsets.push(cut.len() as u32);
    }
    (cut, offsets)
}

fn seal(open: Open, partition: u32, sequence: usize) -> (Header, Buffer) {
    let header = Header {
        job: KEY,
        attempt: 0,
        node: 0,
        partition,
        sequence: sequence as u32,
        record_count: open.records(),
        payload_bytes: open.payload_bytes(),
    };
    let mut buffer = open.into_buffer();
    header.seal(&mut buffer);
    (header, buffer)
}
