//! What `make install` takes from the program: man pages and completions know every option.

use std::process::Command;

use crate::{PROGRAM, Scratch};

/// The long options that `sortmill COMMAND --help` lists.
fn options(command: &str) -> Vec<String> {
    let help = Command::new(PROGRAM)
        .args([command, "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let words = help
        .lines()
        .filter(|line| line.trim_start().starts_with('-'));
    let words = words.flat_map(|line| line.split([' ', ',', '=', '[', ']', '.']));
    let mut found: Vec<String> = words
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn man_pages_tell_of_every_option() {
    let scratch = Scratch::new("man");
    let made = Command::new(PROGRAM)
        .arg("man")
        .arg(&scratch.path)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    for command in [
        "sort", "merge", "shuffle", "uniq", "count", "top", "check", "report", "doctor",
    ] {
        let manual =
            std::fs::read_to_string(scratch.path(&format!("sortmill-{command}.1"))).unwrap();
        let options = options(command);
        assert!(!options.is_empty());
        for option in options {
            let shown = option.replace('-', "\\-");
            assert!(manual.contains(&shown), "{command}: {option}");
        }
    }
    assert!(options("sort").len() > 50);
    assert!(scratch.names().contains(&"sortmill.1".to_owned()));
    assert!(!scratch.names().iter().any(|name| name.contains("node")));
}

#[test]
fn shells_complete_our_words() {
    let script = |shell: &str| {
        let made = Command::new(PROGRAM)
            .args(["completions", shell])
            .output()
            .unwrap();
        assert!(made.status.success(), "{shell}");
        String::from_utf8(made.stdout).unwrap()
    };
    for shell in ["zsh", "fish"] {
        let text = script(shell);
        for word in ["sort", "files0-from", "check", "doctor"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    // The shell that is there is asked.
    let ask = "COMP_WORDS=(sortmill sort --rev); COMP_CWORD=2; _sortmill sortmill --rev sort; echo ${COMPREPLY[@]}";
    let scratch = Scratch::new("installed-completions");
    let path = scratch.path("completions");
    std::fs::write(&path, format!("{}\n{ask}", script("bash"))).unwrap();
    let asked = Command::new("bash").arg(path).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&asked.stdout).trim(),
        "--reverse",
        "{asked:?}"
    );
}
