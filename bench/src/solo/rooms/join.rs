//! `room-create`: a room is made, and 100,000 people come in by one invite, 64 at a time.
//!
//! They connect in waves beforehand, which is not counted: `joins` is how many a second come in while
//! a wave does. Others go on meanwhile: `elsewhere` and `inside` are the times of messages in another
//! room and in this one, from before they are written until a listener has them.

use super::pair::Pair;
use super::{at_ms, descriptors_for, rooms_of, server_with};
use crate::solo::folkmoot::{Client, Server};
use althing_bench_workloads::{Budget, Sample};
use anyhow::{Context, Result, ensure};
use folkmoot_protocol::RoomId;
use folkmoot_protocol::rpc::{InviteAccept, InviteCreate, RoomCreate, RoomGet};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, LocalSet};

/// Users who do not come in by the invite with the others.
const BEFOREHAND: usize = 5;
/// Few enough that all have joined before the first of them has to answer a ping.
const WAVE: usize = 500;
const CONNECTING_AT_ONCE: usize = 128;
const JOINING_AT_ONCE: usize = 64;
/// Between two messages of others.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn measure(budget: Budget) -> Result<Vec<Sample>> {
    // Pairs are tasks of this thread: they share a cell that says what is going on.
    LocalSet::new().run_until(joining(usize::try_from(budget.messages)?)).await
}

/// What the pairs are told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Between,
    Joining,
    Over,
}

async fn joining(people: usize) -> Result<Vec<Sample>> {
    descriptors_for(WAVE.min(people) as u64)?;
    let users = (people + BEFOREHAND) as u64;
    let server = server_with(users, &["2".to_owned()], 0).await?;
    let tokens = server.tokens()?;
    let (room, code) = create(&server, &tokens[2], 2).await?;
    for number in [3, 4] {
        let mut early = server.enter(number, &tokens[number]).await?;
        early.rpc(&InviteAccept { code: code.clone() }).await?;
    }
    let mut first = server.enter(0, &tokens[0]).await?;
    let other = *rooms_of(&mut first, 2).await?.first().context("the other room")?;
    drop(first);
    let stage = Rc::new(Cell::new(Stage::Between));
    let elsewhere = Pair::open(&server, other, [(0, &tokens[0]), (1, &tokens[1])]).await?;
    let inside = Pair::open(&server, room, [(3, &tokens[3]), (4, &tokens[4])]).await?;
    let elsewhere = talk(elsewhere, Rc::clone(&stage));
    let inside = talk(inside, Rc::clone(&stage));
    let mut took = Duration::ZERO;
    let numbers: Vec<usize> = (BEFOREHAND..tokens.len()).collect();
    for wave in numbers.chunks(WAVE) {
        let clients = connect(&server, &tokens, wave).await?;
        stage.set(Stage::Joining);
        let begun = Instant::now();
        let clients = join(clients, room, &code).await?;
        took += begun.elapsed();
        stage.set(Stage::Between);
        drop(clients);
    }
    stage.set(Stage::Over);
    let mut samples = vec![
        Sample::new("joins", "1/s", people as f64 / took.as_secs_f64()),
        Sample::new("all-in", "ms", took.as_secs_f64() * 1_000.0),
    ];
    for (name, talking) in [("elsewhere", elsewhere), ("inside", inside)] {
        let mut times = talking.await.context("a pair's task panicked")??;
        for (part, share) in [("p50", 0.5), ("p99", 0.99)] {
            let time = at_ms(&mut times, share).with_context(|| name.to_owned())?;
            samples.push(Sample::new(format!("{name}-{part}"), "ms", time));
        }
    }
    let mut owner = server.enter(2, &tokens[2]).await?;
    let members = owner.rpc(&RoomGet { room }).await?.members as usize;
    ensure!(members == people + 3, "{members} members, {people} came in after three");
    Ok(samples)
}

/// A room and the code of its invite.
async fn create(server: &Server, token: &str, number: usize) -> Result<(RoomId, String)> {
    let mut owner = server.enter(number, token).await?;
    let room = owner.rpc(&RoomCreate { name: "Everyone".to_owned(), topic: None }).await?.id;
    let invite = InviteCreate { room, expires_in_s: None, uses_max: None };
    Ok((room, owner.rpc(&invite).await?.code))
}

async fn connect(server: &Server, tokens: &[String], wave: &[usize]) -> Result<Vec<Client>> {
    stream::iter(wave.iter().map(|number| server.enter(*number, &tokens[*number])))
        .buffer_unordered(CONNECTING_AT_ONCE)
        .try_collect()
        .await
}

async fn join(clients: Vec<Client>, room: RoomId, code: &str) -> Result<Vec<Client>> {
    let joining = clients.into_iter().map(|mut client| async move {
        let view = client.rpc(&InviteAccept { code: code.to_owned() }).await?;
        ensure!(view.id == room, "the invite led to another room");
        Ok(client)
    });
    stream::iter(joining).buffer_unordered(JOINING_AT_ONCE).try_collect().await
}

/// Says something again and again; gives the times of what was said while people came in.
fn talk(mut pair: Pair, stage: Rc<Cell<Stage>>) -> JoinHandle<Result<Vec<Duration>>> {
    tokio::task::spawn_local(async move {
        let mut times = Vec::new();
        while stage.get() != Stage::Over {
            let before = stage.get();
            let took = pair.say().await?;
            if before == Stage::Joining {
                times.push(took);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(times)
    })
}
