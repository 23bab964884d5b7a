//! Who decides: the coordinator of several nodes, as a state machine without I/O.
//!
//! In come events (what a node said, that its pipe or its process has ended), out go actions (what to tell to whom).
//! Every node passes the same states in the same order, and there are two moments at which all wait for the last one:
//! when all listen, and when all records are where they belong, for only then is it known where each node's range
//! lies in the output.
//!
//! ```text
//!   Started --Ready--> Listening ==all==> Distributing --Distributed--> Waiting ==all==> Writing --Done--> Finished
//! ```
//!
//! A node that ends before it has finished ends the job. Of several errors the cause is told, not what followed from
//! it: a node that lost its connection to another knows less than the one that was lost.

use sortmill_io::process::Ending;

use super::message::{Distributed, Done, FromNode, Place, Start, ToNode};
use crate::error::{Error, ErrorKind, Result};

/// What happened, at node so-and-so.
#[derive(Debug)]
pub enum Event {
    /// It said something.
    Told(u32, FromNode),
    /// It said something that nobody understands.
    Garbled(u32, Error),
    /// It will say nothing more.
    HungUp(u32),
    /// Its process is gone. The last event of each node.
    Ended(u32, Ending),
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// Tell a node.
    Tell(u32, ToNode),
    /// Count bytes that were read and written.
    Moved(u64, u64),
    /// All records are where they belong: bytes of temporary files, and of records.
    Distributed(u64, u64),
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Started,
    Listening,
    Distributing,
    Waiting,
    Writing,
    Finished,
}

struct Node {
    state: State,
    /// It has said why it ends.
    has_failed: bool,
    has_ended: bool,
    port: u16,
    /// What it will be told when all listen.
    start: Option<Start>,
    has_reached: bool,
    distributed: Option<Distributed>,
    done: Option<Done>,
}

/// How much an error tells of the cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tells {
    TheCause,
    WhatFollowed,
}

/// The coordinator of a job.
pub struct Coordinator {
    nodes: Vec<Node>,
    error: Option<(Tells, Error)>,
}

impl Coordinator {
    /// Begins with nodes that have just been started, each of which will be told its `start`. The ports in it are
    /// filled in here.
    #[must_use]
    pub fn new(starts: Vec<Start>) -> Self {
        let nodes = starts.into_iter().map(|start| Node {
            state: State::Started,
            has_failed: false,
            has_ended: false,
            port: 0,
            start: Some(start),
            has_reached: false,
            distributed: None,
            done: None,
        });
        Self {
            nodes: nodes.collect(),
            error: None,
        }
    }

