//! Copies past the caches, which were tried and are not in the engine. The one file of the benchmarks with
//! `unsafe` in it.

/// Copies `from` into `into`, which is as long, without fetching the lines that are overwritten first: they
/// go to memory from the processor's write-combining buffers.
///
/// Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, non-temporal stores.
pub fn copy(from: &[u8], into: &mut [u8]) {
    assert_eq!(from.len(), into.len());
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        let head = into.as_ptr().align_offset(16).min(into.len());
        let middle = (into.len() - head) / 16 * 16;
        let tail = head + middle;
        into[..head].copy_from_slice(&from[..head]);
        into[tail..].copy_from_slice(&from[tail..]);
        for at in (head..tail).step_by(16) {
            // SAFETY: `at + 16` is at most `tail`, which lies in both; `into` is aligned to 16 bytes there.
            unsafe {
                let sixteen = _mm_loadu_si128(from.as_ptr().add(at).cast::<__m128i>());
                _mm_stream_si128(into.as_mut_ptr().add(at).cast::<__m128i>(), sixteen);
            }
        }
        // SAFETY: it only orders stores.
        unsafe { _mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    into.copy_from_slice(from);
}
