//! Words of a command line put in the order that clap can read.
//!
//! COUNT may be left out and OUT may not, so of a word that a flag follows clap thinks it is OUT: it would refuse
//! `gen text 1000 --seed 2 out.txt`. Both are put together, behind all flags.

use std::ffi::OsString;

use clap::{Arg, Command};

/// The same words, those of `gen KIND` that are no flags last. `table` is that of all commands.
pub fn arranged(words: Vec<OsString>, table: &Command) -> Vec<OsString> {
    let kind = |words: &[OsString]| {
        let [_, command, kind, ..] = words else {
            return None;
        };
        let (command, kind) = (command.to_str()?, kind.to_str()?);
        let r#gen = table.find_subcommand("gen")?;
        (command == "gen").then(|| r#gen.find_subcommand(kind))?
    };
    let Some(kind) = kind(&words) else {
        return words;
    };
    let mut words = words.into_iter();
    let mut flags: Vec<OsString> = words.by_ref().take(3).collect();
    let mut others = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            others.extend(words.map(named_outright));
            break;
        }
        if !word.as_encoded_bytes().starts_with(b"-") || word == "-" {
            others.push(word);
            continue;
        }
        let has_value = word.to_str().is_some_and(|word| awaits_value(kind, word));
        flags.push(word);
        if has_value {
            flags.extend(words.next());
        }
    }
    flags.extend(others);
    flags
}

/// A word behind `--`, which is a name even where it looks like a flag. Clap would take all of them for OUT if it saw the `--`.
fn named_outright(word: OsString) -> OsString {
    if !word.as_encoded_bytes().starts_with(b"-") || word == "-" {
        return word;
    }
    let mut path = OsString::from("./");
    path.push(word);
    path
}

/// Whether the word behind this flag is its value.
fn awaits_value(kind: &Command, flag: &str) -> bool {
    let is_it = |arg: &&Arg| match (flag.strip_prefix("--"), flag.strip_prefix('-')) {
        (Some(long), _) => arg.get_long() == Some(long),
        (None, Some(short)) => arg
            .get_short()
            .is_some_and(|letter| short.ends_with(letter)),
        _ => false,
    };
    let arg = kind.get_arguments().find(is_it);
    arg.is_some_and(|arg| arg.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    #[test]
    fn flags_come_first() {
        let kind = Command::new("text")
            .arg(Arg::new("seed").long("seed").short('s'))
            .arg(Arg::new("verbose").short('v').action(ArgAction::SetTrue));
        let table = Command::new("sortmill")
            .subcommand(Command::new("gen").subcommand(kind))
            .subcommand(Command::new("report"));
        for (line, expected) in [
            ("gen text 5 --seed 2 out", "gen text --seed 2 5 out"),
            ("gen text 5 --seed=2 out", "gen text --seed=2 5 out"),
            ("gen text 5 -v - --seed 2", "gen text -v --seed 2 5 -"),
            ("gen text 5 -vs 2 out", "gen text -vs 2 5 out"),
            ("gen text 5 --seed", "gen text --seed 5"),
            ("gen text 5 -v -- -out -s", "gen text -v 5 ./-out ./-s"),
            ("gen text -- 5 -", "gen text 5 -"),
            ("gen other 5 -v out", "gen other 5 -v out"),
            ("gen", "gen"),
            ("report 5 -v out", "report 5 -v out"),
        ] {
            let words = |line: &str| -> Vec<OsString> {
                let line = format!("sortmill {line}");
                line.split(' ').map(OsString::from).collect()
            };
            assert_eq!(arranged(words(line), &table), words(expected), "{line}");
        }
    }
}
