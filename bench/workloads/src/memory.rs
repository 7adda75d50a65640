//! `actor-memory`: resident bytes per idle actor.
//!
//! The difference of the process's resident set, divided by the number of actors. Each has handled
//! one message, so what a first message leaves behind is counted. One address per actor is held,
//! as any user would, and counted too.

use crate::measure::{Budget, Sample};
use crate::system::{System, on_worker};
use crate::tally::{Board, Tally};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a resident page on the machines this runs on (x86-64 and arm64 Linux).
const PAGE_BYTES: u64 = 4096;
/// Actors started before the first reading, so that pools and worker threads exist.
const WARM_UP_ACTORS: usize = 1_000;

pub(crate) fn run<S: System>(budget: Budget) -> Result<Vec<Sample>, String> {
    let system = Arc::new(S::start());
    let actors = usize::try_from(budget.messages).map_err(|error| error.to_string())?;
    let early = spawn_and_tell(&system, WARM_UP_ACTORS)?;
    let before = resident_bytes()?;
    let addresses = spawn_and_tell(&system, actors)?;
    let after = resident_bytes()?;
    drop((early, addresses));
    let own = size_of::<Tally>() as u64 * budget.messages;
    let per_actor = after.saturating_sub(before + own) as f64 / budget.messages as f64;
    Ok(vec![Sample::new("resident", "bytes", per_actor)])
}

/// Starts actors, tells each one number, and returns their addresses once all have handled it.
fn spawn_and_tell<S: System>(system: &Arc<S>, actors: usize) -> Result<Vec<S::Address>, String> {
    let board = Board::new(1);
    board.handled.expect(actors);
    let (spawner, starting) = (Arc::clone(system), Arc::clone(&board));
    let addresses = on_worker(&**system, async move {
        let mut addresses = Vec::with_capacity(actors);
        for tally in starting.tallies(actors, 1) {
            let address = spawner.spawn(tally).await;
            S::tell(&address, 1).await;
            addresses.push(address);
        }
        addresses
    });
    board.handled.wait().map_err(|error| error.to_string())?;
    if board.sum.load(Ordering::Relaxed) != actors as u64 {
        return Err("an actor handled another message than its own".to_owned());
    }
    Ok(addresses)
}

fn resident_bytes() -> Result<u64, String> {
    let statm = fs::read_to_string("/proc/self/statm")
        .map_err(|error| format!("resident memory is read from /proc/self/statm: {error}"))?;
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map(|pages| pages * PAGE_BYTES).ok_or_else(|| format!("unreadable statm: {statm}"))
}
