//! Columns by the names that the header gives them: looked up in the first input that has one, before anything is planned.
//!
//! Of a stream so much is read ahead, and stays with its source. Whether the other inputs have the same header shows when
//! they are read, because nobody knows what a stream will begin with.

use sortmill_io::os::{Access, Kind};
use sortmill_io::{File, Os};

use crate::columns::{BYTE_ORDER_MARK, Column, Columns, Form, Header, Name, bare_header};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::order::Separated;
use crate::queue::Stop;
use crate::stage::read::{Source, codec_of, unpacked};
use crate::text;

const DOING: &str = "reading the header";
/// What is read in one go.
const READ_BYTES: usize = 64 << 10;
/// No header is longer: it is held in memory until it is written.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// So much of a compressed input becomes its header, or it is not looked for.
const PACKED_BYTES_MAX: usize = 16 << 20;
/// So many names are told where one is not among them.
const NAMES_TOLD_MAX: usize = 20;

/// The job with what it asks for by name looked up in the header of `sources`, its inputs; `None` if there is nothing to
/// look up.
///
/// # Errors
/// As [`look_up_names`], and where the job has other lines in front of its records.
pub fn look_up_columns(
    job: &Job,
    sources: &mut [Source],
    os: &dyn Os,
    stop: &Stop,
) -> Result<Option<Job>> {
    let found = look_up_names(job.columns.as_ref(), job.decompress, sources, os, stop)?;
    let Some(columns) = found else {
        return Ok(None);
    };
    let header_lines = columns.header_records(job.header_lines)?;
    Ok(Some(Job {
        columns: Some(columns),
        header_lines,
        ..job.clone()
    }))
}

/// Refuses what does not go with columns.
///
/// # Errors
/// [`ErrorKind::Usage`] that names it.
pub fn check(job: &Job) -> Result<()> {
    let cause = match &job.columns {
        // It looks at them by itself, and tells of those that are bad.
        Some(_) if job.map.is_some() && job.map_makes_pairs => return Ok(()),
        Some(_) if job.skip_bad > 0 => "no record is left out where columns decide",
        Some(_) if job.map.is_some() || job.reduce.is_some() => {
            "what functions make is not looked at for columns"
        }
        Some(columns) if columns.by.is_empty() => "no column is named that decides the order",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Usage, "sorting by columns", cause))
}

/// Looks names up in the header of the first of `sources` that has one, if that is asked for and was not done. Of inputs
/// that are all empty any names will do. `decompress`: compressed ones are read as what they were.
///
/// # Errors
/// [`ErrorKind::Input`] for a header that cannot be read, is too long, or has a quote out of place;
/// [`ErrorKind::Usage`] for a name that it does not have, or has twice.
pub fn look_up_names(
    columns: Option<&Columns>,
    decompress: bool,
    sources: &mut [Source],
    os: &dyn Os,
    stop: &Stop,
) -> Result<Option<Columns>> {
    let Some(columns) = columns else {
        return Ok(None);
    };
    let Form::Separated {
        delimiter,
        quote,
        header: Header::First,
    } = columns.form
    else {
        return Ok(None);
    };
    columns.check_bytes()?;
    let separated = Separated { delimiter, quote };
    let with = |header, by| {
        let form = Form::Separated {
            delimiter,
            quote,
            header,
        };
        let nulls = columns.nulls;
        Some(Columns { form, by, nulls })
    };
    for source in sources {
        let first = first_record(source, separated, decompress, os, stop)?;
        if first.is_empty() {
            continue;
        }
        let record = bare_header(&first);
        let names = separated.texts(record).map_err(|wrong| {
            let mark = match first.starts_with(BYTE_ORDER_MARK) {
                true => BYTE_ORDER_MARK.len(),
                false => 0,
            };
            let at = mark + wrong.at;
            let error = Error::new(ErrorKind::Input, DOING, wrong.cause);
            let error = error.at(&source.file.path).offset(at as u64);
            match wrong.hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        })?;
        let by = columns.by.iter().map(|column| number(column, &names));
        let by: Result<Vec<Column>> = by.collect();
        let header = Header::Found {
            record: record.to_vec(),
            count: names.len() as u64,
        };
        return Ok(with(
            header,
            by.map_err(|error| error.at(&source.file.path))?,
        ));
    }
    let any = |column: &Column| Column {
        name: Name::Number(1),
        ..*column
    };
    let header = Header::Found {
        record: Vec::new(),
        count: 0,
    };
    Ok(with(header, columns.by.iter().map(any).collect()))
}

