//! What goes from node to node, spoiled on its way: by a proxy between two nodes of a job that runs in this process.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sortmill::cluster::On;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::{Host, RingKind};
use sortmill::job::{Input, Job, Output};
use sortmill::order::Format;
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;

use super::super::{names_with, sorted, text, until};
use crate::{PROGRAM, Scratch};

/// A job on two nodes, of which each writes where it listens to `port.<process>` before this command of `sed` is
/// applied to what it says; the one that is started first is node 0, and the other connects to it.
fn job(scratch: &Scratch, told: &str) -> Job {
    let port = scratch.path("port").display().to_string();
    let script = format!("{PROGRAM} node | sed -u -e \"/Ready/w {port}.$$\" -e '{told}'");
    let (input, output) = (scratch.path("in"), scratch.path("out"));
    let mut job = Job::new(
        vec![Input::Path(input)],
        Output::Path(output),
        Format::Lines,
    );
    job.memory_bytes = Some(400 << 20);
    job.temps = vec![scratch.path.clone()];
    job.on = Some(On {
        node_count: 2,
        program: PathBuf::from("/bin/sh"),
        words: ["-c", &script].map(OsString::from).into(),
    });
    job
}

fn sort(job: &Job) -> Result<Report, Error> {
    let host = Host::new(RingKind::Auto, true).unwrap();
    run::sort(job, &host, &Stop::new())
}

/// Where the nodes listen, in their order, once all have said so.
fn ports(scratch: &Path, count: usize) -> Vec<u16> {
    until("the nodes' ports", || {
        let mut said: Vec<(u32, u16)> = names_with(scratch, "port.")
            .iter()
            .filter_map(|name| {
                let text = fs::read_to_string(scratch.join(name)).ok()?;
                let port = text.trim().strip_prefix("{\"Ready\":")?;
                let port = port.strip_suffix('}')?.parse().ok()?;
                Some((name["port.".len()..].parse().ok()?, port))
            })
            .collect();
        said.sort_unstable();
        (said.len() == count).then(|| said.into_iter().map(|(_, port)| port).collect())
    })
}

/// Which of the frames from node 1 to node 0 is spoiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which {
    None,
    Hello,
    FirstOfRecords,
    EndMarker,
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// The connection is closed after so many bytes of it.
    Closed(usize),
    /// A bit of this byte is turned.
    Turned(usize),
    /// It comes a second time.
    Twice,
}

/// Hands on what comes from node 1 frame by frame, one of them spoiled, until there is no more. Answers how many bytes
/// of frames that was.
fn hand_on_frames(from: &mut TcpStream, to: &mut TcpStream, which: Which, how: How) -> usize {
    let mut bytes = 0;
    for number in 0.. {
        let mut frame = vec![0; 64];
        if from.read_exact(&mut frame).is_err() {
            break;
        }
        let word = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
        let (partition, payload_bytes) = (word(24), word(36) as usize);
        frame.resize(64 + payload_bytes, 0);
        if from.read_exact(&mut frame[64..]).is_err() {
            break;
        }
        let this = match (number, partition) {
            (0, _) => Which::Hello,
            (_, u32::MAX) => Which::EndMarker,
            (1, _) => Which::FirstOfRecords,
            _ => Which::None,
        };
        bytes += frame.len();
        let is_spoiled = this == which && which != Which::None;
        match how {
            How::Closed(at) if is_spoiled => frame.truncate(at),
            How::Turned(at) if is_spoiled => frame[at] ^= 1,
            How::Twice if is_spoiled => frame.extend_from_within(..),
            _ => {}
        }
        let is_end = is_spoiled && matches!(how, How::Closed(_));
        if to.write_all(&frame).is_err() || is_end {
            break;
        }
    }
    // Node 0 hears that nothing more comes.
    let _ = to.shutdown(Shutdown::Write);
    bytes
}

