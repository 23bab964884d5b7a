//! Functions of the user's, called with a batch at a time: the same in this process and in a worker process. Those of groups
//! are told of here, too, and called in `groups.rs`.
//!
//! In comes a batch as columns, out come records as columns, each with the number of the record it was made of. A function
//! of records is called with each as a dictionary, one after the other; a function of batches gets Arrow's columns.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::sync::atomic::{AtomicU64, Ordering};
use sortmill::pipeline::arrow::{batch_of, gathered, schema};
use sortmill::pipeline::{
    BatchFn, Column, Gathered, Owned, Refused, RowSink, Type, Value, hand_over,
};

use crate::arrow::{self, Batch};
use crate::columns::Held;
use crate::function::{answered, record, record_dict};
use crate::running::Running;
use crate::wire::counted;
use crate::work::words;

/// What is done with a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It answers a record or none.
    Map,
    /// It answers any number of records.
    FlatMap,
    /// It answers whether a record stays.
    Filter,
    /// It answers a batch for a batch.
    Batches,
    /// It answers any number of records for a group; those that make one record of each are called so, too.
    Reduce,
    Apply,
}

impl Kind {
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "map" => Self::Map,
            "flat_map" => Self::FlatMap,
            "filter" => Self::Filter,
            "map_batches" => Self::Batches,
            "reduce" => Self::Reduce,
            "apply" => Self::Apply,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::FlatMap => "flat_map",
            Self::Filter => "filter",
            Self::Batches => "map_batches",
            Self::Reduce => "reduce",
            Self::Apply => "apply",
        }
    }

    /// Whether its function is called with groups, and not with batches.
    pub fn is_of_groups(self) -> bool {
        matches!(self, Self::Reduce | Self::Apply)
    }
}

/// The types of columns.
pub fn kinds_of(columns: &[Column]) -> Vec<Type> {
    columns.iter().map(|column| column.kind).collect()
}

/// A function, and what it is told of.
pub struct Definition {
    /// Tells it from others of this process, in all outputs that it has a part in.
    pub id: u64,
    pub kind: Kind,
    /// What it is called, for people.
    pub name: String,
    pub function: Py<PyAny>,
    pub columns: Vec<Column>,
    pub made: Vec<Column>,
    pub kinds: Vec<Type>,
    pub made_kinds: Vec<Type>,
    /// The columns that groups are made by.
    pub by: Vec<String>,
    pub schema: Arc<Schema>,
    /// It answers the same whenever it is asked the same, and does nothing else.
    pub is_pure: bool,
    /// It is a class, of which each worker has an object, behind what brings records together each partition.
    pub keeps_state: bool,
    /// How long it may work on a batch.
    pub timeout: Option<Duration>,
}

impl Definition {
    pub fn new(
        py: Python<'_>,
        kind: Kind,
        function: Py<PyAny>,
        columns: Vec<Column>,
        made: Vec<Column>,
    ) -> PyResult<Self> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let about = py.import("sortmill._functions")?.getattr("about")?;
        let (name, is_class): (String, bool) = about.call1((&function,))?.extract()?;
        Ok(Self {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            kind,
            name,
            kinds: kinds_of(&columns),
            made_kinds: kinds_of(&made),
            schema: Arc::new(schema(&columns)),
            function,
            columns,
            made,
            by: Vec::new(),
            is_pure: false,
            keeps_state: is_class,
            timeout: None,
        })
    }
}

/// What went wrong with a record of a batch.
pub struct Failure {
    pub at: usize,
    pub error: Box<Error>,
    /// What the function raised.
    pub raised: Option<PyErr>,
}

impl Failure {
    pub fn raised(py: Python<'_>, at: usize, raised: PyErr) -> Self {
        let cause = words(py, &raised);
        Self {
            at,
            error: Box::new(Error::new(ErrorKind::Function, DOING, cause)),
            raised: Some(raised),
        }
    }

    /// The same, which tells the key of the group that it is about.
    pub fn of_group(self, key: &Bound<'_, PyAny>) -> Self {
        self.about("in the group", key)
    }

    /// The same, which tells the record that a function was called with if that is why it failed.
    fn of_record(self, record: &Bound<'_, PyAny>) -> Self {
        match self.raised {
            Some(_) => self.about("of the record", record),
            None => self,
        }
    }

    fn about(mut self, what: &str, shown: &Bound<'_, PyAny>) -> Self {
        const SHOWN_CHARS: usize = 200;
        if let Ok(shown) = shown.repr() {
            let shown: String = shown.to_string_lossy().chars().take(SHOWN_CHARS).collect();
            self.error.cause += &format!(", {what} {shown}");
        }
        self
    }

    /// A record is not what a function may be given.
    pub fn given((at, mut error): Refused) -> Self {
        DOING.clone_into(&mut error.doing);
        Self::plain(at, *error)
    }