/// The column by its number.
fn number(column: &Column, names: &[Vec<u8>]) -> Result<Column> {
    let wrong = |cause: String| {
        Err(Error::new(
            ErrorKind::Usage,
            "looking for the columns",
            cause,
        ))
    };
    let number = match &column.name {
        Name::Number(number) if (1..=names.len() as u64).contains(number) => *number,
        Name::Number(number) => {
            let count = names.len();
            return wrong(format!(
                "there is no column {number}: the header has {count}"
            ));
        }
        Name::Path(_) => return wrong("separated values have no values in them".into()),
        Name::Named(name) => {
            let is_called = |other: &&Vec<u8>| ***other == *name.as_bytes();
            match names.iter().filter(is_called).count() {
                0 => return wrong(unknown(name, names)),
                1 => 1 + names.iter().take_while(|other| !is_called(other)).count() as u64,
                count => return wrong(format!("{count} columns are called {name:?}")),
            }
        }
    };
    Ok(Column {
        name: Name::Number(number),
        ..*column
    })
}

fn unknown(name: &str, names: &[Vec<u8>]) -> String {
    let some: Vec<_> = names.iter().take(NAMES_TOLD_MAX).collect();
    let some: Vec<_> = some
        .iter()
        .map(|name| String::from_utf8_lossy(name))
        .collect();
    let more = match names.len() - some.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "there is no column {name:?}: there are {}{more}",
        some.join(", ")
    )
}

/// The first record of an input, whole but for an end that it may lack; nothing of an empty one.
fn first_record(
    source: &mut Source,
    separated: Separated,
    decompress: bool,
    os: &dyn Os,
    stop: &Stop,
) -> Result<Vec<u8>> {
    let path = source.file.path.clone();
    let is_file = source.meta.kind == Kind::Regular;
    let known = source.codec.map(|sniffed| sniffed.codec);
    let opened;
    let (file, mut raw): (&File, Vec<u8>) = match is_file {
        true => {
            let file = os.open(&path, Access::Cached);
            opened =
                file.map_err(|error| Error::io(DOING, &path, &error).kind(ErrorKind::Input))?;
            (&opened, Vec::new())
        }
        false => (&*source.file, std::mem::take(&mut source.ahead)),
    };
    let result = loop {
        let before = raw.len();
        raw.resize(before + READ_BYTES, 0);
        let into = &mut raw[before..];
        let moved = match &source.made {
            Some(made) => made.read(into)?,
            None => {
                let moved = os.read_stream(file, into, &|| stop.is_stopped());
                moved.map_err(|error| Error::io(DOING, &path, &error).offset(before as u64))?
            }
        };
        stop.check()?;
        raw.truncate(before + moved);
        let codec = match is_file {
            true => known,
            false => decompress.then(|| codec_of(&raw)).flatten(),
        };
        let (text, is_all) = match codec {
            Some(codec) => unpacked(codec, &raw, HEADER_BYTES_MAX + 1),
            None => (raw[..raw.len().min(HEADER_BYTES_MAX + 1)].to_vec(), true),
        };
        if let Some(end) = separated.first_end(&text) {
            break Ok(text[..end].to_vec());
        }
        if text.len() > HEADER_BYTES_MAX {
            let most = text::bytes(HEADER_BYTES_MAX as u64);
            let cause = format!("its first record, which names the columns, is longer than {most}");
            break Err(Error::new(ErrorKind::Input, DOING, cause).at(&path));
        }
        if moved == 0 || raw.len() > PACKED_BYTES_MAX {
            // What is damaged has no end: reading all of it tells why.
            break Ok(if is_all { text } else { Vec::new() });
        }
    };
    if !is_file {
        source.ahead = raw;
    }
    result
}
