//! What brings records together: each becomes a pair, pairs are sorted by their keys, and become records again.
//!
//! ```text
//! record --> Feed: key and value --> the engine: partition, spill, sort --> Drain: record, group by group
//!            (in the mapper, or in the reducer of the phase before)         (in the reducer)
//! ```
//!
//! | asked | key | value |
//! |---|---|---|
//! | keep | nothing: places decide | all columns |
//! | sort | the columns it is by | the other columns, and floats |
//! | top | those, then all others upwards | floats |
//! | group | a hash of the columns, the columns, and the one whose values are taken in order | the aggregates' states |
//! | group, in front of its values | the same with nothing in place of a value | how many values there are |
//! | group that stands together | the same, one pair of a small group | how many values differ, the aggregates' states |
//! | the same, of a large one | the group, the columns, and a value | nothing |
//! | apply | a hash of the columns, the columns, and those that order a group | the other columns, and floats |
//! | all of these, sorted | the same without the hash | the same |
//! | random | 64 bits drawn from seed and place | all columns |
//!
//! Groups of one whole number with aggregates that are a word each go as records of a fixed size instead (`words.rs`).

use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::{AtomicU64, Ordering};

use super::aggregate::{Computed, State, in_group};
use super::column::{Column, Value, corrupt, row};
use super::combine::{HASH_BYTES, PairSink, hashed};
use super::count_bytes::take_count;
use super::draw::Draw;
use super::groups::{Event, MakeStreamFn, StreamFn};
use super::key::{self, KeyColumn, OrderColumn, Values, tells};
use super::rows::halves;
use super::sessions::{self, Sessions};
use super::several::MakeTurnsFn;
use super::tallied::Tallied;
use super::together::Standing;
use super::verbs::Sink;
use super::words::{Narrow, Open};
use crate::error::Result;
use crate::job::HeadFn;

mod columns;
mod feed;
mod near;

pub(super) use feed::Feed;

/// How records are brought together.
#[derive(Clone)]
pub(super) struct Shuffle {
    how: How,
    key: Vec<KeyColumn>,
    /// What says how many values there are, in pairs of their own in front of those with values, if that is needed.
    counted: Option<Computed>,
    /// What is fed to it by a reducer comes group by group, each of them one pair in front of its values where it is small
    /// (`near.rs`).
    stand_together: bool,
    /// So many parts of the key tell the group, where there are groups; the others order its records.
    group_count: usize,
    /// Groups come in the order of their keys, and no hash stands in front of them.
    is_sorted: bool,
    /// Columns that the key does not tell.
    rest: Vec<usize>,
    /// The columns of the table that goes in.
    pub columns: Vec<Column>,
    /// For each column, which part of the key tells it, if one does.
    told: Vec<Told>,
    /// How groups lie that are so narrow that they need be no pairs.
    narrow: Option<Narrow>,
}

#[derive(Clone)]
enum How {
    Keep,
    Sort,
    Top(u64),
    Group(Vec<Computed>),
    Apply(Applied),
    Random(Draw),
}

/// What is done to the records of whole groups.
#[derive(Clone)]
pub(super) enum Applied {
    /// A function makes something of them, records of these columns.
    Function(MakeStreamFn, Vec<Column>),
    /// Aggregates that take values in turns, so many of which join texts, which make records of these columns.
    Turns(MakeTurnsFn, Vec<Column>, u64),
    /// They come out as they are, each with the number of its session behind it.
    Sessions(Sessions),
}

#[derive(Clone, Copy)]
enum Told {
    Key(usize),
    Rest,
}

impl Shuffle {
    fn new(table: &[Column], key: &[OrderColumn], how: How) -> Self {
        let key = key::key_columns(table, key);
        let mut rest = Vec::new();
        let mut tell = |at: usize| {
            let part = key.iter().position(|part| part.at == at && tells(part));
            part.map_or_else(
                || {
                    rest.push(at);
                    Told::Rest
                },
                Told::Key,
            )
        };
        let told = (0..table.len()).map(&mut tell).collect();
        Self {
            how,
            counted: None,
            stand_together: false,
            group_count: key.len(),
            is_sorted: false,
            key,
            rest,
            columns: table.to_vec(),
            told,
            narrow: None,
        }
    }

    pub fn keep(table: &[Column]) -> Self {
        Self::new(table, &[], How::Keep)
    }

