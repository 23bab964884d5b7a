//! Nodes that are killed, frozen or told to end, and coordinators: a clean error, and nothing left behind.

use std::fs;
use std::path::Path;
use std::process::{Child, Output};

use super::super::{
    finish, names_with, run_well, signal, signal_if_there, sort, sorted, stderr, text, until,
    until_spilled, was_stopped_by, words,
};
use crate::Scratch;

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Whether a process runs: one that has ended and that nobody has asked after does not.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !stat.is_empty() && !state.starts_with('Z')
}

/// A job on so many nodes in little memory, its inputs and its old output.
struct Job {
    scratch: Scratch,
    input: Vec<u8>,
    count: usize,
}

impl Job {
    fn new(test: &str, bytes: usize, count: usize) -> Self {
        let scratch = Scratch::new(&format!("local-{test}"));
        let input = text(bytes, 41);
        fs::create_dir(scratch.path("temp")).unwrap();
        fs::write(scratch.path("in"), &input).unwrap();
        fs::write(scratch.path("small"), b"b\na\n").unwrap();
        fs::write(scratch.path("out"), b"old").unwrap();
        Self {
            scratch,
            input,
            count,
        }
    }

    /// Starts it, and waits until all nodes run: the coordinator, and they.
    fn start(&self) -> (Child, Vec<u32>) {
        let memory = 60 * self.count;
        let line = format!(
            "--on local:{} -S {memory}MiB --threads 1 -T {{}}temp -o {{}}out {{}}in",
            self.count
        );
        let child = sort(words(&self.scratch, &line)).spawn().unwrap();
        let nodes = until("the nodes", || {
            Some(children(child.id())).filter(|nodes| nodes.len() == self.count)
        });
        (child, nodes)
    }

    /// Nothing runs, nothing is left, and the old output is there.
    fn left_nothing(&self, nodes: &[u32]) {
        for node in nodes {
            assert!(!runs(*node), "node {node} still runs");
        }
        assert_eq!(self.scratch.names(), ["in", "out", "small", "temp"]);
        assert_eq!(
            names_with(&self.scratch.path("temp"), ""),
            Vec::<String>::new()
        );
        assert_eq!(fs::read(self.scratch.path("out")).unwrap(), b"old");
    }

    /// Starts it, and waits until nodes write temporary data.
    fn start_spilling(&self) -> (Child, Vec<u32>) {
        let started = self.start();
        until_spilled(&self.scratch.path("temp"));
        started
    }

    /// It failed as it should, with all of these words.
    fn failed(&self, output: &Output, nodes: &[u32], wanted: &[&str]) {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
        self.said(output, nodes, wanted);
    }

    /// It said this and left nothing.
    fn said(&self, output: &Output, nodes: &[u32], wanted: &[&str]) {
        let said = stderr(output);
        for words in wanted {
            assert!(said.contains(words), "{said}");
        }
        assert!(!said.contains("panicked"), "{said}");
        self.left_nothing(nodes);
    }

    /// It failed as it should because node `number` was killed.
    fn failed_for(&self, output: &Output, number: usize, nodes: &[u32]) {
        let wanted = format!("running node {number}: it was killed by signal 9 (SIGKILL)");
        self.failed(output, nodes, &[&wanted]);
    }
}

/// Before it has been told what to do.
#[test]
fn a_node_is_killed_as_it_starts() {
    let job = Job::new("killed-starting", 30_000_000, 3);
    for number in 0..3 {
        let (child, nodes) = job.start();
        signal(nodes[number], "KILL");
        job.failed_for(&finish(child), number, &nodes);
    }
}

/// While records go from node to node and to disk.
#[test]
fn a_node_is_killed_as_it_distributes() {
    let job = Job::new("killed-distributing", 200_000_000, 2);
    for number in 0..2 {
        let (child, nodes) = job.start_spilling();
        signal(nodes[number], "KILL");
        job.failed_for(&finish(child), number, &nodes);
    }
}

/// Whether a process has opened the unfinished output: nodes do when all is distributed.
fn has_output(pid: u32, scratch: &Path) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let mut targets = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets.any(|target| {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        target.parent() == Some(scratch) && name.starts_with(".out.sortmill-")
    })
}

/// While it sorts and writes its range of the output.
#[test]
fn a_node_is_killed_as_it_writes() {
    let job = Job::new("killed-writing", 200_000_000, 2);
    let scratch = fs::canonicalize(&job.scratch.path).unwrap();
    for number in 0..2 {
        let (child, nodes) = job.start();
        until("a node that writes", || {
            has_output(nodes[number], &scratch).then_some(())
        });
        signal(nodes[number], "KILL");
        job.failed_for(&finish(child), number, &nodes);
    }
}

