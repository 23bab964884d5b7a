//! Between the nodes of a job: who sends what to whom while records are distributed.
//!
//! ```text
//!   [partition-0 .. W-1] --> frames to node 1 ==> [send-1] ====connection====> [receive-0] on node 1
//!            |          \--> frames to node 2 ==> [send-2] ====connection====> ...
//!            v
//!       partitions <---- cut, partition <-------- [receive-1], [receive-2]
//! ```
//!
//! The table of a node has a slot for each of its own partitions and one for each other node: what falls into one of
//! those leaves in frames, and is partitioned again where it arrives. A receiver waits for nothing but memory, which
//! the disk frees, so two nodes that send to each other never wait for one another.

use sortmill_io::frame::Header;
use sortmill_io::sync::{Scope, ScopedJoinHandle, spawn};
use sortmill_io::{Buffer, File, Pool};

use super::Shared;
use super::distribute::{Seen, Worker, guarded};
use super::proof::compare;
use crate::batch::Batch;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::metrics::{Finished, Meter, Stage};
use crate::partitions::Partitions;
use crate::plan::Nodes;
use crate::stage::read::Share;
use crate::stage::receive::{Fragments, Incoming, receive};
use crate::stage::send::Outgoing;
use crate::table::{Boundary, Table};

/// This node among the others.
pub struct Exchange<'a> {
    /// The boundaries between nodes, and those between the partitions of this one.
    pub between: Vec<Boundary>,
    pub inside: Vec<Boundary>,
    /// What this node reads.
    pub share: Share<'a>,
    /// The other nodes, in their order.
    pub others: Vec<Other>,
}

/// Another node.
pub struct Other {
    number: u32,
    connection: File,
    outgoing: Outgoing,
    /// For a frame, and for a record longer than one, from there.
    frame: Pool,
    long: Pool,
}

impl Other {
    /// Node `number`, at the other end of `connection`.
    pub fn new(shared: &Shared<'_>, number: u32, connection: File) -> Result<Self> {
        let wrong = |error: std::io::Error| {
            let doing = "mapping the job's memory";
            Error::new(ErrorKind::Memory, doing, error.to_string())
        };
        let plan = shared.plan;
        let nodes = plan.nodes.as_ref().expect("a plan of several nodes");
        let &Nodes {
            number: own,
            frame_bytes,
            frame_count,
            ..
        } = nodes;
        let ends = (own, number);
        let outgoing = Outgoing::new(shared.number, ends, frame_bytes, frame_count);
        let outgoing = outgoing.map_err(wrong)?;
        outgoing.end_with(shared.stop);
        let long_bytes = sortmill_io::align_up(plan.record_bytes_max as u64) as usize;
        Ok(Self {
            number,
            connection,
            outgoing,
            frame: Pool::new(1, frame_bytes).map_err(wrong)?,
            long: Pool::new(1, long_bytes).map_err(wrong)?,
        })
    }
}

/// What a thread leaves: what it saw, and what it counted.
type End<T> = Option<(T, Finished)>;

impl Exchange<'_> {
    /// The table of this node.
    pub fn table(&self, shared: &Shared<'_>) -> Table {
        let plan = shared.plan;
        Table::of_node(&plan.order, plan.node(), &self.between, self.inside.clone())
    }

    /// Puts records that are node `number`'s on their way to it.
    pub fn put(
        &self,
        number: u32,
        shared: &Shared<'_>,
        batch: &Batch<'_>,
        rows: &[u32],
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let other = self.others.iter().find(|other| other.number == number);
        let outgoing = &other.expect("a node for each slot").outgoing;
        outgoing.put(batch, rows, shared.number, shared.stop, meter)
    }

    /// Starts a thread for each connection that sends what the workers put.
    pub fn spawn_senders<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        shared: &'scope Shared<'_>,
        began_ns: u64,
    ) -> Vec<ScopedJoinHandle<'scope, End<()>>> {
        let sender = |other: &'scope Other| {
            let name = format!("send-{}", other.number);
            spawn(threads, &name.clone(), move || {
                let mut meter = shared.meter(&name, &[Stage::Send], began_ns);
                let Shared { os, stop, .. } = *shared;
                let sent = guarded(stop, || {
                    other.outgoing.send(os, &other.connection, stop, &mut meter)
                });
                sent.map(|()| ((), meter.finish(Stage::Send)))
            })
        };
        self.others.iter().map(sender).collect()
    }

    /// Starts a thread for each connection that distributes what comes.
    pub fn spawn_receivers<'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        shared: &'scope Shared<'_>,
        partitions: &'scope Partitions<'_>,
        began_ns: u64,
    ) -> Vec<ScopedJoinHandle<'scope, End<Seen>>> {
        let receiver = |other: &'scope Other| {
            let name = format!("receive-{}", other.number);
            spawn(threads, &name.clone(), move || {
                let stages = [Stage::Receive, Stage::Partition];
                let mut meter = shared.meter(&name, &stages, began_ns);
                let seen = guarded(shared.stop, || {
                    receive_all(shared, other, partitions, &mut meter)
                });
                seen.map(|seen| (seen, meter.finish(Stage::Receive)))
            })
        };
        self.others.iter().map(receiver).collect()
    }

    /// The workers have put all they had: ends what goes to each other node. Answers what all of that adds up to.
    pub fn end(&self, shared: &Shared<'_>) -> Result<Fingerprint> {
        let mut sent = Fingerprint::default();
        for other in &self.others {
            sent.merge(&other.outgoing.end(shared.stop)?);
        }
        Ok(sent)
    }
}

/// Distributes what one other node sends, to its end, and holds it against what that node says it sent.
fn receive_all(
    shared: &Shared<'_>,
    other: &Other,
    partitions: &Partitions<'_>,
    meter: &mut Meter<'_>,
) -> Result<Seen> {
    let plan = shared.plan;
    let incoming = Incoming {
        os: shared.os,
        connection: &other.connection,
        header: Header {
            job: shared.number,
            node: other.number,
            partition: plan.node(),
            ..Header::default()
        },
        order: &plan.order,
        record_bytes_max: plan.record_bytes_max,
        stop: shared.stop,
    };
    let table = partitions.table();
    let mut worker = Worker::new(shared, partitions, None, Stage::Receive)?;
    let take = |pool: &Pool| -> Buffer { pool.take().expect("it is for nobody else") };
    let (mut frame, mut long) = (take(&other.frame), Fragments::new(take(&other.long)));
    let sent = receive(
        &incoming,
        &mut frame,
        &mut long,
        meter,
        |chunk, records, meter| {
            let table = table.get().ok_or_else(|| shared.stop.error())?;
            worker.records(Some(&table), (chunk, None), records, 0, meter)
        },
    )?;
    let seen = worker.hands.seen;
    compare(&sent, &seen.input)?;
    Ok(seen)
}
