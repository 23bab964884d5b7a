//! A stretch of the bytes that a key is encoded to: what comes before it passes, what comes behind it is not made.
//!
//! Every encoder pushes all of its bytes and may stop as soon as the window is full. So a word, a boundary's
//! comparison and a whole key come from one encoder each, and nothing is allocated. The memory is the caller's.

/// Takes `out.len()` bytes of an encoded key, from byte `skip` on.
pub struct Window<'o> {
    /// Bytes that still pass.
    skip: usize,
    out: &'o mut [u8],
    filled: usize,
    /// What each byte is combined with: 0xff where larger comes first.
    turned: u8,
}

impl<'o> Window<'o> {
    /// Nothing has come yet.
    pub fn new(skip: usize, out: &'o mut [u8]) -> Self {
        Self {
            skip,
            out,
            filled: 0,
            turned: 0,
        }
    }

    /// From here on all bits come turned, or no longer do, if `really`.
    #[inline]
    pub fn turn(&mut self, really: bool) {
        self.turned ^= if really { 0xff } else { 0 };
    }

    /// Whether no more bytes are wanted.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.filled == self.out.len()
    }

    /// How many bytes have been kept.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// How many more bytes have to come until it is full.
    #[inline]
    pub fn wanted(&self) -> usize {
        self.skip + self.out.len() - self.filled
    }

    /// The next byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        if self.skip > 0 {
            self.skip -= 1;
        } else if let Some(out) = self.out.get_mut(self.filled) {
            *out = byte ^ self.turned;
            self.filled += 1;
        }
    }

    /// The next bytes.
    #[inline]
    pub fn push_all(&mut self, bytes: &[u8]) {
        let passing = self.skip.min(bytes.len());
        self.skip -= passing;
        let bytes = &bytes[passing..];
        let room = &mut self.out[self.filled..];
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        if self.turned != 0 {
            room[..count].iter_mut().for_each(|byte| *byte = !*byte);
        }
        self.filled += count;
    }
}
