//! Words of letters alone, read without the table.
//!
//! Where a shell's pipeline sorts a few lines, to make clap's table of eighty options and have it read takes a fifth of a
//! process's time. So words that need none of it are read here: GNU's letters for orders and fields, `-o`, `-q` and
//! operands, into just what the table would have made of them. Everything else, and whatever is wrong, is the table's.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use sortmill::job::Boundaries;
use sortmill::order::Format;

use super::words::Way;
use super::{Called, Gnu, Made, PART_NAME, Sort};
use crate::columns::{By, Kind};
use crate::common::{Io, Machine, Shape};
use crate::progress;

/// What the `words` behind the name ask of `sort`; `None` if the table has to say.
pub fn read(words: &[OsString], way: Way) -> Option<Sort> {
    if way.options_first {
        return None;
    }
    let mut sort = nothing_asked();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_bytes() {
            [] | [b'-', b'-', ..] | [b'+', ..] => return None,
            [b'-', letters @ ..] if !letters.is_empty() => cluster(&mut sort, letters, &mut rest)?,
            _ => sort.files.push(word.into()),
        }
    }
    Some(sort)
}

/// Options that stand together; the first that takes a value has the rest of the word, or the next of `rest`.
fn cluster<'w>(
    sort: &mut Sort,
    letters: &'w [u8],
    rest: &mut impl Iterator<Item = &'w OsString>,
) -> Option<()> {
    for (at, &letter) in letters.iter().enumerate() {
        let gnu = &mut sort.gnu;
        let flag = match letter {
            b'b' => &mut gnu.ignore_leading_blanks,
            b'd' => &mut gnu.dictionary_order,
            b'f' => &mut gnu.ignore_case,
            b'g' => &mut gnu.general_numeric_sort,
            b'h' => &mut gnu.human_numeric_sort,
            b'i' => &mut gnu.ignore_nonprinting,
            b'M' => &mut gnu.month_sort,
            b'n' => &mut gnu.numeric_sort,
            b'r' => &mut gnu.reverse,
            b's' => &mut gnu.stable,
            b'u' => &mut gnu.unique,
            b'V' => &mut gnu.version_sort,
            b'z' => &mut gnu.zero_terminated,
            b'q' => &mut sort.quiet,
            b'k' | b'o' | b't' => {
                let value = match &letters[at + 1..] {
                    [] => rest.next()?,
                    attached => OsStr::from_bytes(attached),
                };
                match letter {
                    _ if value.is_empty() => return None,
                    b'k' => sort.shape.keys.push(value.to_owned()),
                    b'o' => sort.output.push(PathBuf::from(value)),
                    _ => gnu.field_separator.push(value.to_owned()),
                }
                return Some(());
            }
            _ => return None,
        };
        *flag = true;
    }
    Some(())
}

/// What the table makes of no words.
fn nothing_asked() -> Sort {
    Sort {
        files: Vec::new(),
        shape: Shape {
            format: Kind::Plain(Format::Lines),
            keys: Vec::new(),
            by: By::default(),
        },
        gnu: Gnu::default(),
        output: Vec::new(),
        compress_output: None,
        compress_level: None,
        decompress: false,
        no_decompress: false,
        parts: None,
        part_size: None,
        part_count: None,
        part_name: PART_NAME.parse().expect("it is a name"),
        overwrite: false,
        boundaries: Boundaries::Sample,
        memory: None,
        temp: Vec::new(),
        temp_apart: false,
        compress_temp: None,
        on: None,
        threads: None,
        machine: Machine {
            io: Io::Auto,
            no_direct: false,
        },
        verify: false,
        no_verify: false,
        as_of_start: false,
        unchanging: false,
        skip_bad: 0,
        header: 0,
        until: None,
        dry_run: false,
        verbose: false,
        quiet: false,
        progress: progress::Flag::default(),
        trace: None,
        report: None,
        probe: false,
        no_probe: false,
        locale: None,
        help: None,
        version: None,
        called: Called::default(),
        made: Made::default(),
        old_keys: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;

    const USUAL: Way = Way {
        options_first: false,
        old_keys: true,
    };

    /// What the table makes of the same words, if it takes them.
    fn by_the_table(words: &[OsString]) -> Option<String> {
        let mut table = Called::Sort.table();
        let read = words::read(words.iter().cloned(), &table, USUAL).ok()?;
        let words = std::iter::once("sort".into()).chain(read.words);
        let matches = table.try_get_matches_from_mut(words).ok()?;
        let sort = Called::SortmillSort.read(&matches).ok()?;
        Some(format!("{sort:?}"))
    }

    #[test]
    fn the_table_says_the_same() {
        const PIECES: [&str; 30] = [
            "-b", "-d", "-f", "-g", "-h", "-i", "-M", "-n", "-r", "-s", "-u", "-V", "-z", "-q",
            "-k", "-k2,2n", "-o", "-oout", "-t", "-t,", "-rn", "-nrk", "-ut", "-", "file", "-k-2",
            "2", "-qo-", "-zzq", "",
        ];
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|text| text.parse().ok());
        let mut state: u64 = seed.unwrap_or(7);
        println!("SEED={state}");
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % below
        };
        let mut read_count = 0;
        for _ in 0..400 {
            let words: Vec<OsString> = (0..next(6))
                .map(|_| PIECES[next(PIECES.len())].into())
                .collect();
            if let Some(sort) = read(&words, USUAL) {
                assert_eq!(Some(format!("{sort:?}")), by_the_table(&words), "{words:?}");
                read_count += 1;
            }
        }
        assert!(read_count > 100, "{read_count}");
    }

    #[test]
    fn what_the_table_has_to_say_is_left_to_it() {
        for line in [
            "--reverse",
            "-c",
            "-C f",
            "-m",
            "-S 1G",
            "-T d",
            "+1 f",
            "-rx",
            "-k",
            "-R",
            "f -- -r",
            "-v",
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert!(read(&words, USUAL).is_none(), "{line}");
        }
        let posix = Way {
            options_first: true,
            ..USUAL
        };
        assert!(read(&["f".into(), "-r".into()], posix).is_none());
    }
}
