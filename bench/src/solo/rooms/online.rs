//! `room-online`: one room in which 100, 1,000 and 10,000 are online, all of its members.
//!
//! `last` is the time until the last of them has a message, one message at a time and at most ten a
//! second. `deliveries` is how many events a second reach clients while as many messages are said
//! as all of them get: eight are on their way at a time.

use super::{descriptors_for, flags, seconds_of_load, server_with, short};
use althing_bench_workloads::{Budget, Sample};
use anyhow::Result;

const SIZES: [u64; 3] = [100, 1_000, 10_000];

pub(super) async fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let sizes: Vec<u64> = SIZES.into_iter().filter(|size| *size <= budget.messages).collect();
    let sizes = if sizes.is_empty() { vec![budget.messages] } else { sizes };
    let largest = sizes[sizes.len() - 1];
    descriptors_for(largest)?;
    let rooms: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let server = server_with(largest, &rooms, 0).await?;
    let mut samples = Vec::new();
    for size in sizes {
        let all = flags([
            ("--sockets", size.to_string()),
            ("--room-of", size.to_string()),
            ("--seconds", seconds_of_load(budget)),
        ]);
        let one = flags([("--senders", "1".into()), ("--rate", "10".into())]);
        let one = [all.clone(), one, flags([("--in-flight", "1".into())])].concat();
        let last = server.load(&one).await?;
        let (p50, p99) = (format!("last-p50-{}", short(size)), format!("last-p99-{}", short(size)));
        samples.extend(last.said()?.to_last.samples(&[&p50, &p99])?);
        let many = flags([("--senders", "4".into()), ("--in-flight", "8".into())]);
        let said = server.load(&[all, many].concat()).await?;
        let rate = said.said()?.deliveries_per_second();
        samples.push(Sample::new(format!("deliveries-{}", short(size)), "1/s", rate));
    }
    Ok(samples)
}