    pub fn sort(table: &[Column], by: &[OrderColumn]) -> Self {
        Self::new(table, by, How::Sort)
    }

    pub fn top(table: &[Column], count: u64, by: &[OrderColumn]) -> Self {
        let mut all = by.to_vec();
        let others = (0..table.len()).filter(|&at| by.iter().all(|by| by.at != at));
        all.extend(others.map(OrderColumn::up));
        let mut shuffle = Self::new(table, &all, How::Top(count));
        key::tell_floats_apart(&mut shuffle.key, table);
        let group_count = shuffle.key.len();
        shuffle.grouped(group_count)
    }

    /// Groups; of `aggregates` at most one counts the different values of a column.
    pub fn group(table: &[Column], by: &[usize], mut aggregates: Vec<Computed>) -> Self {
        Computed::lead(&mut aggregates);
        let mut key: Vec<_> = by.iter().map(|&at| OrderColumn::up(at)).collect();
        // In order, the values that are counted stand together.
        key.extend(
            aggregates
                .iter()
                .find_map(Computed::ordered_by)
                .map(OrderColumn::up),
        );
        let counted = aggregates.iter().find(|one| one.needs_counts());
        let counted = counted.map(Computed::values_counted);
        let narrow = Narrow::new(table, by, &aggregates);
        let mut shuffle = Self::new(table, &key, How::Group(aggregates)).grouped(by.len());
        if counted.is_some()
            && let Some(last) = shuffle.key.last_mut()
        {
            last.leave_room();
        }
        shuffle.counted = counted;
        shuffle.narrow = narrow;
        shuffle
    }

    /// The same groups where the records of each come one behind the other, if that is of use: where different values are counted.
    pub fn of_records_together(mut self) -> Self {
        self.stand_together =
            self.orders_within() && self.counted.is_none() && self.texts_joined() == 0;
        if self.stand_together
            && let Some(last) = self.key.last_mut()
        {
            last.leave_room();
        }
        self
    }

    /// Groups whose records come in the order of the columns `order`, those that are equal there in that of the input.
    pub fn apply(table: &[Column], by: &[usize], order: &[OrderColumn], applied: Applied) -> Self {
        let mut key: Vec<_> = by.iter().map(|&at| OrderColumn::up(at)).collect();
        key.extend_from_slice(order);
        Self::new(table, &key, How::Apply(applied)).grouped(by.len())
    }

    pub fn random(table: &[Column], draw: Draw) -> Self {
        Self::new(table, &[], How::Random(draw))
    }

    fn grouped(self, group_count: usize) -> Self {
        Self {
            group_count,
            ..self
        }
    }

    /// The same with groups in the order of their keys.
    pub fn sorted(self) -> Self {
        Self {
            is_sorted: true,
            narrow: None,
            ..self
        }
    }

    /// The same, if so said.
    pub fn sorted_if(self, is_sorted: bool) -> Self {
        if is_sorted { self.sorted() } else { self }
    }

    /// How its pairs lie if they are records of a fixed size.
    pub fn narrow(&self) -> Option<&Narrow> {
        self.narrow.as_ref()
    }

    /// Whether records of one key must meet.
    pub fn groups(&self) -> bool {
        matches!(self.how, How::Group(_) | How::Apply(..))
    }

    /// Whether they are ordered by a hash of it.
    pub fn hashes(&self) -> bool {
        self.groups() && !self.is_sorted
    }

    /// Bytes of a hash in front of keys.
    fn hash_bytes(&self) -> usize {
        if self.hashes() { HASH_BYTES } else { 0 }
    }

    /// What of keys all records of a group have alike, where more of the key orders them within it.
    pub fn head(&self) -> Option<HeadFn> {
        if !(self.groups() && self.orders_within()) {
            return None;
        }
        if self.hashes() {
            return Some(Arc::new(|key| key.len().min(HASH_BYTES)));
        }
        let of_group = self.key[..self.group_count].to_vec();
        Some(Arc::new(move |key| {
            key::head_bytes(&of_group, key).unwrap_or(key.len())
        }))
    }

    fn orders_within(&self) -> bool {
        self.group_count < self.key.len()
    }

    /// What draws the order of the records, if it is drawn.
    pub fn draw(&self) -> Option<Draw> {
        match self.how {
            How::Random(draw) => Some(draw),
            _ => None,
        }
    }

    /// Whether units must be reduced one after the other, because one needs to know of the others.
    pub fn takes_turns(&self) -> bool {
        matches!(self.how, How::Top(_))
    }

