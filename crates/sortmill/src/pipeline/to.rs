//! Where a table goes: one file, or several of equal counts; and whether what is there may be replaced.

use std::path::PathBuf;

use sortmill_io::Os;
use sortmill_io::codec::Codec;
use sortmill_io::os::Kind;

use super::Pipeline;
use super::write::Form;
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Compress, Output};
use crate::parts::{PARTS_MAX, PartCut, Parts};

/// Where a table goes.
#[derive(Clone)]
pub(super) struct To {
    path: PathBuf,
    pub form: Form,
    /// How many files in a folder; `None` is one file, and no folder.
    files: Option<u64>,
    /// How it is compressed, if that was said.
    compress: Option<Option<Compress>>,
    /// What is there may not be replaced.
    is_new: bool,
}

impl Pipeline {
    /// The same in `count` files of a folder that has the path said, `part-00000.csv` and so on, and a manifest: in the order
    /// of the table, each with as many records as any other or one more. Names begin all of them, if they begin one. The
    /// folder appears whole or not at all; if it is there, it is empty or what an earlier run made. Such files are compressed, each
    /// by itself, if [`Pipeline::compressed`] says so. If the last verb leaves out records or makes others, one phase more counts
    /// them.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for no files, or more than 100,000.
    pub fn in_files(mut self, count: u64) -> Result<Self> {
        if !(1..=PARTS_MAX).contains(&count) {
            let cause = format!("there can be 1 to {PARTS_MAX} files, not {count}");
            return Err(super::wrong(cause));
        }
        self.to.files = Some(count);
        Ok(self)
    }

    /// The same, compressed so whatever the end of its name says, or not at all. Files of a folder have the end that says how
    /// in their names.
    #[must_use]
    pub fn compressed(mut self, compress: Option<Compress>) -> Self {
        self.to.compress = Some(compress);
        self
    }

    /// The same, refused where something has the output's name already. Without this that is replaced once the output is
    /// complete.
    #[must_use]
    pub fn only_new(mut self) -> Self {
        self.to.is_new = true;
        self
    }

    /// Looks whether [`Pipeline::only_new`] refuses it now, as [`Pipeline::run`] does before it begins.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] with the path.
    pub fn check(&self, os: &dyn Os) -> Result<()> {
        self.to.check(os)
    }
}

impl To {
    /// One file, which may be replaced.
    pub fn new(path: PathBuf, form: Form) -> Self {
        Self {
            path,
            form,
            files: None,
            compress: None,
            is_new: false,
        }
    }

    /// Whether the records must be counted before they are written.
    pub fn is_counted(&self) -> bool {
        self.files.is_some()
    }

    /// What is written where, in words.
    pub fn words(&self) -> String {
        let (form, path) = (self.form.name(), self.path.display());
        let packed = self.compress();
        let packed = packed.map_or_else(String::new, |how| format!(", by {}", how.codec.name()));
        match self.files {
            None => format!("{form} to {path}{packed}"),
            Some(count) => format!("{form} to {count} files of equal counts in {path}{packed}"),
        }
    }

    /// Refuses to replace what is there, if that is asked.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] with the path.
    pub fn check(&self, os: &dyn Os) -> Result<()> {
        let there = |path| os.meta_at(path).is_ok_and(|meta| meta.kind != Kind::Stream);
        if !self.is_new || !there(&self.path) {
            return Ok(());
        }
        let cause = "something has this name already";
        let error = Error::new(ErrorKind::Usage, "finding the output", cause).at(&self.path);
        Err(error.hint("Remove it, choose another name, or have it replaced (mode=\"overwrite\")."))
    }

    /// What a job is to write to.
    pub fn output(&self) -> Output {
        let Some(count) = self.files else {
            return Output::Path(self.path.clone());
        };
        let mut name = format!("part-{{:05}}.{}", self.form.extension());
        if let Some(Compress { codec, .. }) = self.compress() {
            name += &format!(".{}", codec.extension());
        }
        Output::Parts(Parts {
            folder: self.path.clone(),
            cut: PartCut::Count(count),
            name: name.parse().expect("it has a number in it"),
            overwrite: !self.is_new,
        })
    }

    /// How it is compressed: as was said, or else, of one file, as the end of its name says.
    pub fn compress(&self) -> Option<Compress> {
        self.compress.unwrap_or_else(|| {
            let codec = Codec::of_name(&self.path).filter(|_| self.files.is_none());
            codec.map(|codec| Compress { codec, level: None })
        })
    }
}
