//! Whole jobs at the boundary where users stand, one binary: `cargo test --test it`.

#[cfg(not(feature = "shuttle"))]
mod check;
#[cfg(feature = "shuttle")]
mod check_schedules;
#[cfg(not(feature = "shuttle"))]
mod cluster;
mod disk;
#[cfg(not(feature = "shuttle"))]
mod doctor;
#[cfg(feature = "shuttle")]
mod faults;
mod generate;
#[cfg(not(feature = "shuttle"))]
mod joined;
#[cfg(not(feature = "shuttle"))]
mod pipeline;
#[cfg(not(feature = "shuttle"))]
mod pipeline_batches;
#[cfg(not(feature = "shuttle"))]
mod pipeline_combined;
#[cfg(not(feature = "shuttle"))]
mod pipeline_express;
#[cfg(not(feature = "shuttle"))]
mod pipeline_functions;
#[cfg(not(feature = "shuttle"))]
mod pipeline_groups;
#[cfg(not(feature = "shuttle"))]
mod pipeline_inputs;
#[cfg(not(feature = "shuttle"))]
mod pipeline_needed;
#[cfg(not(feature = "shuttle"))]
mod pipeline_nulls;
#[cfg(not(feature = "shuttle"))]
mod pipeline_outputs;
#[cfg(not(feature = "shuttle"))]
mod pipeline_pass;
#[cfg(not(feature = "shuttle"))]
mod pipeline_rank;
#[cfg(not(feature = "shuttle"))]
mod pipeline_reduce;
#[cfg(not(feature = "shuttle"))]
mod pipeline_skip_bad;
#[cfg(not(feature = "shuttle"))]
mod pipeline_string_agg;
#[cfg(not(feature = "shuttle"))]
mod pipeline_times;
#[cfg(not(feature = "shuttle"))]
mod pipeline_together;
#[cfg(not(feature = "shuttle"))]
mod progress;
#[cfg(not(feature = "shuttle"))]
mod sort;
#[cfg(all(feature = "tamper", not(feature = "shuttle")))]
mod tamper;
#[cfg(not(feature = "shuttle"))]
mod tidy;

use sortmill::columns::{Column, Columns, Compare, Form, Header, Name, Nulls};

/// CSV with a header, by the column of this name.
fn csv_by(name: &str, compare: Compare, reversed: bool) -> Columns {
    Columns {
        form: Form::Separated {
            delimiter: b',',
            quote: Some(b'"'),
            header: Header::First,
        },
        by: vec![Column {
            name: Name::Named(name.into()),
            compare,
            reversed,
        }],
        nulls: Nulls::First,
    }
}

/// A folder of one test on a real disk, empty at first and gone at the end.
#[cfg(not(feature = "shuttle"))]
struct Scratch {
    path: std::path::PathBuf,
}

#[cfg(not(feature = "shuttle"))]
impl Scratch {
    pub fn new(test: &str) -> Self {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.path.join(name)
    }

    /// What lies in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[cfg(not(feature = "shuttle"))]
impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
