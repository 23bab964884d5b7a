//! An ordinary user with the usual 64 KiB of lockable memory.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{LITTLE, caught, is_root, run_well, sorted, stderr, text};
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
        let line = format!("exec {{}}sortmill sort {line}");
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
    // Another's file may be replaced where the folder allows it; it is this user's then.
    user.write("out", b"old");
    run_well(user.sort("-o {}out {}in"));
    assert!(std::fs::read(user.folder.path("out")).unwrap() == wanted);
}
