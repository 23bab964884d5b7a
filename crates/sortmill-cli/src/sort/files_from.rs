//! `--files0-from`: the names of the inputs, read from a file, each ended by NUL.
//!
//! All names are in memory at once, as those of a command line are.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, stdin};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use sortmill::error::{Error, ErrorKind, Result};

const DOING: &str = "reading the names of the inputs";

/// Reads the names that are in `from`, or in standard input if that is `-`.
///
/// # Errors
/// A file that cannot be read or names nothing, an empty name, or `-`: one stream cannot be read for two purposes.
pub fn names(from: &Path) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = match from.as_os_str() == "-" {
        true => stdin().lock().read_to_end(&mut bytes),
        false => File::open(from).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|error| Error::io(DOING, from, &error).kind(ErrorKind::Input))?;
    let refused = |cause: String| Err(Error::new(ErrorKind::Usage, DOING, cause).at(from));
    if bytes.is_empty() {
        return refused("it names no input".into());
    }
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    let mut names = Vec::new();
    for (number, name) in bytes.split(|&byte| byte == 0).enumerate() {
        match name {
            b"" => return refused(format!("name {} is empty", number + 1)),
            b"-" => {
                let cause = "name {} is -, and standard input cannot be read beside names";
                return refused(cause.replace("{}", &(number + 1).to_string()));
            }
            name => names.push(PathBuf::from(OsString::from_vec(name.to_vec()))),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &[&str]) {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("sortmill-names-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let found = names(&path);
        std::fs::remove_file(&path).unwrap();
        let shown = |path: &PathBuf| path.display().to_string();
        let found: Vec<String> =
            found.map_or(Vec::new(), |names| names.iter().map(shown).collect());
        assert_eq!(found, expected, "{bytes:?}");
    }

    #[test]
    fn names_end_with_nul() {
        check(b"a\0b c\0d\n\0", &["a", "b c", "d\n"]);
        check(b"a\0b", &["a", "b"]);
        check(b"a\0\0b", &[]);
        check(b"\0", &[]);
        check(b"a\0-\0", &[]);
        check(b"", &[]);
    }
}
