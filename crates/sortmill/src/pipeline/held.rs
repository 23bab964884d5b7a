//! Records that stay in this process: in a file without a name, as rows (`rows.rs`).
//!
//! ```text
//! the last job --rows--> a file in a job's folder for temporary files --RowFile, read_row--> whoever wants records
//! ```

use std::path::{Path, PathBuf};

use sortmill_io::Os;

use super::column::{Column, Value, corrupt, row};
use super::go::PipelineReport;
use super::to::To;
use super::write::Form;
use super::{Pipeline, Settings, Table};
use crate::error::Result;
use crate::job::{Job, Output};
use crate::queue::Stop;
use crate::run;
use crate::temp::{BETWEEN, Temp};

/// Calls `with` with the values of a record of `columns`, which lie in `from` without the lengths in front.
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] for what is no record, and what `with` answers.
pub fn read_row<T>(
    columns: &[Column],
    mut from: &[u8],
    with: impl FnOnce(&[Value<'_>]) -> Result<T>,
) -> Result<T> {
    let read = |at: usize| columns[at].take(&mut from).ok_or_else(corrupt);
    row(columns.len(), read, with)
}

impl Table {
    /// Runs the pipeline up to this table and calls `take` with the file of its records, as [`Form::Rows`] has them: all of
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
            to: To::new(PathBuf::from(BETWEEN[0]), Form::Rows),
        };
        // That of the system, if none is said: there is no output that it could be near.
        let mut job = pipeline.folders_of(settings, os)?;
        job.output = Output::Stdout;
        let base = temp_base(&job, os)?;
        let mut settings = settings.clone();
        if settings.temps.is_empty() {
            // Not in the folder that is made here, which would be taken away with it.
            settings.temps.push(base.clone());
        }
        crate::temp::clean_up(os, &base);
        let temp = Temp::new(os, &base, os.random(), None, 0);
        temp.make()?;
        let path = temp.spill_path().with_file_name(BETWEEN[0]);
        pipeline.to = To::new(path.clone(), Form::Rows);
        let report = pipeline.run(&settings, os, stop)?;
        let taken = take(&path)?;
        Ok((report, taken))
    }
}

/// The folder that what lies between phases of a job's pipeline is kept in.
pub(super) fn temp_base(job: &Job, os: &dyn Os) -> Result<PathBuf> {
    let base = run::folders(job, os)?.temps.into_iter().next();
    Ok(base.unwrap_or_else(|| PathBuf::from(".")))
}

#[cfg(test)]
mod tests {
    use super::super::column::Type;
    use super::super::rows;
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_row_comes_back() {
        let record = [Value::Bytes(b"ab"), Value::Bool(true), Value::I64(-5)];
        let kinds = [Type::String, Type::Bool, Type::I64];
        let columns = kinds.map(|kind| Column::new("a", kind));
        let mut bytes = vec![9];
        rows::write(&columns, &record, &mut bytes);
        assert_eq!(bytes[1..9], [0, 0, 0, 0, 12, 0, 0, 0]);
        let values = |from: &[u8]| read_row(&columns, from, |values| Ok(format!("{values:?}")));
        assert_eq!(values(&bytes[9..]).unwrap(), format!("{record:?}"));
        assert_eq!(values(&bytes[9..20]).unwrap_err().kind, ErrorKind::Corrupt);
    }
}
