//! Pipelines: tables with named columns, and verbs from one to the next, that run as jobs of the engine.
//!
//! A [`Table`] is what a program says and does nothing; [`Table::write`] makes a [`Pipeline`] of it, which can tell what it
//! would do ([`Pipeline::explain`]) and do it ([`Pipeline::run`]). Each verb that brings records together is one job of the
//! engine, with all that holds of jobs: memory, proof, temporary files, commit. What lies between two such verbs runs in
//! the mapper of the job behind or the reducer of the one in front, and what one job wrote is what the next one read, by
//! the same fingerprints (`go.rs`).
//!
//! ```text
//! read_text -> flat_map(words) -> group_by -> top -> write
//!             \___ mapper _____/  \ job 1 /  \ job 2 /
//! ```
//!
//! Functions of a Rust program are verbs, too: `closures` shows how (`map`, `flat_map`, `filter`), `whole` how they get
//! groups. What arithmetic does needs none: `express`.
//!
//! Read in this order: `column`, `read` (with `cells`), `verbs`, `key`, `shuffle` (with `combine`, `aggregate`, `exact`), `write`, `go`.

mod aggregate;
#[cfg(feature = "arrow")]
pub mod arrow;
mod cells;
mod closures;
mod column;
mod combine;
mod command;
mod compute;
mod count_bytes;
mod draw;
mod exact;
mod explain;
mod express;
mod floats;
mod fused;
mod fused_lists;
mod gather;
mod go;
mod groups;
mod held;
mod is_in;
mod json_columns;
mod key;
mod laid;
mod letters;
mod line_rows;
mod lists;
mod long_text;
mod look;
mod mix;
mod needed;
mod ngrams;
mod observe;
mod order;
mod parts;
mod paste;
mod paths;
mod patterns;
mod quantile;
mod read;
mod reckon;
mod reduce;
mod rows;
mod runner;
mod sessions;
mod several;
mod shuffle;
mod sieve;
mod sketch;
mod steps;
mod string_agg;
mod tallied;
mod tallies;
mod texts;
mod time;
mod time_format;
mod timed;
mod to;
mod together;
mod unpivot;
mod verbs;
mod watched;
mod whole;
mod words;
mod write;

use std::path::PathBuf;

use sortmill_io::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::job::{Around, Tuning};
use aggregate::Computed;
use compute::With;
use draw::{Draw, Sample};
use gather::{Batches, Plain};
use key::OrderColumn;
use order::by_words;
use patterns::Pattern;
use read::Inputs;
use shuffle::Shuffle;
use to::To;
use together::{Standing, Together};
use verbs::Step;

pub use aggregate::{
    Aggregate, Owned, approx_count_distinct, approx_quantile, count, count_distinct, count_values,
    first, max, mean, min, quantile, string_agg, string_agg_distinct, sum,
};
pub use closures::{FlatMap, columns_of, each};
pub use column::{Column, Type, Value};
pub use command::Command;
pub use compute::{hash, micros, parse, timestamp};
pub use exact::ExactSum;
pub use express::{
    Binary, EXPR_COUNT_MAX, EXPR_DEPTH_MAX, Expr, Unary, col, if_else, list_length, lit, null,
};
pub use gather::{
    BATCH_BYTES, BatchFn, Gather, Gathered, MakeBatchFn, Present, Refused, RowSink, hand_over,
    most_within,
};
pub use go::{PhaseReport, PipelineReport};
pub use groups::{Event, GroupFn, MakeGroupFn, MakeStreamFn, StreamFn};
pub use held::read_row;
pub use json_columns::jsonl_columns;
pub use laid::{Laid, LaidColumn, Laying};
pub use lists::{Unpacked, unpack};
pub use observe::Observed;
pub use order::{By, Order};
pub use parts::{Parts, extract, fields, ngrams, split, words};
pub use paste::paste;
pub use paths::expand;
pub use patterns::{Matches, matches};
pub use read::{
    Csv, csv_names, from_iter, from_rows, read_csv, read_fixed, read_jsonl, read_kv, read_text,
};
pub use rows::{HandRows, MakeHandRows, MakeRows, RowFile, Rows, heading as rows_heading};
pub use runner::{Kept, Runner};
pub use time::{Moment, TIMESTAMPS};
pub use timed::{from_epoch, parse_time};
pub use verbs::{EachFn, FilterFn, Sink};
pub use watched::{PhaseNow, Watched};
pub use whole::Group;
pub use write::Form;

