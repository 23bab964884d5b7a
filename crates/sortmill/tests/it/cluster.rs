//! The coordinator of several nodes, without any: events in every order, and one that goes wrong at every moment.

use std::collections::VecDeque;

use sortmill::chunks::Extent;
use sortmill::cluster::coordinator::{Action, Coordinator, Event};
use sortmill::cluster::message::{
    Distributed, Done, Failure, Fault, Folder, FromNode, Place, Start, ToNode,
};
use sortmill::cluster::{On, check};
use sortmill::error::{Error, ErrorKind};
use sortmill::fingerprint::Fingerprint;
use sortmill::io::os::Machine;
use sortmill::io::process::Ending;
use sortmill::job::{Input, Job, Output, each};
use sortmill::order::{Format, Order};
use sortmill::plan::{Inputs, Plan};
use sortmill::report::{Bytes, DirectIo, Memory, NodeReport, Partitions};
use sortmill::stage::read::Left;
use sortmill::table::{Boundary, Table, node_of};

fn job(node_count: u32) -> Job {
    let input = Input::Path("in".into());
    let mut job = Job::new(vec![input], Output::Path("out".into()), Format::Lines);
    job.memory_bytes = Some(4 << 30);
    job.on = Some(On {
        node_count,
        program: "node".into(),
        words: Vec::new(),
    });
    job
}

fn plan(node_count: u32) -> Plan {
    let inputs = Inputs {
        extents: vec![Extent::File(1 << 30)],
        record_bytes_mean: None,
        device_count: 1,
        ..Inputs::default()
    };
    let machine = Machine {
        cores: 4,
        memory_bytes_available: 8 << 30,
        memory_bytes_total: 8 << 30,
    };
    Plan::new(&job(node_count), &inputs, &machine).unwrap()
}

fn start(plan: &Plan, number: u32) -> Start {
    let mut plan = plan.clone();
    plan.nodes.as_mut().unwrap().number = number;
    Start {
        job: 1,
        secret: [2, 3],
        ports: Vec::new(),
        plan,
        keys: Vec::new(),
        inputs: Vec::new(),
        as_of_start: false,
        skip_bad: 0,
        chunks: (0, 0),
        between: Vec::new(),
        inside: Vec::new(),
        temps: vec![Folder("temp".into())],
        temp_program: None,
        output: "unfinished".into(),
        tells_progress: false,
    }
}

fn done(node: u32) -> Done {
    Done {
        gathered: Fingerprint::default(),
        edges: vec![(u64::from(node), Vec::new())],
        ends: None,
        report: NodeReport {
            node,
            back_end: String::new(),
            direct_io: DirectIo {
                input: false,
                output: false,
            },
            cpu_ns: 0,
            phases: Vec::new(),
            bytes: Bytes {
                input: 0,
                input_stored: 0,
                header: 0,
                input_read: 0,
                sample_read: 0,
                temp_written: 0,
                temp_read: 0,
                merge_extra: 0,
                moved: 0,
                output_written: 0,
                output: 0,
                lower_bound: 0,
                kernel_read: 0,
                kernel_written: 0,
            },
            memory: Memory {
                limit_bytes: 0,
                resident_bytes_peak: 0,
                holders: Vec::new(),
            },
            temp_folders: Vec::new(),
            temp_packed: None,
            partitions: Partitions {
                count: 0,
                bytes_min: 0,
                bytes_median: 0,
                bytes_max: 0,
                evicted: 0,
                divided: 0,
                merged: 0,
                joined: 0,
                long_records: 0,
            },
        },
    }
}

fn port(node: u32) -> u16 {
    1000 + node as u16
}

fn bytes(node: u32) -> u64 {
    [5000, 0, 1, 4096, 77][node as usize % 5]
}

/// A node as the coordinator sees it: what it will say next, and what it has been told.
#[derive(Default)]
struct Node {
    says: VecDeque<Event>,
    told: Vec<ToNode>,
}

/// Some nodes and the coordinator, with events in an order that follows from a seed.
struct World {
    coordinator: Coordinator,
    nodes: Vec<Node>,
    seed: u64,
    moved: (u64, u64),
    distributed: Option<(u64, u64)>,
}

