//! The command line of `sort` and `merge`, read in GNU's way.
//!
//! In come the words behind the program's or the command's name; out go the same in one form, each option by its long
//! name with its value attached, then `--` and the operands, which clap then reads. The table of options is clap's own,
//! so there is one list of them. What GNU's way has and clap's does not: abbreviations, of GNU's names only, so that no
//! name of ours makes one ambiguous; options behind operands unless `POSIXLY_CORRECT` is set; `-y SIZE`; the old keys
//! `+POS1 -POS2`; `--help` and `--version` at once, whatever comes behind.
//!
//! getopt_long(3); POSIX, Utility Syntax Guidelines; GNU coreutils manual, "sort invocation", "Standards conformance".

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{Arg, Args, Command};

use super::keys;
use super::options::{Gnu, SHARED_NAMES};

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// For clap: options by their long names, then the operands.
    pub words: Vec<OsString>,
    /// Keys in the old form, and what they are in today's.
    pub old_keys: Vec<OldKey>,
}

/// `+1 -2`, and `2,2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldKey {
    /// As it was given.
    pub old: String,
    /// What `-k` has for it.
    pub new: String,
}

/// Words that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub cause: String,
    /// The exit status: 1 for what `--sort` and `--check` do not know, as GNU has it, else 2.
    pub code: u8,
}

impl Refusal {
    fn new(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            code: 2,
        }
    }
}

/// What the environment says of how to read.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// `POSIXLY_CORRECT`: the first operand ends the options.
    pub options_first: bool,
    /// `_POSIX2_VERSION`: `+1` is a key, not a file, as it is in all editions but that of 2001.
    pub old_keys: bool,
}

impl Way {
    /// As this process's environment has it.
    pub fn of_environment() -> Self {
        let edition = std::env::var("_POSIX2_VERSION").ok();
        let edition = edition.and_then(|text| text.trim().parse().ok());
        Self {
            options_first: std::env::var_os("POSIXLY_CORRECT").is_some(),
            old_keys: !(200_112..200_809).contains(&edition.unwrap_or(200_809)),
        }
    }
}

/// Reads `words`, which the program's name and that of the command do not belong to. `table` has been built.
///
/// # Errors
/// An option that there is not, or that wants a value and has none, or the other way round; an abbreviation that
/// may mean several; an old key that goes wrong behind its beginning.
pub fn read(
    words: impl IntoIterator<Item = OsString>,
    table: &Command,
    way: Way,
) -> Result<Read, Refusal> {
    let mut reader = Reader {
        words: words.into_iter().collect::<Vec<_>>().into_iter(),
        table,
        way,
        checks: false,
        out: Read::default(),
        operands: Vec::new(),
    };
    reader.read()?;
    let Reader {
        mut out, operands, ..
    } = reader;
    out.words.push("--".into());
    out.words.extend(operands);
    Ok(out)
}

/// The long names that may be abbreviated.
fn gnu_names() -> Vec<String> {
    let gnu = Gnu::augment_args(Command::new("sort"));
    let names = gnu.get_arguments().filter_map(Arg::get_long);
    names.chain(SHARED_NAMES).map(str::to_owned).collect()
}

