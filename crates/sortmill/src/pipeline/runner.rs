//! Pipelines on the machine that the program runs on, one after the other, and the tables that they keep for each other.
//!
//! ```no_run
//! use sortmill::pipeline::{Runner, Settings, count, read_kv};
//!
//! # fn main() -> sortmill::error::Result<()> {
//! let runner = Runner::new(Settings::within(512 << 20))?.in_folder("/data/ranks");
//! let groups = read_kv(["pairs"]).group_by(&["key"])?;
//! let counts = runner.keep(&groups.agg(&[count()])?, "counts")?;
//! println!("{}", counts.report);
//! for row in runner.head(&groups.agg(&[count()])?, 10)? {
//!     println!("{row:?}");
//! }
//! let both = runner.paste(&[&counts, &counts.renamed(&["key", "again"])])?;
//! # let _ = both;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use sortmill_io::sync::Arc;
use sortmill_io::{Host, Os, RingKind};

use super::column::{Column, Value};
use super::write::Form;
use super::{Owned, Pipeline, PipelineReport, RowFile, Settings, Table, paste};
use crate::error::{Error, ErrorKind, Result};
use crate::queue::Stop;

/// Runs pipelines on this machine, with io_uring where that is allowed, all with the same settings.
pub struct Runner {
    os: Arc<dyn Os>,
    settings: Settings,
    folder: PathBuf,
}

/// A table that was written as rows, to be read beside others ([`Runner::paste`]), and what was done for that.
#[derive(Clone, Debug)]
pub struct Kept {
    path: PathBuf,
    columns: Vec<Column>,
    /// What the pipeline did that made it.
    pub report: PipelineReport,
}

impl Runner {
    /// One that runs pipelines with `settings`, and keeps tables in the current folder.
    ///
    /// # Errors
    /// The system's.
    pub fn new(settings: Settings) -> Result<Self> {
        let host = Host::new(RingKind::Auto, true);
        let host =
            host.map_err(|error| Error::new(ErrorKind::Io, "starting", error.to_string()))?;
        Ok(Self {
            os: Arc::new(host),
            settings,
            folder: PathBuf::new(),
        })
    }

    /// The same with tables kept in `folder`, which is there.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            ..self
        }
    }

    /// Does what `pipeline` says. Nothing can stop it but an error.
    ///
    /// # Errors
    /// As [`Pipeline::run`].
    pub fn run(&self, pipeline: &Pipeline) -> Result<PipelineReport> {
        pipeline.run(&self.settings, &*self.os, &Stop::new())
    }

    /// Runs `table` and hands its records to `see`, one after the other: once all of them are made and proven, from a temporary
    /// file, so that a table may be larger than memory.
    ///
    /// # Errors
    /// As [`Runner::run`], and what `see` answers, which ends it.
    pub fn for_each(
        &self,
        table: &Table,
        mut see: impl FnMut(&[Value<'_>]) -> Result<()>,
    ) -> Result<PipelineReport> {
        let (report, mut rows) = self.hold(table)?;
        while rows.next(&*self.os, &mut see)? {}
        Ok(report)
    }

    /// All records of `table`, in memory that the settings know nothing of.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn collect(&self, table: &Table) -> Result<Vec<Vec<Owned>>> {
        let mut rows = Vec::new();
        self.for_each(table, |values| {
            rows.push(kept(values));
            Ok(())
        })?;
        Ok(rows)
    }

    /// The first `count` records of `table`: of the beginnings of its files where that will do ([`Table::head`]), else of all of it.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn head(&self, table: &Table, count: usize) -> Result<Vec<Vec<Owned>>> {
        if let Some((rows, true)) = table.head(count, &*self.os, &Stop::new())? {
            return Ok(rows);
        }
        let (_, mut file) = self.hold(table)?;
        let mut rows = Vec::new();
        let mut take = |values: &[Value<'_>]| {
            rows.push(kept(values));
            Ok(())
        };
        for _ in 0..count {
            if !file.next(&*self.os, &mut take)? {
                break;
            }
        }
        Ok(rows)
    }

    /// What `table` would be of the first `bytes` bytes of its files together, to look at it without waiting for all of them, and
    /// whether that is all there is ([`Table::sampled`]). The table itself, where there is no sample of its input.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn sampled(&self, table: &Table, bytes: usize) -> Result<(Table, bool)> {
        let sampled = table.sampled(bytes, &*self.os, &Stop::new())?;
        Ok(sampled.unwrap_or_else(|| (table.clone(), true)))
    }

    fn hold(&self, table: &Table) -> Result<(PipelineReport, RowFile)> {
        let open = |path: &Path| RowFile::open(&*self.os, path, table.columns());
        table.hold(&self.settings, &*self.os, &Stop::new(), open)
    }

    /// Writes `table` as rows to the file `name` in the folder, where it stays. What is there is replaced once the new one is
    /// complete, and may be read until then, by this pipeline too.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn keep(&self, table: &Table, name: &str) -> Result<Kept> {
        let path = self.folder.join(name);
        let pipeline = table.write(path.clone(), Form::Rows)?.compressed(None);
        Ok(Kept {
            report: self.run(&pipeline)?,
            columns: table.columns().to_vec(),
            path,
        })
    }

    /// Tables that were kept directly behind a [`group_by`](Table::group_by), side by side, as [`paste`] has them.
    ///
    /// # Errors
    /// As [`paste`].
    pub fn paste(&self, tables: &[&Kept]) -> Result<Table> {
        let files: Vec<_> = tables
            .iter()
            .map(|kept| (&*kept.path, &*kept.columns))
            .collect();
        paste(Arc::clone(&self.os), &files)
    }
}

fn kept(values: &[Value<'_>]) -> Vec<Owned> {
    values.iter().map(|&value| Owned::new(value)).collect()
}

impl Kept {
    /// The same with other names for its columns.
    ///
    /// # Panics
    /// For more or fewer names than it has columns.
    #[must_use]
    pub fn renamed(&self, names: &[&str]) -> Self {
        assert_eq!(names.len(), self.columns.len(), "each column has a name");
        let both = self.columns.iter().zip(names);
        let columns = both.map(|(column, &name)| Column {
            name: name.to_owned(),
            ..column.clone()
        });
        Self {
            columns: columns.collect(),
            ..self.clone()
        }
    }
}

impl fmt::Display for PipelineReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.summary())
    }
}
