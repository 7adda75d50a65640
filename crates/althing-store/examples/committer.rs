//! Commits turns of a few actors as fast as it can, and prints each `key version` once it is
//! acknowledged: what the test of kills runs.

use std::io::Write;
use std::sync::Arc;

use althing::{ActorId, Epoch};
use althing_store::{Embedded, Event, Snapshot, Store, Turn};

const ACTORS: u64 = 4;
const AT_ONCE: u64 = 8;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: committer DIRECTORY")?;
    let store: Arc<dyn Store> = Arc::new(Embedded::open(directory)?);
    let actors: Vec<_> = (0..ACTORS).map(|n| tokio::spawn(commit_on(store.clone(), n))).collect();
    for actor in actors {
        actor.await??;
    }
    Ok(())
}

async fn commit_on(store: Arc<dyn Store>, n: u64) -> Result<(), std::io::Error> {
    let id = ActorId::named("committer", n.to_string());
    let kept = store.open(&id, Epoch(1)).await.map_err(std::io::Error::other)?;
    let mut version = kept.version;
    loop {
        let answers: Vec<_> =
            (1..=AT_ONCE).map(|more| store.commit(turn(&id, version + more))).collect();
        for answer in answers {
            answer.await.map_err(std::io::Error::other)?;
            version += 1;
            let mut out = std::io::stdout().lock();
            writeln!(out, "{n} {version}")?;
            out.flush()?;
        }
    }
}

/// Each version is its own state and its own event, so that a hole or a mixture shows.
fn turn(id: &ActorId, version: u64) -> Turn {
    let bytes = format!("state {version} ").repeat(20).into_bytes();
    Turn {
        snapshot: Some(Snapshot { schema: 1, bytes, includes: version }),
        events: vec![Event { number: version, schema: 1, bytes: version.to_string().into_bytes() }],
        ..Turn::new(id.clone(), Epoch(1), version)
    }
}