/// So many verbs are behind each other at most: each takes some of a thread's stack, and a loop may add any number.
const VERBS_MAX: usize = 500;

/// A table that is still to be made: where its records come from and what is done to them.
#[derive(Clone)]
pub struct Table {
    inputs: Arc<Inputs>,
    columns: Vec<Column>,
    nodes: Vec<Node>,
}

/// A verb, and what it is called.
#[derive(Clone)]
struct Node {
    name: String,
    kind: NodeKind,
}

#[derive(Clone)]
enum NodeKind {
    Step(Step),
    Shuffle(Arc<Shuffle>),
}

impl Table {
    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// For each record those that `parts` makes of one of its columns; their columns take the place of all others but those that
    /// are kept.
    fn cut(&self, parts: &Parts) -> Result<Self> {
        let at = self.find_text(&parts.column)?;
        if let Some(cause) = parts.wrong() {
            return Err(wrong(cause.to_owned()));
        }
        let parts = parts.clone();
        if parts.kept.is_empty() {
            let (name, made) = (parts.name(), parts.made.clone());
            return self.then(name, NodeKind::Step(Step::Parts { at, parts }), made);
        }
        let kept = parts.kept.iter().map(|name| find(&self.columns, name));
        let kept: Vec<usize> = kept.collect::<Result<_>>()?;
        let stay = kept.iter().map(|&at| self.columns[at].clone());
        let columns = stay.chain(parts.made.iter().cloned()).collect();
        let name = format!("{} beside {}", parts.name(), parts.kept.join(", "));
        let step = Step::PartsBeside { at, kept, parts };
        self.then(name, NodeKind::Step(step), columns)
    }

    /// The records whose text matches a regular expression.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there or no text, and an expression that cannot be read.
    pub fn keep(&self, matches: &Matches) -> Result<Self> {
        let step = Step::Matches {
            at: self.find_text(&matches.column)?,
            pattern: Pattern::new(&matches.pattern)?,
            is_inverted: matches.is_inverted,
        };
        let not = if matches.is_inverted { "not " } else { "" };
        let name = format!("{} {not}matching {:?}", matches.column, matches.pattern);
        self.then(name, NodeKind::Step(step), self.columns.clone())
    }

    /// All columns and those that are computed, which take the place of others of their names or stand behind them all: each
    /// by an [`Expr`] of the columns that come in.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there, or of a type that this cannot be computed of.
    pub fn with_columns<E: Into<Expr> + Clone>(&self, computed: &[(&str, E)]) -> Result<Self> {
        let exprs = computed.iter().map(|(name, of)| (*name, of.clone().into()));
        let exprs: Vec<(&str, Expr)> = exprs.collect();
        let (with, columns) = With::new(&self.columns, &exprs)?;
        let names: Vec<&str> = computed.iter().map(|(name, _)| *name).collect();
        let name = format!("with {}", names.join(", "));
        self.then(name, NodeKind::Step(Step::With(with)), columns)
    }