impl World {
    fn new(count: u32, seed: u64) -> Self {
        let plan = plan(count);
        let starts = (0..count).map(|number| start(&plan, number));
        let nodes = (0..count).map(|number| {
            let ready = Event::Told(number, FromNode::Ready(port(number)));
            Node {
                says: [ready].into(),
                told: Vec::new(),
            }
        });
        Self {
            coordinator: Coordinator::new(starts.collect()),
            nodes: nodes.collect(),
            seed,
            moved: (0, 0),
            distributed: None,
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.seed = self
            .seed
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.seed >> 33) as usize % below
    }

    /// Lets one node say its next word. `false` when none has any.
    fn step(&mut self) -> bool {
        let talking: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| !self.nodes[node].says.is_empty())
            .collect();
        if talking.is_empty() {
            return false;
        }
        let node = talking[self.random(talking.len())];
        let event = self.nodes[node].says.pop_front().unwrap();
        self.take(event);
        true
    }

    fn take(&mut self, event: Event) {
        for action in self.coordinator.step(event) {
            match action {
                Action::Tell(node, message) => self.tell(node, message),
                Action::Moved(read, written) => {
                    self.moved.0 += read;
                    self.moved.1 += written;
                }
                Action::Distributed(spilled, bytes) => {
                    assert_eq!(self.distributed.replace((spilled, bytes)), None);
                }
            }
        }
    }

    /// What a node does when it is told something.
    fn tell(&mut self, number: u32, message: ToNode) {
        let node = &mut self.nodes[number as usize];
        match &message {
            ToNode::Start(_) => {
                let fingerprint = Fingerprint {
                    bytes: bytes(number),
                    ..Fingerprint::default()
                };
                let distributed = Distributed {
                    fingerprint,
                    spilled_bytes: u64::from(number),
                    ..Distributed::default()
                };
                node.says.extend([
                    Event::Told(number, FromNode::Moved(10, 1)),
                    Event::Told(number, FromNode::Reached(left(number))),
                    Event::Told(number, FromNode::Distributed(Box::new(distributed))),
                ]);
            }
            ToNode::GoOn(_) => {}
            ToNode::Write(_) => node.says.extend([
                Event::Told(number, FromNode::Moved(0, 5)),
                Event::Told(number, FromNode::Done(Box::new(done(number)))),
                Event::HungUp(number),
            ]),
        }
        node.told.push(message);
    }
}

/// What a node says of where it has come to: another thing for each.
fn left(node: u32) -> Left {
    Left {
        begun: sortmill::order::Begun::with(u64::from(node)),
        skipping: false,
    }
}

/// As many seeds as are tried, from the one that SEED names or from 0.
fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let first = first.unwrap_or(0);
    println!("SEED={first}");
    first..first + 300
}

#[test]
fn nodes_may_come_in_any_order() {
    for seed in seeds() {
        let count = 1 + seed as u32 % 6;
        let mut world = World::new(count, seed);
        while world.step() {}
        assert!(world.coordinator.is_over(), "seed {seed}");
        let ports: Vec<u16> = (0..count).map(port).collect();
        let file_bytes = (0..count).map(bytes).sum();
        let spilled = (0..count).map(u64::from).sum();
        for (number, node) in world.nodes.iter().enumerate() {
            let number = number as u32;
            let ToNode::Start(start) = &node.told[0] else {
                panic!("seed {seed}: told {:?} first", node.told[0]);
            };
            assert_eq!(start.ports, ports, "seed {seed}");
            assert_eq!(start.plan.node(), number, "seed {seed}");
            let place = Place {
                from: (0..number).map(bytes).sum(),
                file_bytes,
            };
            let rest = match number {
                0 => vec![ToNode::Write(place)],
                _ => vec![ToNode::GoOn(left(number - 1)), ToNode::Write(place)],
            };
            assert_eq!(node.told[1..], rest, "seed {seed}");
        }
        assert_eq!(
            world.distributed,
            Some((spilled, file_bytes)),
            "seed {seed}"
        );
        assert_eq!(world.moved, (10 * u64::from(count), 6 * u64::from(count)));
        for number in 0..count {
            // However it ended: it had done everything.
            let ending = [Ending::Exited(0), Ending::Killed, Ending::Signal(15)][seed as usize % 3];
            world.take(Event::Ended(number, ending));
        }
        let outcome = world.coordinator.outcome().unwrap();
        for (number, (distributed, done)) in outcome.iter().enumerate() {
            assert_eq!(done.report.node, number as u32);
            assert_eq!(distributed.fingerprint.bytes, bytes(number as u32));
        }
    }
}

