//! Random inputs of every shape, from a seed that is printed and can be given as `SEED`.

/// Splitmix64.
pub struct Random(u64);

impl Random {
    /// The stream of numbers that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// The seed of this run: `SEED`, or a new one. Printed, so that a failure can be repeated.
pub fn seed(test: &str) -> u64 {
    let seed = std::env::var("SEED").ok().map_or_else(
        || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.unwrap().as_nanos() as u64 % 1_000_000_007
        },
        |text| text.parse().expect("SEED is a number"),
    );
    println!("{test}: SEED={seed}");
    seed
}

/// How the lines of an input look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lines {
    /// Up to 60 bytes of any value but the newline.
    Uniform,
    /// Five different lines.
    FewDistinct,
    /// One line, again and again.
    OneKey,
    /// In order already.
    Sorted,
    /// In the opposite order.
    Reversed,
    /// Hundreds of bytes in common, then a few that differ.
    CommonPrefix,
    /// At most two letters: many are empty, and there are many to a byte.
    Tiny,
    /// Prefixes of each other, with zero bytes: `a`, `a\0`, `a\0\0`.
    Zeros,
    /// Ending in carriage return and newline.
    Crlf,
    /// Among short ones some that are longer than the headroom, a block, a chunk.
    Long,
    /// Half of them the same, the rest anything.
    Dominated,
}

pub const ALL_LINES: [Lines; 11] = [
    Lines::Uniform,
    Lines::FewDistinct,
    Lines::OneKey,
    Lines::Sorted,
    Lines::Reversed,
    Lines::CommonPrefix,
    Lines::Tiny,
    Lines::Zeros,
    Lines::Crlf,
    Lines::Long,
    Lines::Dominated,
];

/// About `bytes` bytes of lines, each with its newline.
pub fn lines(kind: Lines, random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 100);
    let mut number = 0u64;
    while out.len() < bytes {
        let line = line(kind, random, number);
        out.extend(line.into_iter().filter(|&byte| byte != b'\n'));
        out.push(b'\n');
        number += 1;
    }
    out
}

fn line(kind: Lines, random: &mut Random, number: u64) -> Vec<u8> {
    let length = random.below(60);
    match kind {
        Lines::Uniform => random.bytes(length),
        Lines::FewDistinct => format!("line of kind {}", random.below(5)).into_bytes(),
        Lines::OneKey => b"the only line there is".to_vec(),
        Lines::Sorted => format!("{number:012} and more").into_bytes(),
        Lines::Reversed => format!("{:012} and more", u32::MAX as u64 - number).into_bytes(),
        Lines::CommonPrefix => {
            let mut line = b"https://example.org/".repeat(15 + random.below(3));
            line.extend(format!("{}", random.below(3000)).bytes());
            line
        }
        Lines::Tiny => (0..random.below(3))
            .map(|_| b'a' + random.below(26) as u8)
            .collect(),
        Lines::Zeros => {
            let mut line = vec![b'a' + random.below(2) as u8; random.below(3)];
            line.resize(line.len() + random.below(20), 0);
            line
        }
        Lines::Crlf => {
            let mut line = random.bytes(length % 9);
            line.push(b'\r');
            line
        }
        Lines::Long => {
            let length = match random.below(60) {
                0 => 4090 + random.below(20),
                1 => 3900 + random.below(400),
                2 => 16_384 - 10 + random.below(20),
                3 => 20_000 + random.below(40_000),
                _ => length,
            };
            let mut line = vec![b'a' + random.below(3) as u8; length];
            line.extend(format!("{}", random.below(100)).bytes());
            line
        }
        Lines::Dominated if random.below(2) == 0 => b"mm dominates".to_vec(),
        Lines::Dominated => random.bytes(length),
    }
}

/// `count` records of `size` bytes. Keys are drawn so that many are equal; the tail tells which is which.
pub fn fixed(size: usize, random: &mut Random, count: usize) -> Vec<u8> {
    let few = random.below(3);
    let mut out = Vec::with_capacity(size * count);
    for number in 0..count {
        let mut record = match few {
            0 => vec![random.below(3) as u8; size],
            1 => [0u8, 1, 0x7f, 0x80, 0xff]
                .iter()
                .cycle()
                .skip(random.below(5))
                .step_by(1 + random.below(4))
                .copied()
                .take(size)
                .collect(),
            _ => random.bytes(size),
        };
        if size > 8 {
            record[size - 4..].copy_from_slice(&(number as u32).to_le_bytes());
        }
        out.extend(record);
    }
    out
}