    /// For each record those that `function` makes of the values of `columns`, of the columns `made`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn each(&self, columns: &[&str], made: Vec<Column>, function: EachFn) -> Result<Self> {
        let step = Step::Each {
            at: self.find_all(columns)?,
            made: made.clone(),
            function,
        };
        self.then("each".into(), NodeKind::Step(step), made)
    }

    /// What the function of a worker makes of batches of the values of `columns`, of the columns `made`. A batch has at most
    /// `size` records, about [`BATCH_BYTES`], and none of two chunks of the input.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn batches(
        &self,
        name: &str,
        columns: &[&str],
        made: Vec<Column>,
        size: usize,
        make: MakeBatchFn,
    ) -> Result<Self> {
        let at = self.find_all(columns)?;
        if size == 0 || made.is_empty() {
            let cause = "a batch has at least one record, and one column comes out";
            return Err(wrong(cause.to_owned()));
        }
        let step = Step::Batches(Batches {
            kinds: at.iter().map(|&at| self.columns[at].kind).collect(),
            at,
            made: made.clone(),
            size,
            make,
        });
        self.then(name.to_owned(), NodeKind::Step(step), made)
    }

    /// What `function` makes of batches of the values of `columns`, as [`Table::batches`] has them.
    ///
    /// # Errors
    /// As [`Table::batches`].
    pub fn map_batches(
        &self,
        columns: &[&str],
        made: Vec<Column>,
        size: usize,
        function: impl Fn(&Gathered, Sink<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let function = Arc::new(function);
        let made_columns = made.clone();
        let made_kinds: Vec<Type> = made.iter().map(|column| column.kind).collect();
        let make: MakeBatchFn = Arc::new(move || -> Box<dyn BatchFn> {
            Box::new(Plain {
                function: Arc::clone(&function),
                made: Gathered::new(&made_kinds),
                made_columns: made_columns.clone(),
                made_kinds: made_kinds.clone(),
                next: 0,
            })
        });
        self.batches("batches", columns, made, size, make)
    }

    /// Only `columns`, in this order.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn select(&self, columns: &[&str]) -> Result<Self> {
        let at = self.find_all(columns)?;
        let made = at.iter().map(|&at| self.columns[at].clone()).collect();
        let name = format!("select {}", columns.join(", "));
        // What is not asked for need not be sorted.
        let (table, at) = match self.narrowed(&at)? {
            Some((table, at)) => (table, at),
            None => (self.clone(), at),
        };
        table.then(name, NodeKind::Step(Step::Select(at)), made)
    }

    /// The same with fewer columns in front of the sort or shuffle that it ends with, so that those numbered `wanted` come out of it, and
    /// their numbers then; none where all are needed.
    fn narrowed(&self, wanted: &[usize]) -> Result<Option<(Self, Vec<usize>)>> {
        let Some((last, before)) = self.nodes.split_last() else {
            return Ok(None);
        };
        let NodeKind::Shuffle(shuffle) = &last.kind else {
            return Ok(None);
        };
        let Some((kept, narrow)) = shuffle.for_columns(wanted) else {
            return Ok(None);
        };
        let columns = narrow.columns.clone();
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let select = format!("select {}", names.join(", "));
        let numbers = wanted
            .iter()
            .map(|at| kept.binary_search(at).expect("it is kept"));
        let numbers = numbers.collect();
        let before = Self {
            nodes: before.to_vec(),
            columns: shuffle.columns.clone(),
            ..self.clone()
        };
        let select = before.then(select, NodeKind::Step(Step::Select(kept)), columns.clone())?;
        let shuffled = select.bring(last.name.clone(), narrow, columns)?;
        Ok(Some((shuffled, numbers)))
    }

    /// The records in the order of some columns, those that are equal there in the order they had, and those without a
    /// value first.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn sort(&self, by: &[By<'_>]) -> Result<Self> {
        let by: Vec<Order<'_>> = by.iter().map(|&by| by.into()).collect();
        self.sort_by(&by)
    }

    /// The same, with a word on where records without a value stand.
    ///
    /// # Errors
    /// As [`Table::sort`].
    pub fn sort_by(&self, by: &[Order<'_>]) -> Result<Self> {
        self.sort_by_key(&self.find_key(by)?)
    }

    /// The same by columns that are known. Groups that stand together in this order come sorted as they are; where only a hash stands in front of
    /// that, they are brought together without one.
    fn sort_by_key(&self, key: &[OrderColumn]) -> Result<Self> {
        let names: Vec<Order<'_>> = key
            .iter()
            .map(|part| Order {
                column: &self.columns[part.at].name,
                descending: part.descending,
                nulls_last: part.nulls_last,
            })
            .collect();
        let name = format!("sort by {}", by_words(&names));
        if let Some(nodes) = together::in_order(&self.nodes, &self.columns, key, &name) {
            return Ok(Self {
                nodes,
                ..self.clone()
            });
        }
        self.bring(
            name,
            Shuffle::sort(&self.columns, key),
            self.columns.clone(),
        )
    }

    /// The first `count` records in the order of some columns, and of those that are equal there, of all others upwards.
    /// Those without a value come last.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn top(&self, count: u64, by: &[By<'_>]) -> Result<Self> {
        let by: Vec<Order<'_>> = by.iter().map(|&by| by.into()).collect();
        let name = format!("top {count} by {}", by_words(&by));
        let last = |part: OrderColumn| OrderColumn {
            nulls_last: true,
            ..part
        };
        let key: Vec<_> = self.find_key(&by)?.into_iter().map(last).collect();
        let shuffle = Shuffle::top(&self.columns, count, &key);
        self.bring(name, shuffle, self.columns.clone())
    }

    /// Groups of the records that are equal in `columns`, in no order that means anything.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn group_by(&self, columns: &[&str]) -> Result<Groups> {
        Ok(Groups {
            by: self.find_all(columns)?,
            table: self.clone(),
            is_sorted: false,
        })
    }

    /// One record: what `aggregates` make of all records. Of a table that turns out to have none there is none either.
    ///
    /// # Errors
    /// As [`Groups::agg`], and [`ErrorKind::Usage`] without an aggregate.
    pub fn agg(&self, aggregates: &[Aggregate]) -> Result<Self> {
        if aggregates.is_empty() {
            return Err(wrong("no aggregate is named".to_owned()));
        }
        let all = Groups {
            by: Vec::new(),
            table: self.clone(),
            is_sorted: false,
        };
        all.agg(aggregates)
    }

    /// Each different record once, in no order that means anything. Of those that are equal in some columns
    /// [`Groups::first_records`] has the first.
    ///
    /// # Errors
    /// As [`Table::group_by`].
    pub fn distinct(&self) -> Result<Self> {
        let by: Vec<usize> = (0..self.columns.len()).collect();
        let shuffle = Shuffle::group(&self.columns, &by, Vec::new());
        self.bring("distinct".into(), shuffle, self.columns.clone())
    }

    /// The same in the order of all columns, the first one first, upwards, those without a value last.
    ///
    /// # Errors
    /// As [`Table::group_by`].
    pub fn distinct_sorted(&self) -> Result<Self> {
        let by: Vec<usize> = (0..self.columns.len()).collect();
        let shuffle = Shuffle::group(&self.columns, &by, Vec::new()).sorted();
        self.bring("distinct".into(), shuffle, self.columns.clone())
    }

    /// All records in an order drawn from `seed` and `epoch`, each order as likely as any other.
    ///
    /// # Errors
    /// None so far.
    pub fn shuffle(&self, seed: u64, epoch: u64) -> Result<Self> {
        let name = format!("shuffle by seed {seed}, epoch {epoch}");
        let shuffle = Shuffle::random(&self.columns, Draw::new(seed, epoch));
        self.bring(name, shuffle, self.columns.clone())
    }

    /// Each record with the probability `fraction`, drawn from `seed`. It stands in front of all verbs that bring records
    /// together: behind them records have no place of their own to draw by.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a fraction that is not from 0 to 1, and behind such a verb.
    pub fn sample(&self, fraction: f64, seed: u64) -> Result<Self> {
        let sample = Sample::new(fraction, seed);
        let sample = sample.ok_or_else(|| wrong(format!("{fraction} is not from 0 to 1")))?;
        if self.brings_together() {
            const OF: u64 = 1_000_000;
            let name = &self.columns[0].name;
            let kept = (fraction * OF as f64).round() as u64;
            let cause = "a sample is drawn in front of the verbs that bring records together";
            return Err(wrong(cause.to_owned()).hint(format!(
                "Behind them the hash of a column draws: filter(sm.hash({name:?}, seed={seed}) % {OF} < {kept}), in Rust keep_if((hash({name:?}, {seed}) % {OF}).lt({kept})). Of records that are equal there all are kept or none."
            )));
        }
        let name = format!("sample {fraction} by seed {seed}");
        self.then(
            name,
            NodeKind::Step(Step::Sample(sample)),
            self.columns.clone(),
        )
    }

    /// The pipeline that writes the table to the file `path`, compressed as the end of its name says.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for columns that the form cannot hold.
    pub fn write(&self, path: impl Into<PathBuf>, form: Form) -> Result<Pipeline> {
        if let Some(cause) = form.wrong(&self.columns) {
            return Err(wrong(cause));
        }
        Ok(Pipeline {
            table: self.clone(),
            to: To::new(path.into(), form),
        })
    }

    fn then(&self, name: String, kind: NodeKind, columns: Vec<Column>) -> Result<Self> {
        check_names(&columns)?;
        if self.nodes.len() == VERBS_MAX {
            let cause =
                format!("a table is made by at most {VERBS_MAX} verbs, one behind the other");
            return Err(wrong(cause).hint(
                "What a loop adds may go into one verb, or write a table and read it again.",
            ));
        }
        let mut nodes = self.nodes.clone();
        nodes.push(Node { name, kind });
        Ok(Self {
            inputs: Arc::clone(&self.inputs),
            columns,
            nodes,
        })
    }

    /// Whether one of its verbs brings records together.
    fn brings_together(&self) -> bool {
        let is_shuffle = |node: &Node| matches!(node.kind, NodeKind::Shuffle(_));
        self.nodes.iter().any(is_shuffle)
    }

    /// What is made of groups whose records stand together.
    fn together(&self, name: String, together: Together, columns: Vec<Column>) -> Result<Self> {
        let name = format!("{name}, whose records stand together");
        self.then(name, NodeKind::Step(Step::Together(together)), columns)
    }

    fn bring(&self, name: String, shuffle: Shuffle, columns: Vec<Column>) -> Result<Self> {
        self.then(name, NodeKind::Shuffle(Arc::new(shuffle)), columns)
    }

    fn find_text(&self, name: &str) -> Result<usize> {
        let at = find(&self.columns, name)?;
        let kind = self.columns[at].kind;
        match kind.is_bytes() {
            true => Ok(at),
            false => Err(wrong(format!("{name} is of type {}", kind.name()))),
        }
    }

    fn find_all(&self, names: &[&str]) -> Result<Vec<usize>> {
        if names.is_empty() {
            return Err(wrong("no column is named".to_owned()));
        }
        names.iter().map(|name| find(&self.columns, name)).collect()
    }

    fn find_key(&self, by: &[Order<'_>]) -> Result<Vec<OrderColumn>> {
        if by.is_empty() {
            return Err(wrong("no column is named".to_owned()));
        }
        by.iter().map(|by| by.find(&self.columns)).collect()
    }
}