    pub fn plain(at: usize, error: Error) -> Self {
        Self {
            at,
            error: Box::new(error),
            raised: None,
        }
    }
}

const DOING: &str = "calling a Python function";

/// A function in the hands of one worker.
pub struct Caller {
    definition: Arc<Definition>,
    /// The object of a class and its `finish`, or the function itself.
    begun: Option<(Py<PyAny>, Option<Py<PyAny>>)>,
}

impl Caller {
    pub fn new(definition: &Arc<Definition>) -> Self {
        Self {
            definition: Arc::clone(definition),
            begun: None,
        }
    }

    /// What it makes of a batch.
    ///
    /// Between records it looks whether they are wanted still.
    pub fn call(
        &mut self,
        py: Python<'_>,
        batch: Cow<'_, Gathered>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Gathered, Failure> {
        let definition = Arc::clone(&self.definition);
        if is_over() {
            return Err(Failure::plain(0, Error::interrupted()));
        }
        let function = self.function(py)?;
        if definition.kind == Kind::Batches {
            return definition.call_with_batch(&function, batch.into_owned());
        }
        let mut made = Gathered::new(&definition.made_kinds);
        for at in 0..batch.len() {
            if is_over() {
                return Err(Failure::plain(at, Error::interrupted()));
            }
            definition.call_with_record(&function, &batch, at, &mut made)?;
        }
        Ok(made)
    }

    /// What a function of batches makes of one, where that lies.
    pub fn call_with_columns(
        &mut self,
        py: Python<'_>,
        batch: RecordBatch,
    ) -> Result<Vec<Held>, Failure> {
        let definition = Arc::clone(&self.definition);
        let answer = self.function(py)?.call1((Batch::new(batch),));
        let answer = answer.map_err(|error| Failure::raised(py, 0, error))?;
        let held = |batch: &RecordBatch| Held::of(&definition.made, batch);
        definition.each_batch(&answer, held)
    }

    /// What is called: of a class an object, which is made when it is first needed.
    fn function<'py>(&mut self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Failure> {
        if self.begun.is_none() {
            let begun = self.definition.begin(py);
            self.begun = Some(begun.map_err(|error| Failure::raised(py, 0, error))?);
        }
        let (function, _) = self.begun.as_ref().expect("it was just made");
        Ok(function.bind(py).clone())
    }

    /// What its object makes when there are no more records; nothing if it never was called, or has no `finish`.
    pub fn finish(&mut self, py: Python<'_>) -> Result<Gathered, Failure> {
        let definition = &self.definition;
        let mut made = Gathered::new(&definition.made_kinds);
        let Some((_, Some(finish))) = self.begun.take() else {
            return Ok(made);
        };
        let raised = |error| Failure::raised(py, 0, error);
        let answer = finish.bind(py).call0().map_err(raised)?;
        match definition.kind {
            _ if answer.is_none() => {}
            Kind::Batches => return definition.taken(&answer),
            Kind::Filter => {
                let error = PyTypeError::new_err("finish of a filter answers nothing");
                return Err(raised(error));
            }
            _ => definition.push_all(&answer, 0, &mut made)?,
        }
        Ok(made)
    }
}

impl Definition {
    /// What a worker calls, of a class an object that is made now, and its `finish`.
    pub fn begin(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Option<Py<PyAny>>)> {
        let begin = py.import("sortmill._functions")?.getattr("begin")?;
        begin.call1((&self.function,))?.extract()
    }

    fn call_with_batch(
        &self,
        function: &Bound<'_, PyAny>,
        batch: Gathered,
    ) -> Result<Gathered, Failure> {
        let py = function.py();
        let batch = batch_of(&self.columns, &self.schema, batch);
        let batch = batch.map_err(Failure::given)?;
        let answer = function.call1((Batch::new(batch),));
        let answer = answer.map_err(|error| Failure::raised(py, 0, error))?;
        self.taken(&answer)
    }

    /// What `of` makes of each batch of the Arrow data that a function answered.
    fn each_batch<T>(
        &self,
        answer: &Bound<'_, PyAny>,
        of: impl FnMut(&RecordBatch) -> Result<T, String>,
    ) -> Result<Vec<T>, Failure> {
        let py = answer.py();
        let batches = arrow::batches(answer).map_err(|error| Failure::raised(py, 0, error))?;
        let made: Result<Vec<T>, String> = batches.iter().map(of).collect();
        made.map_err(|cause| Failure::raised(py, 0, PyTypeError::new_err(cause)))
    }

    /// The records of the Arrow data that a function answered.
    fn taken(&self, answer: &Bound<'_, PyAny>) -> Result<Gathered, Failure> {
        let of = |batch: &RecordBatch| gathered(&self.made, batch);
        let mut batches = self.each_batch(answer, of)?;
        if batches.len() == 1 {
            return Ok(batches.remove(0));
        }
        let mut made = Gathered::new(&self.made_kinds);
        for batch in &batches {
            for at in 0..batch.len() {
                let pushed = batch.with(&self.made_kinds, at, |values| made.push(0, values));
                pushed.map_err(|error| Failure::plain(0, error))?;
            }
        }
        Ok(made)
    }