/// One is killed after so many steps; the others lose their connections to it, in any order, and are told to end.
#[test]
fn the_node_that_was_killed_is_named() {
    for seed in seeds() {
        let count = 1 + seed as u32 % 6;
        let mut world = World::new(count, seed);
        let steps = world.random(5 * count as usize);
        for _ in 0..steps {
            world.step();
        }
        let victim = world.random(count as usize) as u32;
        let lost = |node: u32| {
            let error = Error::new(ErrorKind::Io, "receiving records", "closed early");
            let failure = Failure {
                fault: Fault::of(&error),
                followed: true,
            };
            Event::Told(node, FromNode::Failed(failure))
        };
        let told_before: usize = world.nodes.iter().map(|node| node.told.len()).sum();
        // One that has done everything may be killed: nobody needs it any more.
        let is_done = |event: &Event| matches!(event, Event::Told(_, FromNode::Done(_)));
        let has_finished = |world: &World, node: u32| {
            let node = &world.nodes[node as usize];
            let writes = node
                .told
                .iter()
                .any(|told| matches!(told, ToNode::Write(_)));
            writes && !node.says.iter().any(is_done)
        };
        if has_finished(&world, victim) {
            continue;
        }
        for (number, node) in world.nodes.iter_mut().enumerate() {
            node.says.clear();
            if number as u32 != victim {
                node.says.push_back(lost(number as u32));
            }
            node.says.push_back(Event::HungUp(number as u32));
        }
        while world.step() {}
        assert!(world.coordinator.is_over(), "seed {seed}");
        for number in 0..count {
            let ending = match number == victim {
                true => Ending::Signal(9),
                false => [Ending::Exited(2), Ending::Killed][seed as usize % 2],
            };
            world.take(Event::Ended(number, ending));
        }
        let told: usize = world.nodes.iter().map(|node| node.told.len()).sum();
        assert_eq!(
            told, told_before,
            "seed {seed}: something was said after the end"
        );
        let error = world.coordinator.outcome().map(|_| ()).unwrap_err();
        let wanted = format!("running node {victim}: it was killed by signal 9 (SIGKILL)");
        assert!(
            error.to_string().starts_with(&wanted),
            "seed {seed}: {error}"
        );
    }
}

/// The error of a node is told as it is, whoever noticed that it was gone before it had said why.
#[test]
fn the_cause_is_told_and_not_what_followed() {
    let mut world = World::new(2, 0);
    while world.nodes.iter().any(|node| node.told.is_empty()) {
        world.step();
    }
    let failure = |followed: bool, cause: &str| {
        let error = Error::new(ErrorKind::Space, "writing temporary data", cause);
        FromNode::Failed(Failure {
            fault: Fault::of(&error.at("/temp/spill".as_ref()).offset(7)),
            followed,
        })
    };
    world.take(Event::Told(0, failure(true, "the other is gone")));
    world.take(Event::Told(1, failure(false, "no space left")));
    world.take(Event::Told(0, failure(false, "something later")));
    for number in 0..2 {
        world.take(Event::HungUp(number));
        world.take(Event::Ended(number, Ending::Exited(2)));
    }
    let error = world.coordinator.outcome().map(|_| ()).unwrap_err();
    let wanted = "/temp/spill: at byte 7: on node 1, writing temporary data: no space left";
    assert_eq!(error.to_string(), wanted);
    assert_eq!(error.kind, ErrorKind::Space);
}

#[test]
fn a_node_that_just_ends_is_named() {
    for (ending, wanted) in [
        (Ending::Exited(101), "exit code 101"),
        (Ending::Exited(0), "exit code 0"),
        (Ending::Killed, "stopped before its work was done"),
    ] {
        let mut world = World::new(1, 0);
        world.take(Event::HungUp(0));
        world.take(Event::Ended(0, ending));
        let error = world.coordinator.outcome().map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("running node 0") && said.contains(wanted),
            "{said}"
        );
    }
}