/// Records in groups.
#[derive(Clone)]
pub struct Groups {
    table: Table,
    by: Vec<usize>,
    is_sorted: bool,
}

impl Groups {
    /// The same in the order of their columns, upwards, those without a value last: in one job, where sorting what comes out is
    /// another.
    #[must_use]
    pub fn sorted(self) -> Self {
        Self {
            is_sorted: true,
            ..self
        }
    }

    /// A record for each group: its columns, then what `aggregates` make of it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there, or no number where one is needed.
    pub fn agg(&self, aggregates: &[Aggregate]) -> Result<Table> {
        let (mut computed, mut columns) = (Vec::new(), self.columns());
        let mut ordered = Vec::new();
        for aggregate in aggregates {
            let (one, column) = aggregate.find(&self.table.columns)?;
            ordered.extend(one.ordered_by().filter(|at| !ordered.contains(at)));
            computed.push(one);
            columns.push(column);
        }
        let follows_input = computed.iter().any(Computed::follows_input);
        let is_ordered = !ordered.is_empty();
        let stand_together = self.stand_together(&[], false);
        if stand_together && !is_ordered {
            let together = Together::agg(&self.table.columns, &self.by, computed);
            let made = self.table.together(self.name(), together, columns)?;
            let order: Vec<OrderColumn> = (0..self.by.len())
                .map(|at| OrderColumn {
                    nulls_last: made.columns[at].nullable,
                    ..OrderColumn::up(at)
                })
                .collect();
            return match self.is_sorted {
                true => made.sort_by_key(&order),
                false => Ok(made),
            };
        }
        if ordered.len() > 1 || is_ordered && follows_input {
            return self.agg_in_turns(&computed, ordered, columns);
        }
        let shuffle = Shuffle::group(&self.table.columns, &self.by, computed);
        let mut shuffle = shuffle.sorted_if(self.is_sorted);
        if stand_together {
            // Those of a group are in no order of their values.
            shuffle = shuffle.of_records_together();
        }
        self.table.bring(self.name(), shuffle, columns)
    }

