//! How many commits a second a Cassandra acknowledges to actors that commit all at once, each as
//! soon as its last one was: `cassandra_commits HOST:PORT ACTORS SECONDS PARTITIONS`.
//!
//! The first round is the warm-up. Partitions are those of the first run on a keyspace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use althing::{ActorId, Epoch};
use althing_store::{Cassandra, CassandraOptions, Snapshot, Store, StoreError, Turn};

const USAGE: &str = "cassandra_commits HOST:PORT ACTORS SECONDS PARTITIONS";

/// Commits a state of 100 bytes until that time; gives how long each took.
async fn commit_until(
    store: Arc<Cassandra>,
    id: ActorId,
    until: Instant,
) -> Result<Vec<Duration>, StoreError> {
    let mut version = store.open(&id, Epoch(1)).await?.version;
    let mut took = Vec::new();
    while Instant::now() < until {
        version += 1;
        let snapshot = Some(Snapshot { schema: 1, bytes: vec![7; 100], includes: 0 });
        let turn = Turn { snapshot, ..Turn::new(id.clone(), Epoch(1), version) };
        let begun = Instant::now();
        store.commit(turn).await?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [host, actors, seconds, partitions] = &args[..] else { return Err(USAGE.into()) };
    let (actors, seconds): (u32, u64) = (actors.parse()?, seconds.parse()?);
    let mut options = CassandraOptions::default();
    (options.replicas, options.partitions) = (1, partitions.parse()?);
    let store = Arc::new(Cassandra::connect_with(&[host], options).await?);
    for round in ["warm-up", "measured"] {
        let begun = Instant::now();
        let until = begun + Duration::from_secs(seconds);
        let commits = (0..actors).map(|actor| {
            let id = ActorId::named("load", actor.to_string());
            tokio::spawn(commit_until(store.clone(), id, until))
        });
        let mut all = Vec::new();
        for commits in commits.collect::<Vec<_>>() {
            all.extend(commits.await??);
        }
        let rate = all.len() as f64 / begun.elapsed().as_secs_f64();
        all.sort_unstable();
        let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
        let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
        println!("{round}: {rate:.0} commits/s, p50 {p50:.1?}, p99 {p99:.1?}, longest {most:.1?}");
    }
    Ok(())
}