struct Reader<'a> {
    words: std::vec::IntoIter<OsString>,
    table: &'a Command,
    way: Way,
    /// Whether -c or -C has been seen.
    checks: bool,
    out: Read,
    operands: Vec<OsString>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<(), Refusal> {
        while let Some(word) = self.words.next() {
            let bytes = word.as_bytes();
            if self.options_have_ended(bytes) {
                self.operands.push(word);
            } else if bytes == b"--" {
                self.operands.extend(self.words.by_ref());
            } else if bytes.starts_with(b"--") {
                if self.long(&bytes[2..])? {
                    return Ok(());
                }
            } else if bytes.len() > 1 && bytes[0] == b'-' {
                self.cluster(&bytes[1..])?;
            } else if bytes.first() != Some(&b'+') || !self.old_key(&bytes[1..])? {
                self.operands.push(word);
            }
        }
        Ok(())
    }

    /// Whether an operand has ended the options. Older editions of POSIX still have `-o FILE` behind it.
    fn options_have_ended(&self, word: &[u8]) -> bool {
        let is_output = word.starts_with(b"-o") && (word.len() > 2 || self.words.len() > 0);
        let may_be_output = self.way.old_keys && !self.checks && is_output;
        self.way.options_first && !self.operands.is_empty() && !may_be_output
    }

    /// An option by its long name, or by the beginning of it. Whether nothing else counts.
    fn long(&mut self, word: &[u8]) -> Result<bool, Refusal> {
        let mut parts = word.splitn(2, |&byte| byte == b'=');
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default());
        let attached = parts.next();
        let arg = self.find_long(&name)?;
        let name = arg.get_long().expect("it was found by that").to_owned();
        let value = match attached {
            Some(_) if !arg.get_action().takes_values() => {
                return Err(Refusal::new(format!("option --{name} takes no value")));
            }
            Some(value) => Some(value.to_vec()),
            None if wants_word(arg) => Some(self.next_value(&format!("--{name}"))?),
            None => None,
        };
        if name == "help" || name == "version" {
            self.out.words = vec![format!("--{name}").into()];
            self.operands.clear();
            return Ok(true);
        }
        self.put(arg, value)?;
        Ok(false)
    }

    /// The option whose name is `name`, or the only one of GNU's whose name begins so.
    fn find_long(&self, name: &str) -> Result<&'a Arg, Refusal> {
        let exact = |name: &str| {
            let is_called = |arg: &&Arg| {
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some(name) || aliases.contains(&name)
            };
            self.table.get_arguments().find(is_called)
        };
        if let Some(arg) = exact(name) {
            return Ok(arg);
        }
        let mut meant = gnu_names();
        meant.retain(|long| long.starts_with(name));
        match &meant[..] {
            [only] => Ok(exact(only).expect("GNU's names are in the table")),
            [] => Err(Refusal::new(format!("there is no option --{name}"))),
            _ => Err(Refusal::new(format!(
                "option --{name} may be --{}",
                meant.join(" or --")
            ))),
        }
    }

    /// Options by their letters; the first that takes a value has the rest of the word, or the next one.
    fn cluster(&mut self, letters: &[u8]) -> Result<(), Refusal> {
        for (at, &letter) in letters.iter().enumerate() {
            let is_called = |arg: &&Arg| arg.get_short() == Some(char::from(letter));
            let Some(arg) = self.table.get_arguments().find(is_called) else {
                let shown = String::from_utf8_lossy(&letters[at..=at]);
                return Err(Refusal::new(format!("there is no option -{shown}")));
            };
            if !wants_word(arg) {
                self.put(arg, None)?;
                continue;
            }
            let attached = &letters[at + 1..];
            if !attached.is_empty() {
                return self.put(arg, Some(attached.to_vec()));
            }
            let shown = format!("-{}", char::from(letter));
            let rest = self.words.clone();
            let value = self.next_value(&shown)?;
            if letter == b'y' && !value.iter().all(u8::is_ascii_digit) {
                // Not its value after all.
                self.words = rest;
                return Ok(());
            }
            return self.put(arg, Some(value));
        }
        Ok(())
    }

    fn next_value(&mut self, shown: &str) -> Result<Vec<u8>, Refusal> {
        let value = self.words.next().map(OsString::into_vec);
        value.ok_or_else(|| Refusal::new(format!("option {shown} wants a value")))
    }

    /// Hands an option on to clap.
    fn put(&mut self, arg: &Arg, value: Option<Vec<u8>>) -> Result<(), Refusal> {
        self.checks |= ["check", "check_quietly"].contains(&arg.get_id().as_str());
        let mut word = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}").into_bytes(),
            (None, Some(short)) => format!("-{short}").into_bytes(),
            (None, None) => unreachable!("operands are no options"),
        };
        if let Some(value) = value {
            word.push(b'=');
            match arg.get_id().as_str() {
                "sort" | "check" => word.extend(whole_word(arg, &value)?.into_bytes()),
                _ => word.extend(value),
            }
        }
        self.out.words.push(OsString::from_vec(word));
        Ok(())
    }

    /// Reads `+POS1 [-POS2]`, of which `first` is what the plus stands before. Whether it is a key, and no file.
    fn old_key(&mut self, first: &[u8]) -> Result<bool, Refusal> {
        let second = self.words.as_slice().first();
        let second = second.filter(|word| matches!(word.as_bytes(), [b'-', b'0'..=b'9', ..]));
        if !(self.way.old_keys || second.is_some() && !self.way.options_first) {
            return Ok(false);
        }
        let second = second.map(|word| word.as_bytes()[1..].to_vec());
        let Some(mut new) = keys::old_start(first) else {
            return Ok(false);
        };
        let mut old = format!("+{}", String::from_utf8_lossy(first));
        if let Some(second) = second {
            self.words.next();
            let shown = format!("-{}", String::from_utf8_lossy(&second));
            new += ",";
            new += &keys::old_end(&second)
                .map_err(|cause| Refusal::new(format!("key {shown}: {cause}")))?;
            old = format!("{old} {shown}");
        }
        self.out.words.push(format!("--key={new}").into());
        self.out.old_keys.push(OldKey { old, new });
        Ok(true)
    }
}

