//! An ordinary user with the usual 64 KiB of lockable memory.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use super::{LITTLE, caught, finish, is_root, run_badly, run_well, sorted, stderr, text};
use crate::{PROGRAM, Scratch};

/// A folder of user nobody's, with the program in it.
pub struct Ordinary {
    pub folder: Scratch,
}

impl Ordinary {
    /// `None`, with the reason printed, where this process cannot be another user.
    pub fn new(test: &str) -> Option<Self> {
        if !is_root() {
            println!("skipped: only root can run as another user; all other tests just did");
            return None;
        }
        let path = Path::new("/var/tmp").join(format!("sortmill-it-{test}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let user = Self {
            folder: Scratch { path },
        };
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&user.folder.path, open).unwrap();
        // The folder this was built in may be closed to others.
        std::fs::copy(PROGRAM, user.folder.path("sortmill")).unwrap();
        let output = user.command("id -u").output().unwrap();
        if output.stdout.trim_ascii() != b"65534" {
            println!("skipped: setpriv: {}", stderr(&output));
            return None;
        }
        Some(user)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path(name), bytes).unwrap();
    }

    /// A shell command as this user.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .args(["bash", "-c", &format!("ulimit -l 64; {line}")])
            .env_remove("TMPDIR");
        command
    }

    /// `sortmill sort` as this user, with `{}` for the folder.
    pub fn sort(&self, line: &str) -> Command {
        self.line(&format!("exec {{}}sortmill sort {line}"))
    }

    /// A shell command as this user, with `{}` for the folder.
    fn line(&self, line: &str) -> Command {
        let line = line.replace("{}", &format!("{}/", self.folder.path.display()));
        caught(self.command(&line))
    }
}

#[test]
fn an_ordinary_user_sorts_more_than_memory() {
    let Some(user) = Ordinary::new("user") else {
        return;
    };
    let input = text(70_000_000, 22);
    let wanted = sorted(&input);
    user.write("in", &input);
    for flags in ["", "--io uring", "--io posix"] {
        if flags.contains("uring") && !super::right::uring_works() {
            println!("skipped --io uring: the kernel refuses it");
            continue;
        }
        let line = format!("{LITTLE} {flags} -T {{}} -o {{}}out {{}}in");
        let output = run_well(user.sort(&line));
        assert!(!stderr(&output).contains(" 0 B spilled"));
        assert!(std::fs::read(user.folder.path("out")).unwrap() == wanted);
        assert_eq!(user.folder.names(), ["in", "out", "sortmill"]);
    }
}

/// Whoever may write to the folder could replace a file by another, but that is not what its mode says.
#[test]
fn an_output_that_may_not_be_written_is_not_replaced() {
    let Some(user) = Ordinary::new("user-outputs") else {
        return;
    };
    let with_mode = |name: &str, mode| {
        user.write(name, b"old");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(user.folder.path(name), mode).unwrap();
    };
    user.write("in", b"b\na\n");
    // Another's file, and one of the user's own.
    with_mode("others", 0o644);
    with_mode("own", 0o444);
    std::os::unix::fs::chown(user.folder.path("own"), Some(65534), Some(65534)).unwrap();
    for name in ["others", "own"] {
        // No input is needed to see it.
        for flags in ["", "-q", "-m", "--memory 64MiB"] {
            let line = format!("{flags} -o {{}}{name} {{}}in");
            let said = run_badly(user.sort(&line), &["ermission denied", name]);
            assert!(said.contains("opening the output"), "{said}");
            assert_eq!(std::fs::read(user.folder.path(name)).unwrap(), b"old");
        }
    }
    // One that may be written is replaced, and is this user's then; its mode stays.
    with_mode("others", 0o666);
    run_well(user.sort("-o {}others {}in"));
    let others = user.folder.path("others");
    assert_eq!(std::fs::read(&others).unwrap(), b"a\nb\n");
    let meta = std::fs::metadata(&others).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.uid()), (0o666, 65534));
    assert_eq!(user.folder.names(), ["in", "others", "own", "sortmill"]);
}

/// A thread that could not be started left the others waiting for ever, or ended in a panic.
#[test]
fn too_few_threads_are_an_error() {
    let Some(user) = Ordinary::new("user-threads") else {
        return;
    };
    user.write("in", b"b\na\n");
    let mut refused = 0;
    for count in 1..=12 {
        let line = format!(
            "exec prlimit --nproc={count} {{}}sortmill sort -q --threads 4 -o {{}}out {{}}in"
        );
        let output = finish(user.line(&line).spawn().unwrap());
        match output.status.code() {
            Some(0) => {
                assert_eq!(std::fs::read(user.folder.path("out")).unwrap(), b"a\nb\n");
                std::fs::remove_file(user.folder.path("out")).unwrap();
            }
            code => {
                let said = stderr(&output);
                // With the least of all the shell cannot start the program.
                assert!(code == Some(2) || said.contains("bash"), "{count}: {said}");
                refused += usize::from(said.contains("starting a thread"));
            }
        }
        assert_eq!(user.folder.names(), ["in", "sortmill"], "{count}");
    }
    assert!(refused > 0);
}

/// Where a job may not map what the machine has, it takes less of it.
#[test]
fn what_a_process_may_map_is_not_exceeded() {
    let Some(user) = Ordinary::new("user-maps") else {
        return;
    };
    user.write("in", b"b\na\n");
    for limit in ["-v 2000000", "-d 1000000"] {
        let line = format!("ulimit {limit}; exec {{}}sortmill sort -q -o {{}}out {{}}in");
        run_well(user.line(&line));
        assert_eq!(std::fs::read(user.folder.path("out")).unwrap(), b"a\nb\n");
    }
    // An eighth of this is less than a job needs, and was refused, where `-S 10M` was not.
    let input = text(30_000_000, 15);
    user.write("in", &input);
    run_well(user.line("ulimit -v 150000; exec {}sortmill sort -q -o {}out {}in"));
    assert!(std::fs::read(user.folder.path("out")).unwrap() == sorted(&input));
}

/// A folder that may be written to and not be read, and one in which only its owner may replace a file.
#[test]
fn folders_that_allow_less() {
    let Some(user) = Ordinary::new("user-folders") else {
        return;
    };
    user.write("in", b"b\na\n");
    let folder = |name: &str, mode| {
        std::fs::create_dir(user.folder.path(name)).unwrap();
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(user.folder.path(name), mode).unwrap();
    };
    folder("box", 0o333);
    run_well(user.sort("-q -o {}box/out {}in"));
    assert_eq!(
        std::fs::read(user.folder.path("box/out")).unwrap(),
        b"a\nb\n"
    );
    folder("sticky", 0o1777);
    user.write("sticky/others", b"old");
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(user.folder.path("sticky/others"), open).unwrap();
    let said = run_badly(
        user.sort("-q -o {}sticky/others {}in"),
        &["sticky", "redirect standard output"],
    );
    assert!(said.contains("finding the output"), "{said}");
    assert_eq!(
        std::fs::read(user.folder.path("sticky/others")).unwrap(),
        b"old"
    );
}
