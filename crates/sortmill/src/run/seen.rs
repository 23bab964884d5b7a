//! Records that are only looked at, on their way through the map function: what a sample is made of, and what a plan
//! thinks comes of the input, as far as that does not take long.

use sortmill_io::Os;

use crate::batch::{Pause, Records};
use crate::error::ErrorKind;
use crate::job::{Job, Mapper};
use crate::order::Order;

/// Behind so many places that were wrong there is another map function each time; behind more the same one goes on.
const WRONG_MAX: usize = 16;
/// A map function is called for no longer than this, and one call, behind the first one, in which it may have much to begin: who waits
/// for a plan knows nothing of what it is made of, and a function that hangs has as many turns as there are places.
const CALLED_NS_MAX: u64 = 5_000_000_000;

/// What hears of each record that is sorted, with the chunk it comes from.
pub type Hear<'h> = dyn FnMut(&[u8], u64) + 'h;

/// Passes records on as they would be sorted, through the map function if there is one: one for all places, since to begin may
/// take it long, and another one where what lay at a place was wrong.
pub struct Seen<'a> {
    os: &'a dyn Os,
    /// How long it has been called since it was for the first time, if it was.
    called_ns: Option<u64>,
    /// It has been called for too long, or the job is ending: no record is looked at any more.
    is_over: bool,
    job: &'a Job,
    order: &'a Order,
    /// Room for what the function makes of one record, and what it may keep.
    made_bytes: usize,
    state_bytes: u64,
    mapped: Option<(Mapper, Records)>,
    /// Something was wrong since the last pause; at how many places.
    is_wrong: bool,
    wrong_count: usize,
    /// Where the last one lay.
    chunk: u64,
    /// Bytes that have come, and records and bytes that are sorted for them: the same, or what the map function made.
    came_bytes: u64,
    sorted: (u64, u64),
}

impl<'a> Seen<'a> {
    /// Of records in `order`, of which the job's map function may make `made_bytes` at once and keep `state_bytes`.
    pub fn new(
        os: &'a dyn Os,
        job: &'a Job,
        order: &'a Order,
        made_bytes: usize,
        state_bytes: u64,
    ) -> Self {
        let mut seen = Self {
            os,
            called_ns: None,
            is_over: false,
            job,
            order,
            made_bytes,
            state_bytes,
            mapped: None,
            is_wrong: false,
            wrong_count: 0,
            chunk: 0,
            came_bytes: 0,
            sorted: (0, 0),
        };
        seen.begin();
        seen
    }

    /// Has a function of its own.
    fn begin(&mut self) {
        let map = self.job.map.as_ref();
        self.mapped = map.map(|make| (make(self.state_bytes), self.made()));
    }

    /// Room for what it makes.
    fn made(&self) -> Records {
        Records::new(self.order.clone(), self.made_bytes, usize::MAX).of_sample()
    }

    /// Another record comes, of `chunk`.
    pub fn add(&mut self, record: &[u8], chunk: u64, hear: &mut Hear<'_>) {
        if self.is_over {
            return;
        }
        self.came_bytes += record.len() as u64;
        match &mut self.mapped {
            // Between quotes nothing is what it looks like.
            None if self.order.check(record).is_err() => {}
            None => {
                self.count((1, record.len() as u64));
                hear(record, chunk);
            }
            Some((mapper, made)) => {
                let began_ns = self.os.now_ns();
                made.place.1 += 1;
                mapper(Some(record), made);
                self.take(chunk, began_ns, hear);
            }
        }
    }

    /// Passes on what was made since `began_ns`; `false` if nothing was. What is wrong with it shows when it is distributed.
    fn take(&mut self, chunk: u64, began_ns: u64, hear: &mut Hear<'_>) -> bool {
        let Some((_, made)) = &mut self.mapped else {
            return false;
        };
        let sizes = made.sizes();
        match made.batch(chunk, 0) {
            Ok(batch) => batch.records().for_each(|record| hear(record, chunk)),
            Err(error) => {
                self.is_wrong = true;
                self.is_over |= error.kind == ErrorKind::Interrupted;
            }
        }
        let called_ns = self
            .called_ns
            .map_or(0, |before_ns| before_ns + self.os.now_ns() - began_ns);
        self.called_ns = Some(called_ns);
        self.is_over |= called_ns > CALLED_NS_MAX;
        made.clear();
        self.count(sizes);
        sizes.0 > 0
    }

    fn count(&mut self, (records, bytes): (u64, u64)) {
        self.sorted.0 += records;
        self.sorted.1 += bytes;
    }

    /// Bytes that have come.
    pub fn came_bytes(&self) -> u64 {
        self.came_bytes
    }

    /// How many bytes are sorted for each that came, and how many a record has in the mean; `None` before there is one.
    pub fn of_each(&self) -> Option<(f64, f64)> {
        let (records, bytes) = self.sorted;
        let of = |count: u64| bytes as f64 / count as f64;
        (records > 0 && self.came_bytes > 0).then(|| (of(self.came_bytes), of(records)))
    }

    /// No more records come from this place.
    pub fn pause(&mut self, chunk: u64, hear: &mut Hear<'_>) {
        self.chunk = chunk;
        if self.job.map_gathers_bytes > 0 {
            self.rest(Pause::Chunk, hear);
        }
        if std::mem::take(&mut self.is_wrong) {
            self.wrong_count += 1;
            // What was wrong stays where it was told, and the function may have lost what it needs.
            let made = self.made();
            match &mut self.mapped {
                Some((_, before)) if self.wrong_count > WRONG_MAX => *before = made,
                _ => self.begin(),
            }
        }
    }

    /// No more records come.
    pub fn end(&mut self, hear: &mut Hear<'_>) {
        self.rest(Pause::End, hear);
    }

    /// Passes on what the function makes without another record.
    fn rest(&mut self, pause: Pause, hear: &mut Hear<'_>) {
        while let Some((mapper, made)) = &mut self.mapped {
            if self.is_over {
                return;
            }
            let began_ns = self.os.now_ns();
            made.pause_for(pause);
            mapper(None, made);
            if !self.take(self.chunk, began_ns, hear) {
                return;
            }
        }
    }
}
