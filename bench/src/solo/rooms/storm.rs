//! `reconnect-storm`: 10,000 clients of 20 rooms each lose their connections, miss 100 events, five
//! in each of their rooms, and come back at once, from where they were.
//!
//! `all-back` is the time from the first connection until the last client has all its rooms and all
//! it missed. `retried` counts connections that broke on their way in and were tried again. `lost`
//! counts events that were skipped or rooms that were not recovered; a run in which it or `doubled`
//! is not 0 fails.

use super::{descriptors_for, flags, server_with};
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Result, ensure};

const ROOMS_EACH: u64 = 20;
const ROOMS: u64 = 200;
const MISSED_IN_EACH: u64 = 5;

pub(super) async fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let people = budget.messages;
    let members = people * ROOMS_EACH / ROOMS;
    ensure!(
        members > 0 && members * ROOMS == people * ROOMS_EACH,
        "--messages {people} is no multiple of {}",
        ROOMS / ROOMS_EACH
    );
    descriptors_for(people)?;
    let server = server_with(people, &[format!("{members}x{ROOMS}")], 0).await?;
    let load = flags([
        ("--sockets", people.to_string()),
        ("--rooms", ROOMS_EACH.to_string()),
        ("--senders", "0".into()),
        ("--seconds", "1".into()),
        ("--reconnect", MISSED_IN_EACH.to_string()),
    ]);
    let report = server.load(&load).await?;
    let storm = report.storm()?;
    let expected = people * ROOMS_EACH * MISSED_IN_EACH;
    ensure!(storm.missed == expected, "{} of {expected} events came back", storm.missed);
    let mut samples = vec![Sample::new("all-back", "ms", storm.took)];
    samples.extend(storm.to_return.samples(&["back-p50", "back-p99"])?);
    let lost = report.troubles.skipped + report.troubles.unrecovered;
    samples.push(Sample::new("lost", "events", lost as f64));
    samples.push(Sample::new("retried", "connections", storm.retried as f64));
    samples.push(Sample::new("doubled", "events", report.troubles.doubled as f64));
    Ok(samples)
}