    /// The value of a record's pair: the columns that its key does not tell.
    fn put_rest(&self, record: &[Value<'_>], value: &mut Vec<u8>) {
        value.clear();
        for &at in &self.rest {
            self.columns[at].put(&record[at], value);
        }
    }

    /// The key of a group's pair, which `key` is but for the hash of the group, if one stands in front: `head` is what tells the group.
    fn put_whole(&self, head: &[u8], key: &[u8], whole: &mut Vec<u8>) {
        if self.is_sorted {
            whole.clear();
            return whole.extend_from_slice(key);
        }
        hashed(
            key::hash_head(&self.key[..self.group_count], head),
            key,
            whole,
        );
    }

    /// Hands on a pair whose key begins with a hash of all its columns: with that of the group's instead, or none.
    fn put_in_group(&self, key: &[u8], value: &[u8], whole: &mut Vec<u8>, pairs: PairSink<'_>) {
        let columns = &key[HASH_BYTES..];
        if self.is_sorted {
            return pairs(columns, value);
        }
        let of_group = &self.key[..self.group_count];
        let head = key::head_bytes(of_group, columns).expect("it was just written");
        self.put_whole(&columns[..head], columns, whole);
        pairs(whole, value);
    }

    /// Whether the order that records come in makes no difference to it.
    pub fn is_blind(&self) -> bool {
        match &self.how {
            How::Group(_) => !self.follows_input(),
            How::Top(_) => true,
            How::Keep | How::Sort | How::Apply(..) | How::Random(_) => false,
        }
    }

    /// Whether it sorts by all columns that `before` sorts by, of the same table.
    pub fn orders_all_of(&self, before: &Self) -> bool {
        let has = |part: &KeyColumn| self.key.iter().any(|own| own.at == part.at);
        let are_sorts = matches!((&self.how, &before.how), (How::Sort, How::Sort));
        are_sorts && before.key.iter().all(has)
    }

    /// Whether the same records come out as went in, in whatever order.
    pub fn keeps_count(&self) -> bool {
        matches!(self.how, How::Keep | How::Sort | How::Random(_))
    }

    /// Whether records come out of it in the order of column `at`, upwards, and of others behind it.
    pub fn sorts_first_by(&self, at: usize) -> bool {
        let is_first = |part: &KeyColumn| part.at == at && !part.descending;
        matches!(self.how, How::Sort) && self.key.first().is_some_and(is_first)
    }

    /// In what way the records stand that come out, where that is known.
    pub fn standing(&self) -> Option<Standing> {
        let How::Apply(Applied::Sessions(_)) = self.how else {
            return None;
        };
        let (of_group, within) = self.key.split_at(self.group_count);
        Some(Standing {
            by: of_group.iter().map(|part| part.at).collect(),
            // The number of the session, behind all others.
            then: Some(self.columns.len()),
            order: within
                .iter()
                .map(|part| (part.at, part.descending))
                .collect(),
            is_sorted: self.is_sorted,
        })
    }

    /// Whether it hands out all records of a group, and nothing made of several.
    pub fn gives_groups_whole(&self) -> bool {
        matches!(self.how, How::Apply(..))
    }

    /// Whether its feed in a mapper hands on what it keeps in pieces, and so may keep much: of groups that are only counted or told
    /// apart.
    pub fn ends_in_pieces(&self) -> bool {
        let is_tally = |one: &Computed| one.is_count();
        match &self.how {
            How::Group(aggregates) => {
                aggregates.len() <= 1 && aggregates.iter().all(is_tally) && self.narrow.is_none()
            }
            _ => false,
        }
    }

    /// How many texts of a group are joined, so that what comes of it may be long.
    pub fn texts_joined(&self) -> u64 {
        match &self.how {
            How::Group(aggregates) => Computed::texts_joined(aggregates),
            How::Apply(Applied::Turns(_, _, count)) => *count,
            How::Apply(_) | How::Keep | How::Sort | How::Top(_) | How::Random(_) => 0,
        }
    }

    /// The column whose bytes are the key of its feed's table as they are.
    fn is_value(&self) -> Option<usize> {
        key::is_value(&self.key).filter(|_| !self.is_sorted && !self.orders_within())
    }

    /// Whether a group is told by the bytes of one column alone, so that its feed in a mapper takes those where a record has no
    /// other ([`Feed::add_word`]).
    pub fn takes_keys(&self) -> bool {
        self.is_value().is_some() && self.ends_in_pieces()
    }

    /// What becomes of pairs of groups that are only counted or told apart, each by the bytes of one column as they are.
    fn tallied(&self) -> Option<Tallied> {
        match &self.how {
            How::Group(aggregates) if self.takes_keys() => {
                Some(Tallied::new(!aggregates.is_empty()))
            }
            _ => None,
        }
    }

    /// Whether some of what it computes of groups follows the order of the input.
    fn follows_input(&self) -> bool {
        match &self.how {
            How::Group(aggregates) => aggregates.iter().any(Computed::follows_input),
            _ => false,
        }
    }

    /// Whether its feed keeps records between others: `in_mapper`, where records are known to come from somewhere, or in the reducer
    /// of the phase before.
    pub fn combines(&self, in_mapper: bool) -> bool {
        match &self.how {
            How::Group(_) => in_mapper || !self.follows_input(),
            How::Top(_) => true,
            How::Keep | How::Sort | How::Apply(..) | How::Random(_) => false,
        }
    }
}

/// Makes records of sorted pairs.
pub(super) struct Drain {
    shuffle: Arc<Shuffle>,
    hand: Hand,
}

/// What is being done to the group that is open.
enum Applying {
    Function(StreamFn),
    Sessions(sessions::Open),
}

/// What it has in hand; of the shuffle it is told each time, for to count who has that would cost more than all else.
struct Hand {
    /// How many records are still wanted, by all partitions together.
    left: Arc<AtomicU64>,
    /// The last key of the group that is open, if one is, and how much of it is that of all its records.
    last: Vec<u8>,
    head_bytes: usize,
    is_open: bool,
    /// The last key was one in front of those of the group's values.
    is_in_front: bool,
    values: Values,
    states: Vec<State>,
    /// Texts that are joined may have so many bytes.
    text_bytes: usize,
    applying: Option<Applying>,
    /// The group that is open where groups are narrow, or tallied; nothing of the above is needed there.
    narrow: Option<Open>,
    tallied: Option<Tallied>,
}

impl Drain {
    /// That of one partition; `left` is of all, and at first as [`Drain::wanted`] says. Texts that are joined may have `text_bytes`.
    pub fn new(shuffle: &Arc<Shuffle>, left: &Arc<AtomicU64>, text_bytes: usize) -> Self {
        let hand = Hand {
            left: Arc::clone(left),
            last: Vec::new(),
            head_bytes: 0,
            is_open: false,
            is_in_front: false,
            values: Values::default(),
            states: Vec::new(),
            text_bytes,
            applying: match &shuffle.how {
                How::Apply(Applied::Function(make, _)) => Some(Applying::Function(make())),
                How::Apply(Applied::Turns(make, ..)) => Some(Applying::Function(make(text_bytes))),
                How::Apply(Applied::Sessions(_)) => Some(Applying::Sessions(None)),
                _ => None,
            },
            narrow: shuffle.narrow.as_ref().map(Open::new),
            tallied: shuffle.tallied(),
        };
        Self {
            shuffle: Arc::clone(shuffle),
            hand,
        }
    }