#[test]
fn what_is_said_at_the_wrong_time_ends_the_job() {
    let distributed = || FromNode::Distributed(Box::default());
    for (before, message) in [
        (0, distributed()),
        (0, FromNode::Done(Box::new(done(1)))),
        (0, FromNode::Reached(Left::default())),
        (1, FromNode::Ready(1)),
        (1, FromNode::Done(Box::new(done(1)))),
    ] {
        let mut world = World::new(2, 0);
        if before == 1 {
            while world.nodes.iter().any(|node| node.told.is_empty()) {
                world.step();
            }
        }
        world.take(Event::Told(1, message));
        assert!(world.coordinator.is_over());
        for number in 0..2 {
            world.take(Event::Ended(number, Ending::Exited(2)));
        }
        let said = world
            .coordinator
            .outcome()
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("node 1") && said.contains("should not say"),
            "{said}"
        );
    }
}

/// The limit is shared: no node's budget is more than its part, and together they sample what one would.
#[test]
fn memory_and_threads_are_divided() {
    for count in [1, 2, 3, 8] {
        let plan = plan(count);
        assert!(plan.budget.limit_bytes * u64::from(count) <= 4 << 30);
        let held = plan.budget.held_bytes();
        assert!(held <= plan.budget.limit_bytes);
        assert_eq!(plan.worker_count, (4 / count as usize).max(1));
        assert_eq!(plan.sample_count, 1024);
        assert_eq!(plan.input_bytes, Some(1 << 30));
        let temp_bytes = plan.temp_bytes.unwrap() * u64::from(count);
        assert!(temp_bytes < 1 << 30);
        let back: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(back, plan);
    }
}

#[test]
fn functions_do_not_go_to_other_processes() {
    let mut mapped = job(2);
    mapped.map = Some(each(|record, records| records.push(record)));
    let error = check(&mapped).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.to_string().contains("map and reduce"), "{error}");
    check(&job(2)).unwrap();
}

/// Whatever node looks, and however its own range is cut: a record is at home on one node, in the partition whose range
/// holds its key and place.
#[test]
fn every_record_has_one_home() {
    let order = Order::new(Format::Lines, &[]).unwrap();
    for seed in seeds() {
        let mut world = World::new(1, seed);
        let mut draw = |below: usize| world.random(below);
        let mut boundary = || Boundary {
            key: (0..draw(4)).map(|_| b'a' + draw(3) as u8).collect(),
            chunk: draw(3) as u64,
        };
        let mut between: Vec<Boundary> = (0..4).map(|_| boundary()).collect();
        between.sort_unstable();
        between.dedup();
        let mut all: Vec<Boundary> = (0..12).map(|_| boundary()).collect();
        all.sort_unstable();
        all.dedup();
        let node_count = between.len() as u32 + 1;
        let lines = (0..40).map(|_| (boundary().key, boundary().chunk));
        for (key, chunk) in lines.collect::<Vec<_>>() {
            let place = Boundary { key, chunk };
            let line = [place.key.as_slice(), b"\n"].concat();
            let home = between.partition_point(|one| *one <= place) as u32;
            // One node more than there are ranges: it owns nothing.
            for node in 0..=node_count {
                let from = node.checked_sub(1).and_then(|at| between.get(at as usize));
                let to = between.get(node as usize);
                let is_inside = |one: &&Boundary| {
                    from.is_none_or(|from| from < *one) && to.is_none_or(|to| *one < to)
                };
                let inside: Vec<Boundary> = match node < node_count {
                    true => all.iter().filter(is_inside).cloned().collect(),
                    false => Vec::new(),
                };
                let partition = inside.partition_point(|one| *one <= place) as u32;
                let table = Table::of_node(&order, node, &between, inside.clone());
                let word = order.word(&line, 0);
                let owner = table.owner(table.slot(&order, &line, word, chunk, &mut Vec::new()));
                let wanted = (node != home).then_some(home);
                assert_eq!(
                    node_of(owner),
                    wanted,
                    "seed {seed}, node {node}, {place:?}"
                );
                if node == home {
                    assert_eq!(owner, partition, "seed {seed}, node {node}, {place:?}");
                }
                let own_count = if node < node_count {
                    inside.len() + 1
                } else {
                    0
                };
                assert_eq!(table.partition_count(), own_count, "seed {seed}");
            }
        }
    }
}