    /// Takes an event and says what is to be done.
    #[must_use]
    pub fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Told(node, FromNode::Failed(failure)) => {
                let tells = match failure.followed {
                    true => Tells::WhatFollowed,
                    false => Tells::TheCause,
                };
                self.node(node).has_failed = true;
                self.fail(tells, on_node(node, failure.fault.error()));
            }
            Event::Garbled(node, error) => self.fail(Tells::TheCause, on_node(node, error)),
            Event::Told(..) | Event::HungUp(_) if self.error.is_some() => {}
            Event::Told(node, message) => return self.told(node, message),
            Event::HungUp(node) => {
                if self.node(node).state != State::Finished {
                    // How its process ended is known soon, and tells more.
                    let cause = "it stopped before its work was done";
                    self.fail(Tells::WhatFollowed, of_node(node, cause));
                }
            }
            Event::Ended(node, ending) => self.ended(node, ending),
        }
        Vec::new()
    }

    /// Whether there is nothing more to be said to the nodes: all have finished, or the job has failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.error.is_some() || self.all(State::Finished)
    }

    /// What came of it, once all nodes have ended: what each of them did, in their order.
    ///
    /// # Errors
    /// Why the job failed.
    ///
    /// # Panics
    /// When a node has not ended, or the job is not over: our own bug.
    pub fn outcome(self) -> Result<Vec<(Distributed, Done)>> {
        assert!(self.nodes.iter().all(|node| node.has_ended));
        if let Some((_, error)) = self.error {
            return Err(error);
        }
        let finished = self.nodes.into_iter().map(|node| {
            let distributed = node.distributed.expect("it has finished");
            (distributed, node.done.expect("it has finished"))
        });
        Ok(finished.collect())
    }

    fn told(&mut self, node: u32, message: FromNode) -> Vec<Action> {
        let state = self.node(node).state;
        match (state, message) {
            (_, FromNode::Moved(read, written)) => return vec![Action::Moved(read, written)],
            (State::Started, FromNode::Ready(port)) => {
                self.node(node).port = port;
                return self.arrive(node, State::Listening, Self::start);
            }
            (State::Distributing, FromNode::Reached(left)) if !self.node(node).has_reached => {
                self.node(node).has_reached = true;
                let next = node + 1;
                let is_there = (next as usize) < self.nodes.len();
                let go_on = is_there.then_some(Action::Tell(next, ToNode::GoOn(left)));
                return go_on.into_iter().collect();
            }
            (State::Distributing, FromNode::Distributed(distributed)) => {
                self.node(node).distributed = Some(*distributed);
                return self.arrive(node, State::Waiting, Self::write);
            }
            (State::Writing, FromNode::Done(done)) => {
                self.node(node).done = Some(*done);
                return self.arrive(node, State::Finished, |_| Vec::new());
            }
            _ => {
                let cause = format!("it said what it should not say while it is {state:?}");
                self.fail(Tells::TheCause, of_node(node, &cause));
            }
        }
        Vec::new()
    }

    /// A node has come to `state`; when all have, what `then` says is done.
    fn arrive(
        &mut self,
        node: u32,
        state: State,
        then: impl FnOnce(&mut Self) -> Vec<Action>,
    ) -> Vec<Action> {
        self.node(node).state = state;
        match self.all(state) {
            true => then(self),
            false => Vec::new(),
        }
    }

    /// All listen: each is told its share, and where the others are.
    fn start(&mut self) -> Vec<Action> {
        let ports: Vec<u16> = self.nodes.iter().map(|node| node.port).collect();
        let tell = |(number, node): (usize, &mut Node)| {
            node.state = State::Distributing;
            let mut start = node.start.take().expect("a node is started once");
            start.ports.clone_from(&ports);
            Action::Tell(number as u32, ToNode::Start(Box::new(start)))
        };
        self.nodes.iter_mut().enumerate().map(tell).collect()
    }

    /// All records are where they belong: the ranges lie in the output one after the other.
    fn write(&mut self) -> Vec<Action> {
        let distributed = self
            .nodes
            .iter()
            .filter_map(|node| node.distributed.as_ref());
        let (file_bytes, spilled_bytes) = distributed.fold((0, 0), |(bytes, spilled), one| {
            (bytes + one.fingerprint.bytes, spilled + one.spilled_bytes)
        });
        let mut actions = vec![Action::Distributed(spilled_bytes, file_bytes)];
        let mut from = 0;
        for (number, node) in self.nodes.iter_mut().enumerate() {
            node.state = State::Writing;
            let place = Place { from, file_bytes };
            from += node
                .distributed
                .as_ref()
                .map_or(0, |one| one.fingerprint.bytes);
            actions.push(Action::Tell(number as u32, ToNode::Write(place)));
        }
        actions
    }

    fn ended(&mut self, node: u32, ending: Ending) {
        self.node(node).has_ended = true;
        if self.node(node).state == State::Finished {
            return;
        }
        match ending {
            // It was told to end because of another.
            Ending::Killed if self.error.is_some() => {}
            Ending::Exited(_) if self.node(node).has_failed => {}
            Ending::Exited(code) => {
                let cause = format!("it ended with exit code {code} before its work was done");
                self.fail(Tells::TheCause, of_node(node, &cause));
            }
            Ending::Signal(signal) => {
                let error = of_node(node, &format!("it was killed by {}", named(signal)));
                let error = error.hint(
                    "No output was made. If nobody sent that signal, the system may have been short of memory: \
                     give the job less with --memory.",
                );
                self.fail(Tells::TheCause, error);
            }
            Ending::Killed => self.fail(Tells::TheCause, of_node(node, "it did not end in time")),
        }
    }

    /// Keeps the error that tells most, and of those the first.
    fn fail(&mut self, tells: Tells, error: Error) {
        if self.error.as_ref().is_none_or(|(known, _)| tells < *known) {
            self.error = Some((tells, error));
        }
    }

    fn all(&self, state: State) -> bool {
        self.nodes.iter().all(|node| node.state == state)
    }

    fn node(&mut self, number: u32) -> &mut Node {
        &mut self.nodes[number as usize]
    }
}

fn on_node(node: u32, mut error: Error) -> Error {
    error.doing = format!("on node {node}, {}", error.doing);
    error
}

fn of_node(node: u32, cause: &str) -> Error {
    Error::new(ErrorKind::Io, format!("running node {node}"), cause)
}

/// A signal as people know it (signal(7)).
fn named(signal: i32) -> String {
    let name = match signal {
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    };
    format!("signal {signal}{name}")
}
