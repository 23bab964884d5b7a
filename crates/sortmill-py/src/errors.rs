//! Errors of the engine as exceptions: the classes are Python's (`python/sortmill/_errors.py`).

use pyo3::prelude::*;
use sortmill::error::{Error, ErrorKind};

/// The exception that an error is.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let make = || {
        let path = error
            .path
            .as_ref()
            .map(|path| path.to_string_lossy().into_owned());
        let kind = format!("{:?}", error.kind);
        let about = (
            kind,
            error.to_string(),
            &error.cause,
            path,
            error.offset,
            error.hint.as_deref(),
            error
                .room
                .as_ref()
                .map(|room| (room.needed_bytes, room.missing_bytes)),
        );
        py.import("sortmill._errors")?.getattr("made")?.call1(about)
    };
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The exception for what was asked wrongly.
pub fn misused(py: Python<'_>, cause: impl Into<String>) -> PyErr {
    raised(
        py,
        &Error::new(ErrorKind::Usage, "building the pipeline", cause),
    )
}
