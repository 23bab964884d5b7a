//! Any program as a function of batches: it is started for each, reads a stream of Arrow's with its records and writes another
//! one (`../command.rs` runs it).

use std::io::Cursor;

use sortmill_io::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_schema::ArrowError;

use super::{batch_of, gathered, schema, writer};
use crate::error::Result;
use crate::pipeline::command::{Command, MADE_BYTES_MAX, failed};
use crate::pipeline::gather::{BatchFn, Gathered, MakeBatchFn, Refused, RowSink, hand_over};
use crate::pipeline::{Column, Table, Type};

impl Table {
    /// What a program makes of all columns, of the columns `made`: it is started for each batch of at most `size` records, reads
    /// a stream of Arrow's (IPC streaming format) with a batch of them from its standard input, and writes one with any number of
    /// batches. It must end with exit code 0, and may write at most 64 MiB.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::error::ErrorKind::Usage) without a program, and without a column that comes out.
    pub fn map_command_arrow(
        &self,
        command: Command,
        made: Vec<Column>,
        size: usize,
    ) -> Result<Self> {
        let name = command.name()?;
        let columns = self.columns().to_vec();
        let made_columns = made.clone();
        let make: MakeBatchFn = Arc::new(move || -> Box<dyn BatchFn> {
            Box::new(Batches {
                command: command.clone(),
                columns: columns.clone(),
                kinds: made_columns.iter().map(|column| column.kind).collect(),
                made_columns: made_columns.clone(),
                made: Vec::new(),
                at: 0,
                next: 0,
            })
        });
        let names: Vec<&str> = self.columns().iter().map(|column| &*column.name).collect();
        self.batches(&name, &names, made, size, make)
    }
}

/// A program at the hands of one worker.
struct Batches {
    command: Command,
    columns: Vec<Column>,
    made_columns: Vec<Column>,
    kinds: Vec<Type>,
    made: Vec<Gathered>,
    /// Which of them is handed over, and from which record on.
    at: usize,
    next: usize,
}

impl Batches {
    /// The records of a stream of Arrow's.
    fn taken(&self, made: Vec<u8>) -> std::result::Result<Vec<Gathered>, String> {
        let told = |error: ArrowError| format!("what it wrote is no stream of Arrow's: {error}");
        if made.is_empty() {
            return Err("it wrote nothing, and no stream of Arrow's".to_owned());
        }
        let all = made.len() as u64;
        let mut batches = StreamReader::try_new(Cursor::new(made), None).map_err(told)?;
        // A stream without batches has columns, too.
        gathered(
            &self.made_columns,
            &RecordBatch::new_empty(batches.schema()),
        )?;
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for batch in batches.by_ref() {
            let batch = gathered(&self.made_columns, &batch.map_err(told)?)?;
            bytes += batch.bytes();
            if bytes > MADE_BYTES_MAX {
                return Err("it made more than 64 MiB of one batch".to_owned());
            }
            taken.push(batch);
        }
        match batches.get_ref().position() == all {
            true => Ok(taken),
            // Nobody would miss what a second stream has.
            false => Err("something follows the stream that it wrote".to_owned()),
        }
    }
}

impl BatchFn for Batches {
    fn call(&mut self, batch: &Gathered, _: bool) -> std::result::Result<(), Refused> {
        let schema = std::sync::Arc::new(schema(&self.columns));
        let given = batch_of(&self.columns, &schema, batch.clone())?;
        let mut stream = writer(&schema);
        let written = stream.write(&given).and_then(|()| stream.into_inner());
        let given = written.map_err(|error| (0, Box::new(failed(error.to_string()))))?;
        let made = self.command.filter(&given)?;
        let name = self.command.words[0].display();
        let taken = self.taken(made);
        self.made = taken.map_err(|cause| (0, Box::new(failed(format!("{name}: {cause}")))))?;
        (self.at, self.next) = (0, 0);
        Ok(())
    }

    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool> {
        while let Some(batch) = self.made.get(self.at) {
            if !hand_over(batch, &self.kinds, &mut self.next, sink, is_full)? {
                return Ok(false);
            }
            (self.at, self.next) = (self.at + 1, 0);
        }
        Ok(true)
    }

    fn finish(&mut self, _: bool) -> Result<()> {
        self.made.clear();
        (self.at, self.next) = (0, 0);
        Ok(())
    }
}
