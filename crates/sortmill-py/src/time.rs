//! Points in time as Python has them: `datetime`, in UTC.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyString, PyTzInfo};
use sortmill::pipeline::{Moment, TIMESTAMPS};

/// The `datetime` so many microseconds after 1970 began, which knows that it is in UTC.
pub fn datetime(py: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyDateTime>> {
    let Moment {
        year,
        month,
        day,
        hour,
        minute,
        second,
        micro,
    } = Moment::of(micros);
    let utc = PyTzInfo::utc(py)?;
    PyDateTime::new(
        py,
        year as i32,
        month as u8,
        day as u8,
        hour as u8,
        minute as u8,
        second as u8,
        micro as u32,
        Some(&utc),
    )
}

/// The microseconds since 1970 of a `datetime`; of one that knows no zone as if it were in UTC, as text without a zone is.
pub fn micros(from: &Bound<'_, PyAny>) -> PyResult<i64> {
    let (py, time) = (from.py(), from.cast::<PyDateTime>()?);
    let there = Moment {
        year: part(time, intern!(py, "year"))?,
        month: part(time, intern!(py, "month"))?,
        day: part(time, intern!(py, "day"))?,
        hour: part(time, intern!(py, "hour"))?,
        minute: part(time, intern!(py, "minute"))?,
        second: part(time, intern!(py, "second"))?,
        micro: part(time, intern!(py, "microsecond"))?,
    };
    let ahead = time.call_method0(intern!(py, "utcoffset"))?;
    let mut micros = there.micros();
    if !ahead.is_none() {
        let days = part(&ahead, intern!(py, "days"))?;
        let seconds = days * 86_400 + part(&ahead, intern!(py, "seconds"))?;
        micros -= seconds * 1_000_000 + part(&ahead, intern!(py, "microseconds"))?;
    }
    match TIMESTAMPS.contains(&micros) {
        true => Ok(micros),
        false => {
            let text = format!("{time} is not in the years 1 to 9999 of UTC");
            Err(PyValueError::new_err(text))
        }
    }
}

fn part(of: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<i64> {
    of.getattr(name)?.extract()
}
