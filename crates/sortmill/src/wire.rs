//! What goes over a connection between two nodes besides blocks of records: how it begins, how it ends.
//!
//! Both are blocks too, so that one header and one checksum serve for everything (`docs/formats.md`, Frames). The
//! partition they name is none that a node can have.

use sortmill_io::frame::{Damage, HEADER_BYTES, Header};

use crate::fingerprint::Fingerprint;

/// The partition that the first frame of a connection names.
const HELLO: u32 = u32::MAX - 1;
/// The partition that the last frame of a connection names.
pub const END: u32 = u32::MAX;
/// Bytes of the frame that says hello: the header and the job's secret.
pub const HELLO_BYTES: usize = HEADER_BYTES + 16;
/// Bytes behind the header of an end marker: records, bytes, sum.
pub const END_PAYLOAD_BYTES: usize = 8 + 8 + 16;

/// The frame that opens a connection from node `from` to node `to` of job `job`, which shows `secret`.
#[must_use]
pub fn hello(job: u64, (from, to): (u32, u32), secret: [u64; 2]) -> [u8; HELLO_BYTES] {
    let mut frame = [0; HELLO_BYTES];
    frame[HEADER_BYTES..HEADER_BYTES + 8].copy_from_slice(&secret[0].to_le_bytes());
    frame[HEADER_BYTES + 8..].copy_from_slice(&secret[1].to_le_bytes());
    hello_header(job, from, to).seal(&mut frame);
    frame
}

/// Which node of job `job` says hello to node `to`, if it knows the secret.
///
/// # Errors
/// That it is no such frame.
pub fn heard(
    frame: &[u8; HELLO_BYTES],
    job: u64,
    to: u32,
    secret: [u64; 2],
) -> Result<u32, Damage> {
    let header = Header::read(frame)?;
    let from = header.node;
    match header == hello_header(job, from, to) && *frame == hello(job, (from, to), secret) {
        true => Ok(from),
        false => Err(Damage::Stranger),
    }
}

fn hello_header(job: u64, from: u32, to: u32) -> Header {
    Header {
        job,
        node: from,
        partition: HELLO,
        sequence: to,
        payload_bytes: (HELLO_BYTES - HEADER_BYTES) as u32,
        ..Header::default()
    }
}

/// Puts what all records of a connection add up to behind the header of its end marker.
pub fn put_end(sent: &Fingerprint, payload: &mut [u8]) {
    payload[..8].copy_from_slice(&sent.records.to_le_bytes());
    payload[8..16].copy_from_slice(&sent.bytes.to_le_bytes());
    payload[16..END_PAYLOAD_BYTES].copy_from_slice(&sent.sum.to_le_bytes());
}

/// What an end marker says that all records of its connection add up to.
#[must_use]
pub fn get_end(payload: &[u8; END_PAYLOAD_BYTES]) -> Fingerprint {
    let half = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"));
    Fingerprint {
        records: half(0),
        bytes: half(8),
        sum: u128::from(half(16)) | u128::from(half(24)) << 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_understood_by_whom_it_is_meant_for() {
        let frame = hello(7, (1, 2), [3, 4]);
        assert_eq!(heard(&frame, 7, 2, [3, 4]), Ok(1));
        assert_eq!(heard(&frame, 8, 2, [3, 4]), Err(Damage::Stranger));
        assert_eq!(heard(&frame, 7, 3, [3, 4]), Err(Damage::Stranger));
        assert_eq!(heard(&frame, 7, 2, [3, 5]), Err(Damage::Stranger));
        assert_eq!(heard(&frame, 7, 2, [0, 4]), Err(Damage::Stranger));
        for bit in 0..HELLO_BYTES * 8 {
            let mut altered = frame;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(heard(&altered, 7, 2, [3, 4]).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_end_marker_says_what_was_sent() {
        let sent = Fingerprint {
            records: 1,
            bytes: u64::MAX,
            sum: u128::MAX - 5,
        };
        let mut payload = [0; END_PAYLOAD_BYTES];
        put_end(&sent, &mut payload);
        assert_eq!(get_end(&payload), sent);
    }
}