    /// How many records come out at most.
    pub fn wanted(shuffle: &Shuffle) -> u64 {
        match shuffle.how {
            How::Top(count) => count,
            _ => u64::MAX,
        }
    }

    /// Takes the next pair.
    pub fn add(&mut self, pair: &[u8], sink: Sink<'_>) -> Result<()> {
        self.hand.add(&self.shuffle, pair, sink)
    }

    /// Behind the partition's last pair: ends the group that is open, and all of them.
    pub fn finish(&mut self, sink: Sink<'_>) -> Result<()> {
        self.hand.finish(&self.shuffle, sink)
    }
}

impl Hand {
    fn add(&mut self, shuffle: &Shuffle, pair: &[u8], sink: Sink<'_>) -> Result<()> {
        if let Some(open) = &mut self.narrow {
            return open.add(pair, sink);
        }
        if let Some(open) = &mut self.tallied {
            return open.add(pair, sink);
        }
        let (key, value) = halves(pair).ok_or_else(corrupt)?;
        if !shuffle.groups() {
            return self.single(shuffle, key, value, sink);
        }
        let is_told = match shuffle.how {
            How::Apply(..) => self.is_in_group(shuffle, key)?,
            _ => self.is_open && self.last == key,
        };
        if !is_told {
            self.next_key(shuffle, key, sink)?;
        }
        match &shuffle.how {
            How::Group(aggregates) if self.is_in_front && shuffle.stand_together => {
                let mut rest = value;
                let count = take_count(&mut rest).ok_or_else(corrupt)?;
                self.states
                    .iter_mut()
                    .for_each(|state| state.count_values(count));
                merge(aggregates, &mut self.states, rest)
            }
            // A value alone.
            How::Group(_) if value.is_empty() && shuffle.stand_together => Ok(()),
            How::Group(_) if self.is_in_front => {
                let mut rest = value;
                let count = take_count(&mut rest).filter(|_| rest.is_empty());
                let count = count.ok_or_else(corrupt)?;
                let expect = |state: &mut State| state.expect(count);
                self.states
                    .iter_mut()
                    .try_for_each(expect)
                    .ok_or_else(corrupt)
            }
            How::Group(aggregates) => merge(aggregates, &mut self.states, value),
            How::Apply(applied) => {
                let with = (applied, self.applying.as_mut().expect("it was made"));
                apply(shuffle, &self.values, value, with, sink)
            }
            How::Keep | How::Sort | How::Top(_) | How::Random(_) => {
                unreachable!("they have no groups")
            }
        }
    }

