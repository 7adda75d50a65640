//! Rooms at scale: what a chat server costs by how many are members, online, idle, or come at once.
//!
//! Each workload fills a directory with `folkmoot seed`, starts the release build of the server on
//! it, fsync on, and drives it over sockets from many addresses of 127.0.0.0/8. `--messages` is the
//! scale: members, connections or people; what is smaller stays in proportion. Nothing may be lost,
//! doubled or out of order, or the run has no figures.

mod idle;
mod join;
mod members;
mod online;
mod pair;
mod small;
mod storm;

use crate::solo::folkmoot::{Client, Server};
use althing_bench_workloads::{Arguments, Budget, Sample};
use anyhow::{Context, Result, ensure};
use folkmoot_protocol::RoomId;
use folkmoot_protocol::rpc::RoomsList;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// Files that a process needs beside its connections.
const FILES_BESIDE: u64 = 1_000;

/// Runs the workload of that name; `None` when there is none.
pub(super) fn run(arguments: &Arguments) -> Option<Result<Vec<Sample>, String>> {
    let budget = arguments.budget;
    let measured = match arguments.workload.as_str() {
        "room-members" => on_runtime(members::measure(budget)),
        "room-online" => on_runtime(online::measure(budget)),
        "rooms-small" => on_runtime(small::measure(budget)),
        "idle-connections" => on_runtime(idle::measure(budget)),
        "reconnect-storm" => on_runtime(storm::measure(budget)),
        "room-create" => on_runtime(join::measure(budget)),
        _ => return None,
    };
    Some(measured.map_err(|error| format!("{error:#}")))
}

fn on_runtime(measuring: impl Future<Output = Result<Vec<Sample>>>) -> Result<Vec<Sample>> {
    // One thread beside the server, which is what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measuring)
}

/// Raises the limit of open files for this process and those it starts.
///
/// # Errors
/// Names the limit if so many connections are not allowed.
pub(super) fn descriptors_for(connections: u64) -> Result<()> {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limits.maximum, maximum: limits.maximum };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limits.maximum,
        Err(_) => limits.current,
    };
    enough(connections, allowed)
}

/// `None` is no limit.
fn enough(connections: u64, allowed: Option<u64>) -> Result<()> {
    let needed = connections + FILES_BESIDE;
    ensure!(
        allowed.is_none_or(|allowed| allowed >= needed),
        "{connections} connections take {needed} open files in a process, and {} are allowed: \
         raise the hard limit (`ulimit -Hn`), or measure fewer with --messages",
        allowed.unwrap_or_default(),
    );
    Ok(())
}

/// Flags and their values as a command takes them.
fn flags<const N: usize>(flags: [(&str, String); N]) -> Vec<String> {
    flags.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

/// Whole seconds of load for a budget: a sample of one second says little about a tail.
fn seconds_of_load(budget: Budget) -> String {
    (budget.seconds * 4.0).ceil().max(1.0).to_string()
}

/// Rooms of a user that have so many members.
async fn rooms_of(client: &mut Client, members: u64) -> Result<Vec<RoomId>> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = client.rpc(&RoomsList { after, ..RoomsList::default() }).await?;
        let fitting = page.rooms.iter().filter(|room| u64::from(room.members) == members);
        found.extend(fitting.map(|room| room.id));
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// A size as metrics name it.
fn short(size: u64) -> String {
    if size >= 1_000 && size.is_multiple_of(1_000) {
        return format!("{}k", size / 1_000);
    }
    size.to_string()
}

/// Median of times, in milliseconds.
fn median_ms(times: &mut [Duration]) -> Result<f64> {
    at_ms(times, 0.5)
}

/// What a share of all times is at most, in milliseconds.
fn at_ms(times: &mut [Duration], share: f64) -> Result<f64> {
    times.sort_unstable();
    let rank = (times.len() as f64 * share) as usize;
    let time = times.get(rank.min(times.len().saturating_sub(1)));
    Ok(time.context("nothing was timed")?.as_secs_f64() * 1_000.0)
}

/// A server on a directory with so many users, and rooms as `folkmoot seed --room` takes them.
async fn server_with(users: u64, rooms: &[String], messages: u64) -> Result<Server> {
    let mut seed = flags([("--users", users.to_string()), ("--messages", messages.to_string())]);
    for room in rooms {
        seed.extend(["--room".to_owned(), room.clone()]);
    }
    Server::seeded(&seed).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_named_with_what_would_be_needed() {
        assert!(enough(10_000, None).is_ok());
        assert!(enough(10_000, Some(11_000)).is_ok());
        let error = enough(10_000, Some(4_096)).unwrap_err().to_string();
        assert!(error.contains("11000 open files") && error.contains("4096 are"), "{error}");
    }

    #[test]
    fn sizes_and_times_are_told_in_short() {
        assert_eq!([100, 1_000, 2_500, 100_000].map(short), ["100", "1k", "2500", "100k"]);
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(median_ms(&mut times).unwrap(), 51.0);
        assert_eq!(at_ms(&mut times, 1.0).unwrap(), 100.0);
        assert!(median_ms(&mut []).is_err());
    }
}
