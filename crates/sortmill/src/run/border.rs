//! Where stages meet. Nothing happens here, unless a test plants a fault (feature `tamper`).

#[cfg(not(feature = "tamper"))]
mod chosen {
    use crate::batch::Batch;
    use crate::error::Result;
    use crate::job::Job;
    use crate::stage::sort::Framed;
    use crate::tamper::Border;

    #[inline(always)]
    pub fn batch<'a>(_job: &Job, _border: Border, batch: Batch<'a>) -> Batch<'a> {
        batch
    }

    #[inline(always)]
    pub fn blocks<'a>(_job: &Job, blocks: Vec<Framed<'a>>) -> Vec<Framed<'a>> {
        blocks
    }

    #[inline(always)]
    pub fn joined<'a>(_job: &Job, records: &'a [u8], _size: usize) -> &'a [u8] {
        records
    }

    #[inline(always)]
    pub fn merged(
        _job: &Job,
        record: &[u8],
        mut put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        put(record)
    }

    #[inline(always)]
    pub fn sorted<'a>(
        _job: &Job,
        records: impl Iterator<Item = (u64, &'a [u8])>,
    ) -> impl Iterator<Item = (u64, &'a [u8])> {
        records
    }
}

#[cfg(feature = "tamper")]
mod chosen {
    use sortmill_io::frame::{HEADER_BYTES, Segment};

    use crate::batch::{Batch, Offsets};
    use crate::error::Result;
    use crate::job::Job;
    use crate::stage::sort::Framed;
    use crate::tamper::Border;

    /// Tests only: memory that lives as long as anything borrows it.
    fn leak<T>(values: Vec<T>) -> &'static [T] {
        Box::leak(values.into_boxed_slice())
    }

    pub fn batch<'a>(job: &Job, border: Border, batch: Batch<'a>) -> Batch<'a> {
        let Some(tamper) = &job.tamper else {
            return batch;
        };
        let mut records: Vec<Vec<u8>> = batch.records().map(<[u8]>::to_vec).collect();
        tamper(border, &mut records);
        let mut offsets = vec![0];
        let mut bytes = Vec::new();
        for record in records {
            bytes.extend_from_slice(&record);
            offsets.push(bytes.len() as u32);
        }
        Batch {
            bytes: leak(bytes),
            offsets: Offsets::Each(leak(offsets)),
            ..batch
        }
    }

    /// Takes each block's records out of their segments and puts them back into one.
    pub fn blocks<'a>(job: &Job, mut blocks: Vec<Framed<'a>>) -> Vec<Framed<'a>> {
        let Some(tamper) = &job.tamper else {
            return blocks;
        };
        let order = job.order().expect("the job runs");
        for block in &mut blocks {
            let end = HEADER_BYTES + block.header.payload_bytes as usize;
            let mut at = HEADER_BYTES;
            let mut made = vec![0; HEADER_BYTES];
            let mut count = 0;
            while at < end {
                let (segment, header_bytes) = Segment::get(&block.bytes[at..end]).expect("sound");
                at += header_bytes;
                let mut records = Vec::new();
                let stop = at + segment.bytes as usize;
                // The stub of a long record passes as it is.
                if segment.record_count == 0 {
                    made.extend_from_slice(&block.bytes[at - header_bytes..stop]);
                    count += 1;
                    at = stop;
                    continue;
                }
                while at < stop {
                    let bytes = order.record_bytes(&block.bytes[at..stop]);
                    records.push(block.bytes[at..at + bytes].to_vec());
                    at += bytes;
                }
                tamper(Border::Sort, &mut records);
                let segment = Segment {
                    chunk: segment.chunk,
                    record_count: records.len() as u32,
                    bytes: records.iter().map(Vec::len).sum::<usize>() as u32,
                };
                if segment.record_count == 0 {
                    continue;
                }
                let mut header = [0; 20];
                let header_bytes = segment.put(&mut header);
                made.extend_from_slice(&header[..header_bytes]);
                made.extend(records.concat());
                count += segment.record_count;
            }
            block.header.payload_bytes = (made.len() - HEADER_BYTES) as u32;
            block.header.record_count = count;
            block.unchecked = false;
            block.bytes = leak(made);
        }
        blocks
    }

    /// Records of `size` bytes each, back to back.
    pub fn joined<'a>(job: &Job, records: &'a [u8], size: usize) -> &'a [u8] {
        let Some(tamper) = &job.tamper else {
            return records;
        };
        let mut copies: Vec<Vec<u8>> = records.chunks(size).map(<[u8]>::to_vec).collect();
        tamper(Border::Reduce, &mut copies);
        leak(copies.concat())
    }

    /// One record at a time.
    pub fn merged(
        job: &Job,
        record: &[u8],
        mut put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(tamper) = &job.tamper else {
            return put(record);
        };
        let mut records = vec![record.to_vec()];
        tamper(Border::Reduce, &mut records);
        records.iter().try_for_each(|record| put(record))
    }

    pub fn sorted<'a>(
        job: &Job,
        records: impl Iterator<Item = (u64, &'a [u8])>,
    ) -> impl Iterator<Item = (u64, &'a [u8])> {
        let Some(tamper) = &job.tamper else {
            return records.collect::<Vec<_>>().into_iter();
        };
        let mut copies: Vec<Vec<u8>> = records.map(|(_, record)| record.to_vec()).collect();
        tamper(Border::Reduce, &mut copies);
        let records: Vec<(u64, &'a [u8])> = copies
            .into_iter()
            .enumerate()
            .map(|(ordinal, record)| (ordinal as u64, leak(record)))
            .collect();
        records.into_iter()
    }
}

pub use chosen::*;
