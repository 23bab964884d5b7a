//! Names of inputs: patterns become the files that match them, in the order of their names.
//!
//! `*` is any text within a name, `?` a character of it, `**` as a whole name any number of folders. Names that begin with a dot
//! match only what begins with one, as shells have it. A path without any of these is itself, whatever it is, and so is the name of
//! a file that is there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sortmill_io::Os;
use sortmill_io::os::Kind;

use crate::error::{Error, ErrorKind, Result};

/// The files that `patterns` mean, those of each in the order of their names.
///
/// # Errors
/// [`ErrorKind::Input`] for a pattern that no file matches, and for folders that cannot be read.
pub fn expand(os: &dyn Os, patterns: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for pattern in patterns {
        let bytes = pattern.as_os_str().as_bytes();
        let is_there = || {
            os.meta_at(pattern)
                .is_ok_and(|meta| meta.kind == Kind::Regular)
        };
        if !is_pattern(bytes) || is_there() {
            all.push(pattern.clone());
            continue;
        }
        let names = bytes.split(|&byte| byte == b'/');
        let mut names: Vec<&[u8]> = names.filter(|name| !name.is_empty()).collect();
        let start = if bytes.starts_with(b"/") { "/" } else { "" };
        let plain = names.iter().take_while(|name| !is_pattern(name)).count();
        let rest = names.split_off(plain);
        let mut start = PathBuf::from(start);
        start.extend(names.into_iter().map(OsStr::from_bytes));
        let mut found = Vec::new();
        walk(os, &start, &rest, &mut Vec::new(), &mut found)?;
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            let error = Error::new(ErrorKind::Input, "looking for inputs", "no file matches");
            return Err(error.at(pattern));
        }
        all.extend(found);
    }
    Ok(all)
}

fn is_pattern(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?".contains(byte))
}

/// Adds what lies in `folder` and matches `names`. `above` are the folders on the way there, so that none is entered in
/// itself.
fn walk(
    os: &dyn Os,
    folder: &Path,
    names: &[&[u8]],
    above: &mut Vec<(u64, u64)>,
    found: &mut Vec<PathBuf>,
) -> Result<()> {
    let Some((name, rest)) = names.split_first() else {
        return Ok(());
    };
    if *name == b"**" {
        let rest = if rest.is_empty() {
            &[&b"*"[..]][..]
        } else {
            rest
        };
        walk(os, folder, rest, above, found)?;
    }
    let here = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let failed = |error: std::io::Error| {
        Error::io("looking for inputs", here, &error).kind(ErrorKind::Input)
    };
    let entries = match os.list_dir(here) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    above.push(os.meta_at(here).map_err(failed)?.identity);
    for entry in entries {
        let is_hidden = entry.as_bytes().starts_with(b".") && !name.starts_with(b".");
        if is_hidden || (*name != b"**" && !matches(name, entry.as_bytes())) {
            continue;
        }
        let path = folder.join(&entry);
        // A link that leads nowhere, or a file that has just gone.
        let Ok(meta) = os.meta_at(&path) else {
            continue;
        };
        let enters = meta.kind == Kind::Directory && !above.contains(&meta.identity);
        match *name {
            b"**" if enters => walk(os, &path, names, above, found)?,
            b"**" => {}
            _ if rest.is_empty() && meta.kind == Kind::Regular => found.push(path),
            _ if enters => walk(os, &path, rest, above, found)?,
            _ => {}
        }
    }
    above.pop();
    Ok(())
}

/// Whether a name matches a pattern of `*` and `?`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where the last star is, and how much of the name it has taken.
    let mut star = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
                continue;
            }
            Some(b'?') => {
                // A byte that belongs to no character is one by itself.
                let text = name[from..].utf8_chunks().next();
                let first = text.and_then(|text| text.valid().chars().next());
                let length = first.map_or(1, char::len_utf8);
                (at, from) = (at + 1, from + length);
                continue;
            }
            Some(&byte) if byte == name[from] => {
                (at, from) = (at + 1, from + 1);
                continue;
            }
            _ => {}
        }
        let Some((begun, taken)) = star else {
            return false;
        };
        star = Some((begun, taken + 1));
        (at, from) = (begun + 1, taken + 1);
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn names_match_patterns() {
        for (pattern, name, wanted) in [
            ("*.txt", "a.txt", true),
            ("*.txt", ".txt", true),
            ("*.txt", "a.txt.gz", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("?.gz", "ä.gz", true),
            ("??.gz", "a.gz", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                wanted,
                "{pattern} {name}"
            );
        }
        // Bytes that are no text are characters of their own, and change nothing in front of them.
        assert!(matches(b"?-*.txt", b"\xc3\xa9-\xff.txt"));
        assert!(matches(b"??", b"\xff\xc3\xa9"));
        assert!(!matches(b"?", b"\xff\xff"));
    }
}