    fn call_with_record(
        &self,
        function: &Bound<'_, PyAny>,
        batch: &Gathered,
        at: usize,
        made: &mut Gathered,
    ) -> Result<(), Failure> {
        let py = function.py();
        let dict = |values: &[Value<'_>]| record_dict(py, &self.columns, values);
        let dict: Bound<'_, PyDict> = batch
            .with(&self.kinds, at, dict)
            .map_err(|error| Failure::plain(at, error))?;
        let done = self.call_with_dict(function, &dict, (batch, at), made);
        done.map_err(|failure| failure.of_record(&dict))
    }

    fn call_with_dict(
        &self,
        function: &Bound<'_, PyAny>,
        dict: &Bound<'_, PyDict>,
        (batch, at): (&Gathered, usize),
        made: &mut Gathered,
    ) -> Result<(), Failure> {
        let py = function.py();
        let answer = function.call1((dict,));
        let answer = answer.map_err(|error| Failure::raised(py, at, error))?;
        match self.kind {
            Kind::Filter => {
                let keeps = answer.is_truthy();
                if keeps.map_err(|error| Failure::raised(py, at, error))? {
                    let push = |values: &[Value<'_>]| made.push(at as u32, values);
                    let pushed = batch.with(&self.kinds, at, push);
                    pushed.map_err(|error| Failure::plain(at, error))?;
                }
                Ok(())
            }
            _ if answer.is_none() => Ok(()),
            Kind::FlatMap => self.push_all(&answer, at, made),
            _ => self.push(&answer, at, made),
        }
    }

    fn push_all(
        &self,
        answer: &Bound<'_, PyAny>,
        at: usize,
        made: &mut Gathered,
    ) -> Result<(), Failure> {
        let raised = |error| Failure::raised(answer.py(), at, error);
        for one in answered(&self.made, answer).map_err(raised)? {
            self.push(&one.map_err(raised)?, at, made)?;
        }
        Ok(())
    }

    fn push(
        &self,
        answer: &Bound<'_, PyAny>,
        at: usize,
        made: &mut Gathered,
    ) -> Result<(), Failure> {
        let record = record(&self.made, answer);
        let record = record.map_err(|error| Failure::raised(answer.py(), at, error))?;
        let values: Vec<Value<'_>> = record.iter().map(Owned::value).collect();
        let pushed = made.push(at as u32, &values);
        pushed.map_err(|error| Failure::plain(at, error))
    }
}

/// A function that is called in this process.
pub struct Here {
    caller: Caller,
    running: Arc<Running>,
    number: usize,
    made: Gathered,
    next: usize,
}

impl Here {
    pub fn new(definition: &Arc<Definition>, running: &Arc<Running>, number: usize) -> Self {
        Self {
            caller: Caller::new(definition),
            running: Arc::clone(running),
            number,
            made: Gathered::new(&definition.made_kinds),
            next: 0,
        }
    }

    fn take(
        &mut self,
        count: usize,
        is_sample: bool,
        call: impl FnOnce(&mut Caller, Python<'_>) -> Result<Gathered, Failure>,
    ) -> Result<(), Refused> {
        let (made, busy) = Python::attach(|py| {
            let began = std::time::Instant::now();
            let running = Arc::clone(&self.running);
            let made = running.raised.calling(py, || call(&mut self.caller, py));
            let busy = began.elapsed();
            let said = counted(py).unwrap_or_default();
            if !is_sample && made.is_ok() {
                self.running.count(self.number, &said);
            }
            (made, busy)
        });
        match made {
            Ok(made) => {
                if !is_sample {
                    self.running
                        .tally(self.number, count, made.len(), busy.as_nanos() as u64);
                }
                (self.made, self.next) = (made, 0);
                Ok(())
            }
            Err(Failure { at, error, raised }) => {
                if let Some(raised) = raised {
                    self.running.raise(raised, is_sample);
                }
                Err((at, error))
            }
        }
    }
}

impl BatchFn for Here {
    fn call(&mut self, batch: &Gathered, is_sample: bool) -> Result<(), Refused> {
        let running = Arc::clone(&self.running);
        self.take(batch.len(), is_sample, |caller, py| {
            caller.call(py, Cow::Borrowed(batch), &|| running.has_raised())
        })
    }

    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool, Error> {
        let kinds = &self.caller.definition.made_kinds;
        hand_over(&self.made, kinds, &mut self.next, sink, is_full)
    }

    fn finish(&mut self, is_sample: bool) -> Result<(), Error> {
        let finished = self.take(0, is_sample, Caller::finish);
        finished.map_err(|(_, error)| *error)
    }
}
