//! Records that come from this process, or stay in it: as pairs with nothing for a key, through a pipe or in a file.
//!
//! ```text
//! whoever has records --write_row--> a pipe --> the first job
//! the last job --write_row--> a file in a job's folder for temporary files --read_row--> whoever wants records
//! ```

use std::path::{Path, PathBuf};

use sortmill_io::Os;
use sortmill_io::sync::Arc;

use super::column::{Column, Type, Value, corrupt, row};
use super::go::PipelineReport;
use super::write::Form;
use super::{Inputs, Pipeline, Settings, Table};
use crate::error::Result;
use crate::order::KV_HEADER_BYTES;
use crate::queue::Stop;
use crate::run;
use crate::temp::{BETWEEN, Temp};

/// Answers the path of a stream of records, once a pipeline is to read it.
pub type RowsPath = Arc<dyn Fn() -> PathBuf + Send + Sync>;

/// The records of the stream that `path` answers, one after the other as [`write_row`] has them. It is read once.
pub fn read_rows(columns: Vec<Column>, path: RowsPath) -> Table {
    Table {
        inputs: Arc::new(Inputs {
            patterns: Vec::new(),
            skip_header: 0,
            rows: Some(path),
            columns: columns.clone(),
        }),
        columns,
        nodes: Vec::new(),
    }
}

/// Appends a record: the length of its key, 0, and of its values, 4 bytes each, little-endian, and its values.
pub fn write_row(record: &[Value<'_>], to: &mut Vec<u8>) {
    let from = to.len();
    to.extend_from_slice(&[0; KV_HEADER_BYTES]);
    record.iter().for_each(|value| value.write(to));
    let length = (to.len() - from - KV_HEADER_BYTES) as u32;
    to[from + 4..from + KV_HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// Calls `with` with the values of a record, of these types, which lie in `from` without the lengths in front.
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] for what is no record, and what `with` answers.
pub fn read_row<T>(
    kinds: &[Type],
    mut from: &[u8],
    with: impl FnOnce(&[Value<'_>]) -> Result<T>,
) -> Result<T> {
    let read = |at: usize| Value::read(kinds[at], &mut from).ok_or_else(corrupt);
    row(kinds.len(), read, with)
}

impl Table {
    /// Runs the pipeline up to this table and calls `take` with the file of its records, as [`write_row`] has them: all of
    /// them, proven. The file goes when `take` returns; one that it has opened can still be read.
    ///
    /// # Errors
    /// As [`Pipeline::run`], and what `take` answers.
    pub fn hold<T>(
        &self,
        settings: &Settings,
        os: &dyn Os,
        stop: &Stop,
        take: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(PipelineReport, T)> {
        let mut pipeline = Pipeline {
            table: self.clone(),
            path: PathBuf::from(BETWEEN[0]),
            form: Form::Rows,
        };
        let base = pipeline.temp_base(settings, os)?;
        let mut settings = settings.clone();
        if settings.temps.is_empty() {
            // Not in the folder that is made here, which would be taken away with it.
            settings.temps.push(base.clone());
        }
        crate::temp::clean_up(os, &base);
        let temp = Temp::new(os, &base, os.random(), None, 0);
        temp.make()?;
        pipeline.path = temp.spill_path().with_file_name(BETWEEN[0]);
        let report = pipeline.run(&settings, os, stop)?;
        let taken = take(&pipeline.path)?;
        Ok((report, taken))
    }
}

impl Pipeline {
    /// The folder that what lies between phases is kept in.
    pub(super) fn temp_base(&self, settings: &Settings, os: &dyn Os) -> Result<PathBuf> {
        let job = self.folders_of(settings, os)?;
        let base = run::folders(&job, os)?.temps.into_iter().next();
        Ok(base.unwrap_or_else(|| PathBuf::from(".")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_row_comes_back() {
        let record = [Value::Bytes(b"ab"), Value::Bool(true), Value::I64(-5)];
        let kinds = [Type::String, Type::Bool, Type::I64];
        let mut bytes = vec![9];
        write_row(&record, &mut bytes);
        assert_eq!(bytes[1..9], [0, 0, 0, 0, 12, 0, 0, 0]);
        let values = |from: &[u8]| read_row(&kinds, from, |values| Ok(format!("{values:?}")));
        assert_eq!(values(&bytes[9..]).unwrap(), format!("{record:?}"));
        assert_eq!(values(&bytes[9..20]).unwrap_err().kind, ErrorKind::Corrupt);
    }
}