/// Whether an option's value may be the next word: it has one, and it need not be attached.
fn wants_word(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

/// What `value` means of those that `arg` knows: each may be cut off as long as it is clear which it is.
fn whole_word(arg: &Arg, value: &[u8]) -> Result<String, Refusal> {
    let known = arg.get_possible_values();
    let value = String::from_utf8_lossy(value);
    if known.iter().any(|one| one.matches(&value, false)) {
        return Ok(value.into());
    }
    let mut meant = known.iter().filter(|one| {
        let mut names = one.get_name_and_aliases();
        names.any(|name| name.starts_with(&*value))
    });
    if let (Some(one), None) = (meant.next(), meant.next()) {
        return Ok(one.get_name().to_owned());
    }
    let names: Vec<&str> = known.iter().map(|one| one.get_name()).collect();
    Err(Refusal {
        cause: format!(
            "{value:?} is none of the words for --{}: {}",
            arg.get_id(),
            names.join(", ")
        ),
        code: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Way = Way {
        options_first: false,
        old_keys: true,
    };

    fn read_line(line: &str, way: Way) -> Result<String, String> {
        let table = super::super::Called::Sort.table();
        let words = line.split_whitespace().map(OsString::from);
        let read = read(words, &table, way).map_err(|refusal| refusal.cause)?;
        let words: Vec<&str> = read.words.iter().filter_map(|word| word.to_str()).collect();
        Ok(words.join(" "))
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        assert_eq!(read_line(line, USUAL).as_deref(), Ok(expected), "{line}");
    }

    #[test]
    fn options_stand_together_or_apart_and_behind_operands() {
        check("", "--");
        check("-rn f", "--reverse --numeric-sort -- f");
        check("f -k2 -t, -k 3", "--key=2 --field-separator=, --key=3 -- f");
        check("-nk2 -k -2", "--numeric-sort --key=2 --key=-2 --");
        check("-o -- -", "--output=-- -- -");
        check("--output x --key=1 -Cc", "--output=x --key=1 -C --check --");
        check("a -- -r --b", "-- a -r --b");
        check("-T a --temp b", "--temp=a --temp=b --");
        check("--temporary-d c", "--temp=c --");
        check("-y 12 -y x -y3 f", "-y=12 -y=3 -- x f");
    }

    #[test]
    fn abbreviations_are_of_gnus_names() {
        check("--rev --so n", "--reverse --sort=numeric --");
        check("--ch=q --check=sil", "--check=quiet --check=quiet --");
        check("--mer --he --nonsense", "--help --");
        check("-r --version f --nonsense", "--version --");
        for (line, cause) in [
            ("--ver", "may be --version-sort or --version"),
            ("--mem 1G", "there is no option --mem"),
            ("--sort=", "none of the words"),
            ("--check=x", "none of the words"),
            ("--reverse=1", "takes no value"),
            ("--help=1", "takes no value"),
            ("-rk", "option -k wants a value"),
            ("--key", "option --key wants a value"),
            ("-rW", "there is no option -W"),
            ("-1", "there is no option -1"),
        ] {
            let told = read_line(line, USUAL).unwrap_err();
            assert!(told.contains(cause), "{line}: {told}");
        }
    }

    #[test]
    fn old_keys_become_new_ones() {
        for (line, expected) in [
            ("+1 f", "--key=2 -- f"),
            ("+1 -2 f", "--key=2,2 -- f"),
            ("+0 -0", "--key=1,1 --"),
            ("+0.1b -1b", "--key=1.2b,1b --"),
            ("+1.2n -3.4r", "--key=2.3n,4.4r --"),
            ("+x", "-- +x"),
            ("+1.x", "-- +1.x"),
            ("+1q", "-- +1q"),
        ] {
            check(line, expected);
        }
        assert!(read_line("+1 -2x", USUAL).is_err());
        assert!(read_line("+x -2", USUAL).is_err());
        let newer = Way {
            old_keys: false,
            ..USUAL
        };
        assert_eq!(read_line("+1 f", newer).as_deref(), Ok("-- +1 f"));
        let paired = read_line("+1 -2 f", newer);
        assert_eq!(paired.as_deref(), Ok("--key=2,2 -- f"));
    }

    #[test]
    fn posix_has_options_first() {
        let way = Way {
            options_first: true,
            ..USUAL
        };
        for (line, expected) in [
            ("-r f -n", "--reverse -- f -n"),
            ("f -o x", "--output=x -- f"),
            ("f -o", "-- f -o"),
            ("-c f -o x", "--check -- f -o x"),
        ] {
            assert_eq!(read_line(line, way).as_deref(), Ok(expected), "{line}");
        }
    }
}