/// At any moment: either it was too late, or nothing is left.
#[test]
fn a_node_may_be_killed_at_any_moment() {
    let job = Job::new("killed-any", 60_000_000, 3);
    let wanted = sorted(&job.input);
    let mut killed = 0;
    for round in 0..9 {
        fs::write(job.scratch.path("out"), b"old").unwrap();
        let (child, nodes) = job.start();
        // Not a wait for anything: the moment is what is varied.
        std::thread::park_timeout(std::time::Duration::from_millis(60 * round));
        let number = round as usize % 3;
        // It may end between any two looks at it.
        if runs(nodes[number]) {
            signal_if_there(nodes[number], "KILL");
        }
        let output = finish(child);
        if output.status.code() == Some(0) {
            assert!(fs::read(job.scratch.path("out")).unwrap() == wanted);
            assert_eq!(job.scratch.names(), ["in", "out", "small", "temp"]);
        } else {
            killed += 1;
            job.failed_for(&output, number, &nodes);
        }
    }
    println!("killed {killed} of 9");
    assert!(killed > 1);
}

/// The nodes end by themselves, and take away what the coordinator would have.
#[test]
fn the_coordinator_is_killed() {
    let job = Job::new("coordinator-killed", 200_000_000, 2);
    for is_spilling in [false, true] {
        let (child, nodes) = job.start();
        if is_spilling {
            until_spilled(&job.scratch.path("temp"));
        }
        signal(child.id(), "KILL");
        assert_eq!(finish(child).status.code(), None);
        until("the nodes' end", || {
            nodes.iter().all(|node| !runs(*node)).then_some(())
        });
        if is_spilling {
            job.left_nothing(&nodes);
        } else {
            // Killed before it had told them where it works, it leaves that to the next job.
            run_well(sort(words(&job.scratch, "-T {}temp -o {}small {}small")));
            job.left_nothing(&nodes);
        }
    }
}

#[test]
fn a_stopped_job_leaves_nothing() {
    let job = Job::new("stopped", 200_000_000, 3);
    for name in ["INT", "TERM"] {
        let (child, nodes) = job.start_spilling();
        signal(child.id(), name);
        let output = finish(child);
        was_stopped_by(&output, name);
        job.said(&output, &nodes, &[]);
    }
}

/// One node is told to stop, as a service's keeper might: the job ends, and says who did not go on.
#[test]
fn a_node_is_told_to_stop() {
    let job = Job::new("node-stopped", 200_000_000, 2);
    let (child, nodes) = job.start_spilling();
    signal(nodes[1], "TERM");
    let wanted = "on node 1, running the job: it was told to stop";
    job.failed(&finish(child), &nodes, &[wanted]);
}

/// A node that does not even hear that it should end is killed, and what it left is removed.
#[test]
fn a_frozen_node_does_not_hold_up_the_end() {
    let job = Job::new("frozen", 200_000_000, 2);
    for number in 0..2 {
        let (child, nodes) = job.start_spilling();
        signal(nodes[number], "STOP");
        signal(child.id(), "INT");
        let output = finish(child);
        was_stopped_by(&output, "INT");
        job.said(&output, &nodes, &[]);
    }
}

/// Two jobs at once do not take each other's nodes or files.
#[test]
fn two_jobs_share_a_folder() {
    let job = Job::new("two", 60_000_000, 2);
    let wanted = sorted(&job.input);
    let start = |name: &str| {
        let line = format!("--on local:2 -S 120MiB --threads 1 -T {{}}temp -o {{}}{name} {{}}in");
        sort(words(&job.scratch, &line)).spawn().unwrap()
    };
    let (one, other) = (start("one"), start("other"));
    for (child, name) in [(one, "one"), (other, "other")] {
        let output = finish(child);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(fs::read(job.scratch.path(name)).unwrap() == wanted);
    }
    assert_eq!(
        names_with(&job.scratch.path("temp"), ""),
        Vec::<String>::new()
    );
}

/// The cause is told, and not the connection that another node lost because of it.
#[test]
fn an_input_that_shrinks_is_told_by_the_node_that_sees_it() {
    let job = Job::new("shrinks", 200_000_000, 2);
    let (child, nodes) = job.start_spilling();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(job.scratch.path("in"))
        .unwrap();
    file.set_len(1000).unwrap();
    let wanted = ["/in: ", "on node", "at the start"];
    job.failed(&finish(child), &nodes, &wanted);
}

/// Of a caller that ignores how its children end, the system would not tell how the nodes did.
#[test]
fn a_caller_that_ignores_its_children() {
    let scratch = Scratch::new("local-ignored");
    fs::write(scratch.path("in"), b"b\na\n").unwrap();
    let mut command = std::process::Command::new("env");
    command.args(["--ignore-signal=CHLD", crate::PROGRAM, "sort"]);
    command.args(words(&scratch, "-q --on local:2 -o {}out /dev/stdin"));
    let mut command = super::super::caught(command);
    // A node's standard input is another one.
    command.stdin(fs::File::open(scratch.path("in")).unwrap());
    run_well(command);
    assert_eq!(fs::read(scratch.path("out")).unwrap(), b"a\nb\n");
}