    /// Whether the records of each stand together as they are, in the order `order`, and groups in their own if they are to be `sorted`.
    fn stand_together(&self, order: &[OrderColumn], sorted: bool) -> bool {
        let standing = Standing::of(&self.table.nodes);
        standing.is_some_and(|standing| standing.groups(&self.by, order, sorted))
    }

    fn columns(&self) -> Vec<Column> {
        let column = |&at: &usize| self.table.columns[at].clone();
        self.by.iter().map(column).collect()
    }

    fn name(&self) -> String {
        if self.by.is_empty() {
            return "aggregate".to_owned();
        }
        let names: Vec<String> = self
            .columns()
            .into_iter()
            .map(|column| column.name)
            .collect();
        format!("group by {}", names.join(", "))
    }
}

/// What is to be done, from files to a file or several.
#[derive(Clone)]
pub struct Pipeline {
    table: Table,
    to: To,
}

/// What a pipeline may use.
#[derive(Clone, Default)]
pub struct Settings {
    /// The most memory, in bytes; `None` is half of what is available.
    pub memory_bytes: Option<u64>,
    /// The folders for temporary files; none is as for a job.
    pub temps: Vec<PathBuf>,
    /// Threads that compute; `None` is one per core.
    pub threads: Option<usize>,
    /// What is done around the functions that lie in front of the first verb that brings records together, once for
    /// many records; `None` is nothing.
    pub around: Option<Around>,
    /// Partitions are reduced one after the other: functions behind a verb that brings records together gain nothing from
    /// threads.
    pub reduces_in_turn: bool,
    /// Where the pipeline tells how far it is.
    pub watched: Option<Arc<Watched>>,
    /// Sizes that tests shrink.
    pub tuning: Tuning,
}

impl Settings {
    /// At most `memory_bytes` bytes of memory, and all else as it is by itself.
    #[must_use]
    pub fn within(memory_bytes: u64) -> Self {
        Self {
            memory_bytes: Some(memory_bytes),
            ..Self::default()
        }
    }
}

/// Refuses two columns of one name, and none at all.
fn check_names(columns: &[Column]) -> Result<()> {
    if columns.is_empty() {
        return Err(wrong("a table has at least one column".to_owned()));
    }
    for (number, column) in columns.iter().enumerate() {
        let mut before = columns[..number].iter();
        if before.any(|other| other.name == column.name) {
            return Err(wrong(format!("two columns are called {}", column.name)));
        }
    }
    Ok(())
}

/// Which of `columns` is called `name`.
fn find(columns: &[Column], name: &str) -> Result<usize> {
    let found = columns.iter().position(|column| column.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        wrong(format!(
            "there is no column {name}, only {}",
            names.join(", ")
        ))
    })
}

fn wrong(cause: String) -> Error {
    Error::new(ErrorKind::Usage, "building the pipeline", cause)
}
