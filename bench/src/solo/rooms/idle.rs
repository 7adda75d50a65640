//! `idle-connections`: what the server keeps in memory for a connection that is subscribed to one
//! room, and to 50, while nothing is said; rooms and users that it wakes are counted, too.

use super::{descriptors_for, flags, server_with};
use crate::solo::folkmoot::Freed;
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};

/// Rooms that each is in, and that there are in all.
const ROOMS_EACH: u64 = 50;
const ROOMS: u64 = 250;

pub(super) async fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let people = budget.messages;
    let members = people * ROOMS_EACH / ROOMS;
    ensure!(
        members > 0 && members * ROOMS == people * ROOMS_EACH,
        "--messages {people} is no multiple of {}",
        ROOMS / ROOMS_EACH
    );
    descriptors_for(people)?;
    let mut server = server_with(people, &[format!("{members}x{ROOMS}")], 0).await?;
    let mut samples = Vec::new();
    for (metric, rooms) in [("kept-1", 1), ("kept-50", ROOMS_EACH)] {
        // A new process, which has no memory left over from the connections before. Nor from its
        // start, which reads a segment of the log: 64 MiB, of which the first connections would
        // take theirs unseen.
        server.restart(Freed::Returned).await?;
        let load = flags([
            ("--sockets", people.to_string()),
            ("--rooms", rooms.to_string()),
            ("--senders", "0".into()),
            ("--seconds", "1".into()),
        ]);
        let report = server.load(&load).await?;
        let bytes = report.bytes_per_socket.context("the server's memory cannot be read")?;
        samples.push(Sample::new(metric, "KiB", bytes as f64 / 1_024.0));
    }
    Ok(samples)
}
