//! `room-members`: what a room costs by its members, 100 to 100,000, of whom one is online.
//!
//! `load` is the time of the first subscription to a room that no one has opened since the server
//! started, `kept` how much the server's memory grows by such a room and its subscription (of a
//! whole process, so rather too much; `room::cost_tests` counts to the byte). `delivery` is the time
//! from before a message is written until the one online has it; `history` of the newest 50,
//! `older` of 50 from the disk, `recovery` of a subscription that missed 100 messages. `create` is
//! an empty room; how long many take to come in, `room-create` says.

use super::pair::Pair;
use super::{at_ms, median_ms, rooms_of, server_with, short};
use crate::solo::folkmoot::Server;
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Result, ensure};
use folkmoot_protocol::frame::SubscribeRequest;
use folkmoot_protocol::rpc::{HistoryGet, RoomCreate};
use folkmoot_protocol::{Channel, RoomId, Seq};
use std::time::{Duration, Instant};

/// Members, and how many such rooms: enough that what one keeps can be told.
const SIZES: [(u64, u64); 4] = [(100, 40), (1_000, 40), (10_000, 20), (100_000, 5)];
/// Messages in each room before the run.
const MESSAGES: u64 = 500;
const MISSED: u64 = 100;
const DELIVERIES_MAX: usize = 2_000;
const WARM_UPS: usize = 20;
const ASKED: usize = 50;

pub(super) async fn measure(budget: Budget) -> Result<Vec<Sample>> {
    let fitting = SIZES.into_iter().filter(|(members, _)| *members <= budget.messages);
    let sizes: Vec<(u64, u64)> = fitting.collect();
    ensure!(!sizes.is_empty(), "--messages {} is less than the smallest room", budget.messages);
    let largest = sizes[sizes.len() - 1].0;
    let rooms: Vec<String> = sizes.iter().map(|(size, rooms)| format!("{size}x{rooms}")).collect();
    let server = server_with(largest, &rooms, MESSAGES).await?;
    let tokens = server.tokens()?;
    let mut samples = Vec::new();
    for (members, rooms) in sizes {
        let room = load(&server, &tokens, members, rooms, &mut samples).await?;
        deliver(&server, &tokens, room, members, budget, &mut samples).await?;
        ask(&server, &tokens, room, members, &mut samples).await?;
    }
    samples.push(create(&server, &tokens[0]).await?);
    Ok(samples)
}

/// Opens rooms that nobody has opened yet; gives the first of them, of which the first two users
/// are members.
async fn load(
    server: &Server,
    tokens: &[String],
    members: u64,
    rooms: u64,
    samples: &mut Vec<Sample>,
) -> Result<RoomId> {
    let mut readers = Vec::new();
    let mut found = Vec::new();
    for number in 0..rooms {
        // The room of a number begins with this user.
        let user = usize::try_from(number * members)? % tokens.len();
        let mut reader = server.enter(user, &tokens[user]).await?;
        let rooms = rooms_of(&mut reader, members).await?;
        let new: Vec<RoomId> = rooms.into_iter().filter(|room| !found.contains(room)).collect();
        if number == 0 {
            // User 2 is in the first room only, or in all: then any of them will do.
            let mut second = server.enter(1, &tokens[1]).await?;
            let of_second = rooms_of(&mut second, members).await?;
            found.extend(new.into_iter().find(|room| of_second.contains(room)));
        } else {
            found.extend(new.first());
        }
        readers.push(reader);
    }
    ensure!(found.len() as u64 == rooms, "{} of {rooms} rooms of {members} found", found.len());
    let before = server.memory_bytes()?;
    let mut times = Vec::new();
    for (reader, room) in readers.iter_mut().zip(&found) {
        let begun = Instant::now();
        reader.subscribe(Channel::Room(*room)).await?;
        times.push(begun.elapsed());
    }
    let grown = (server.memory_bytes()? - before).max(0.0) / rooms as f64 / 1_024.0;
    let size = short(members);
    samples.push(Sample::new(format!("load-p50-{size}"), "ms", median_ms(&mut times)?));
    samples.push(Sample::new(format!("kept-{size}"), "KiB", grown));
    Ok(found[0])
}

/// One says something, one is online.
async fn deliver(
    server: &Server,
    tokens: &[String],
    room: RoomId,
    members: u64,
    budget: Budget,
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let mut pair = Pair::open(server, room, [(0, &tokens[0]), (1, &tokens[1])]).await?;
    for _ in 0..WARM_UPS {
        pair.say().await?;
    }
    let time = Duration::from_secs_f64(budget.seconds);
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.is_empty() || times.len() < DELIVERIES_MAX && began.elapsed() < time {
        times.push(pair.say().await?);
    }
    let size = short(members);
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let name = format!("delivery-{name}-{size}");
        samples.push(Sample::new(name, "ms", at_ms(&mut times, share)?));
    }
    Ok(())
}

/// Pages of history, and coming back after a hundred messages.
async fn ask(
    server: &Server,
    tokens: &[String],
    room: RoomId,
    members: u64,
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let size = short(members);
    let pair = Pair::open(server, room, [(0, &tokens[0]), (1, &tokens[1])]).await?;
    let mut reader = server.enter(1, &tokens[1]).await?;
    let channel = Channel::Room(room);
    let left_at = reader.subscribe(channel).await?;
    reader.unsubscribe(channel).await?;
    let _speaker = pair.leave_behind(MISSED).await?;
    for (name, before) in [("history", None), ("older", Some(Seq::from_u64(MESSAGES / 2)))] {
        let page = HistoryGet { room, before, after: None, around: None, limit: Some(50) };
        let mut times = Vec::new();
        for _ in 0..ASKED {
            let begun = Instant::now();
            let answer = reader.rpc(&page).await?;
            times.push(begun.elapsed());
            ensure!(answer.messages.len() == 50, "{} messages of 50", answer.messages.len());
        }
        samples.push(Sample::new(format!("{name}-p50-{size}"), "ms", median_ms(&mut times)?));
    }
    let mut times = Vec::new();
    for _ in 0..ASKED {
        let begun = Instant::now();
        let back = SubscribeRequest {
            channel: channel.to_string(),
            recover: true,
            epoch: left_at.epoch.clone(),
            offset: left_at.offset,
            ..SubscribeRequest::default()
        };
        let result = reader.subscribe_with(back).await?;
        times.push(begun.elapsed());
        let came = result.publications.len() as u64;
        ensure!(result.recovered && came == MISSED, "{came} of {MISSED} events recovered");
        reader.unsubscribe(channel).await?;
    }
    samples.push(Sample::new(format!("recovery-p50-{size}"), "ms", median_ms(&mut times)?));
    Ok(())
}

async fn create(server: &Server, token: &str) -> Result<Sample> {
    let mut owner = server.enter(0, token).await?;
    let mut times = Vec::new();
    for number in 0..ASKED {
        let begun = Instant::now();
        owner.rpc(&RoomCreate { name: format!("New {number}"), topic: None }).await?;
        times.push(begun.elapsed());
    }
    Ok(Sample::new("create-p50", "ms", median_ms(&mut times)?))
}