/// Hands on what comes, unspoiled.
fn hand_back(from: &mut TcpStream, to: &mut TcpStream) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Runs the job with a proxy between its nodes. Answers how it went, and how many bytes went from node 1 to node 0.
fn through_proxy(scratch: &Scratch, which: Which, how: How) -> (Result<Report, Error>, usize) {
    for name in names_with(&scratch.path, "port.") {
        fs::remove_file(scratch.path(&name)).unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Each says that it listens where the proxy does.
    let port = listener.local_addr().unwrap().port();
    let job = job(scratch, &format!("s/{{\"Ready\":.*/{{\"Ready\":{port}}}/"));
    std::thread::scope(|threads| {
        let proxy = threads.spawn(|| {
            let (mut one, _) = listener.accept().unwrap();
            let port = ports(&scratch.path, 2)[0];
            let mut zero = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let mut back = (zero.try_clone().unwrap(), one.try_clone().unwrap());
            let back = threads.spawn(move || hand_back(&mut back.0, &mut back.1));
            let bytes = hand_on_frames(&mut one, &mut zero, which, how);
            back.join().unwrap();
            bytes
        });
        let result = sort(&job);
        (result, proxy.join().unwrap())
    })
}

fn scratch(test: &str) -> (Scratch, Vec<u8>) {
    let scratch = Scratch::new(test);
    let input = text(9_000_000, 42);
    fs::write(scratch.path("in"), &input).unwrap();
    (scratch, input)
}

/// What must not be there after a job that failed.
fn left_nothing(scratch: &Scratch) {
    let mut names = scratch.names();
    names.retain(|name| !name.starts_with("port."));
    assert_eq!(names, ["in"]);
}

#[test]
fn what_goes_through_a_proxy_unspoiled_arrives() {
    let (scratch, input) = scratch("local-proxy");
    let (result, bytes) = through_proxy(&scratch, Which::None, How::Twice);
    result.unwrap();
    assert!(fs::read(scratch.path("out")).unwrap() == sorted(&input));
    assert!(bytes > 1_000_000, "{bytes} bytes went through");
}

/// A connection that is closed is never taken for the end of what was sent, wherever that happens.
#[test]
fn a_connection_that_is_closed_early_is_found() {
    let (scratch, _) = scratch("local-closed");
    for (which, at) in [
        (Which::FirstOfRecords, 0),
        (Which::FirstOfRecords, 1),
        (Which::FirstOfRecords, 64),
        (Which::FirstOfRecords, 5_000),
        (Which::EndMarker, 0),
        (Which::EndMarker, 63),
        (Which::EndMarker, 64),
        (Which::EndMarker, 95),
    ] {
        let (result, _) = through_proxy(&scratch, which, How::Closed(at));
        let error = result.map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert_eq!(error.kind, ErrorKind::Io, "{which:?}, {at}: {said}");
        // Node 0 sees it, ends, and by that closes its side: node 1 may be the first to say so.
        let is_told = ["receiving records", "sending records", "connecting"]
            .iter()
            .any(|doing| {
                said.contains(&format!("on node 0, {doing}"))
                    || said.contains(&format!("on node 1, {doing}"))
            });
        assert!(is_told, "{which:?}, {at}: {said}");
        left_nothing(&scratch);
    }
    let (result, _) = through_proxy(&scratch, Which::Hello, How::Closed(10));
    let said = result.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("on node 1, connecting"), "{said}");
    left_nothing(&scratch);
}

#[test]
fn an_altered_byte_is_found() {
    let (scratch, _) = scratch("local-altered");
    // Each field of the header, segments, records; lengths that end beyond what comes, too.
    for at in [
        0, 4, 8, 16, 20, 24, 28, 32, 36, 37, 40, 63, 64, 65, 66, 100, 5_000,
    ] {
        let (result, _) = through_proxy(&scratch, Which::FirstOfRecords, How::Turned(at));
        is_corrupt(result, &scratch, &format!("records, {at}"));
    }
    for at in [0, 5, 24, 28, 36, 40, 64, 72, 80, 95] {
        let (result, _) = through_proxy(&scratch, Which::EndMarker, How::Turned(at));
        match (at, result) {
            // A marker that says it is longer is waited for until the connection ends.
            (40, result) => assert_eq!(result.map(|_| ()).unwrap_err().kind, ErrorKind::Io),
            (_, result) => is_corrupt(result, &scratch, &format!("end, {at}")),
        }
        left_nothing(&scratch);
    }
    let (result, _) = through_proxy(&scratch, Which::Hello, How::Turned(70));
    let said = result.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("on node 1, connecting"), "{said}");
    left_nothing(&scratch);
}

#[test]
fn a_frame_that_comes_twice_is_found() {
    let (scratch, _) = scratch("local-twice");
    for which in [Which::Hello, Which::FirstOfRecords, Which::EndMarker] {
        let (result, _) = through_proxy(&scratch, which, How::Twice);
        is_corrupt(result, &scratch, &format!("{which:?} twice"));
    }
}

fn is_corrupt(result: Result<Report, Error>, scratch: &Scratch, what: &str) {
    let error = result.map(|_| ()).unwrap_err();
    let said = error.to_string();
    assert_eq!(error.kind, ErrorKind::Corrupt, "{what}: {said}");
    assert!(
        said.contains("on node 0, receiving records"),
        "{what}: {said}"
    );
    assert!(said.contains("node 1: at byte"), "{what}: {said}");
    left_nothing(scratch);
}

/// Strangers that connect to a node are let go, whatever they say, and the job does not notice.
#[test]
fn strangers_are_let_go() {
    let (scratch, input) = scratch("local-strangers");
    // No node is heard of before strangers came to each: a job of this size may be done before one is drawn.
    let go = scratch.path("go");
    let held = format!(
        "/Ready/e for i in $(seq 6000); do [ -e {} ] || sleep 0.01; done",
        go.display()
    );
    let job = job(&scratch, &held);
    let is_done = AtomicBool::new(false);
    let connected = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let words: [&[u8]; 3] = [b"", b"GET / HTTP/1.1\r\n\r\n", &[b'S'; 1000]];
            let mut silent = VecDeque::new();
            for at in (0..).take_while(|_| !is_done.load(Ordering::SeqCst)) {
                for port in ports(&scratch.path, 2) {
                    let Ok(mut stranger) = TcpStream::connect(("127.0.0.1", port)) else {
                        continue;
                    };
                    connected.fetch_add(1, Ordering::SeqCst);
                    let _ = stranger.write_all(words[at % words.len()]);
                    if at % words.len() == 0 {
                        silent.push_back(stranger);
                    }
                    if silent.len() > 300 {
                        silent.pop_front();
                    }
                }
                if at == 2 {
                    fs::write(&go, "").unwrap();
                }
            }
        });
        let result = sort(&job);
        is_done.store(true, Ordering::SeqCst);
        result.unwrap();
    });
    assert!(connected.into_inner() >= 6);
    assert!(fs::read(scratch.path("out")).unwrap() == sorted(&input));
}
