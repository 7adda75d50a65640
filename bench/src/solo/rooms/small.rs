//! `rooms-small`: 1,000 rooms of ten, all 10,000 online, 8,000 messages a second in all, so 80,000
//! deliveries. At another scale rooms and rate are in proportion.

use super::{descriptors_for, flags, seconds_of_load, server_with};
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Result, ensure};

const MEMBERS: u64 = 10;

pub(super) async fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let people = budget.messages;
    let rooms = people / MEMBERS;
    ensure!(rooms > 0, "--messages {people} is less than one room of {MEMBERS}");
    descriptors_for(people)?;
    let server = server_with(people, &[format!("{MEMBERS}x{rooms}")], 0).await?;
    let load = flags([
        ("--sockets", (rooms * MEMBERS).to_string()),
        // One of each room, who says eight a second.
        ("--senders", rooms.to_string()),
        ("--rate", (8 * rooms).to_string()),
        ("--seconds", seconds_of_load(budget)),
    ]);
    let report = server.load(&load).await?;
    let said = report.said()?;
    let mut samples = said.to_delivery.samples(&["delivery-p50", "delivery-p99"])?;
    samples.extend(said.to_acknowledgement.samples(&["ack-p50", "ack-p99"])?);
    samples.push(Sample::new("deliveries", "1/s", said.deliveries_per_second()));
    Ok(samples)
}