    /// Whether a key is of the group that is open; then its values are told.
    #[inline]
    fn is_in_group(&mut self, shuffle: &Shuffle, key: &[u8]) -> Result<bool> {
        let Some((head, within)) = key.split_at_checked(self.head_bytes) else {
            return Ok(false);
        };
        let is_in = self.is_open
            && (shuffle.orders_within() || within.is_empty())
            && head == &self.last[..self.head_bytes];
        if is_in {
            let parts = &shuffle.key[shuffle.group_count..];
            let read = (self.values).read_behind(shuffle.group_count, parts, within);
            read.ok_or_else(corrupt)?;
        }
        Ok(is_in)
    }

    /// Another key comes: of another group, or further on in the order of the one that is open.
    fn next_key(&mut self, shuffle: &Shuffle, key: &[u8], sink: Sink<'_>) -> Result<()> {
        let hash_bytes = shuffle.hash_bytes();
        let columns = key.get(hash_bytes..).ok_or_else(corrupt)?;
        // What tells the group has an end of its own where more of the key follows.
        let is_same = self.is_open
            && shuffle.orders_within()
            && key.get(..self.head_bytes) == Some(&self.last[..self.head_bytes]);
        let head = match shuffle.orders_within() {
            true if is_same => Some(self.head_bytes - hash_bytes),
            true => key::head_bytes(&shuffle.key[..shuffle.group_count], columns),
            false => Some(columns.len()),
        };
        let head = hash_bytes + head.ok_or_else(corrupt)?;
        if !is_same {
            self.end(shuffle, sink)?;
            self.is_open = true;
            if let How::Group(aggregates) = &shuffle.how {
                self.states.clear();
                let begin = |one: &Computed| one.begin_within(self.text_bytes);
                self.states.extend(aggregates.iter().map(begin));
            }
        }
        let has_fronts = shuffle.counted.is_some() || shuffle.stand_together;
        self.is_in_front = has_fronts && columns.get(head - hash_bytes) == Some(&key::IN_FRONT);
        let (kept, from) = match is_same {
            true => (shuffle.group_count, head - hash_bytes),
            false => (0, 0),
        };
        let (parts, bytes) = match self.is_in_front {
            true => (shuffle.group_count, head - hash_bytes),
            false => (shuffle.key.len(), columns.len()),
        };
        let read =
            (self.values).read_behind(kept, &shuffle.key[kept..parts], &columns[from..bytes]);
        read.ok_or_else(corrupt)?;
        if !self.is_in_front && shuffle.orders_within() {
            let value = self.values.get(shuffle.group_count);
            self.states
                .iter_mut()
                .for_each(|state| state.next_value(&value));
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.head_bytes = head;
        Ok(())
    }

    fn single(
        &mut self,
        shuffle: &Shuffle,
        key: &[u8],
        value: &[u8],
        sink: Sink<'_>,
    ) -> Result<()> {
        if let How::Top(_) = shuffle.how {
            // Partitions come in turn, so nobody else asks meanwhile.
            let left = self.left.load(Ordering::SeqCst);
            if left == 0 {
                return Ok(());
            }
            self.left.store(left - 1, Ordering::SeqCst);
        }
        // A key that was drawn tells nothing.
        let key = if shuffle.draw().is_some() { &[] } else { key };
        self.values.read(&shuffle.key, key).ok_or_else(corrupt)?;
        record(shuffle, (&self.values, value), None, sink)
    }

    /// Ends the group that is open, if one is.
    fn end(&mut self, shuffle: &Shuffle, sink: Sink<'_>) -> Result<()> {
        if let Some(open) = &mut self.narrow {
            return open.end(sink);
        }
        if let Some(open) = &mut self.tallied {
            return open.end(sink);
        }
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        match &shuffle.how {
            How::Group(aggregates) => {
                let keys = shuffle.group_count;
                let get = |number: usize| match number.checked_sub(keys) {
                    None => Ok(self.values.get(number)),
                    Some(number) => aggregates[number]
                        .value(&self.states[number])
                        .map_err(|error| in_group(error, (0..keys).map(|at| self.values.get(at)))),
                };
                row(keys + aggregates.len(), get, sink)
            }
            How::Apply(applied) => self.tell(applied, Event::GroupEnd, sink),
            How::Keep | How::Sort | How::Top(_) | How::Random(_) => Ok(()),
        }
    }

    fn finish(&mut self, shuffle: &Shuffle, sink: Sink<'_>) -> Result<()> {
        self.end(shuffle, sink)?;
        match &shuffle.how {
            How::Apply(applied) => self.tell(applied, Event::End, sink),
            _ => Ok(()),
        }
    }

    /// Tells what is applied to groups that one has ended, or all have.
    fn tell(&mut self, applied: &Applied, event: Event<'_>, sink: Sink<'_>) -> Result<()> {
        match (applied, &mut self.applying) {
            (
                Applied::Function(_, made) | Applied::Turns(_, made, _),
                Some(Applying::Function(function)),
            ) => function(event, &mut |values| put(values, made, sink)),
            (_, Some(Applying::Sessions(open))) => {
                *open = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Adds what was written of some records of a group to what is known of it.
fn merge(aggregates: &[Computed], states: &mut [State], from: &[u8]) -> Result<()> {
    let mut rest = from;
    let mut is_earlier = false;
    for (aggregate, state) in aggregates.iter().zip(states) {
        let merged = aggregate.merge(state, &mut rest, &mut is_earlier);
        merged.ok_or_else(corrupt)?;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(corrupt())
    }
}

/// Does to the next record of a group, which `key` and `value` make, what is done to all of them.
#[inline]
fn apply(
    shuffle: &Shuffle,
    key: &Values,
    value: &[u8],
    (applied, applying): (&Applied, &mut Applying),
    sink: Sink<'_>,
) -> Result<()> {
    match (applied, applying) {
        (Applied::Function(_, made) | Applied::Turns(_, made, _), Applying::Function(function)) => {
            let mut checked = |values: &[Value<'_>]| put(values, made, sink);
            record(shuffle, (key, value), None, |record| {
                function(Event::Record(record), &mut checked)
            })
        }
        (Applied::Sessions(sessions), Applying::Sessions(open)) => {
            // The time is what orders the group.
            let number = sessions.number(open, key.get(shuffle.group_count))?;
            record(shuffle, (key, value), Some(Value::U64(number)), sink)
        }
        _ => unreachable!("one was made of the other"),
    }
}

/// Hands on what a function made, if that is of the types it should be.
fn put(values: &[Value<'_>], made: &[Column], sink: Sink<'_>) -> Result<()> {
    super::verbs::check_values(values, made)?;
    sink(values)
}

/// The record that key and value make, in the order of the table's columns, and one value more behind them, if there is one.
#[inline]
fn record(
    shuffle: &Shuffle,
    (key, value): (&Values, &[u8]),
    more: Option<Value<'_>>,
    sink: impl FnOnce(&[Value<'_>]) -> Result<()>,
) -> Result<()> {
    let mut from = value;
    // What the key does not tell lies in the order of the columns.
    let get = |at: usize| match shuffle.told.get(at) {
        Some(&Told::Key(part)) => Ok(key.get(part)),
        Some(Told::Rest) => shuffle.columns[at].take(&mut from).ok_or_else(corrupt),
        None => Ok(more.expect("it is the last")),
    };
    row(shuffle.told.len() + usize::from(more.is_some()), get, sink)
}
