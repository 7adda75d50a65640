//! The figures: what the page and the load generator ask for.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::actors::{BoardActorCalls, RegionActorCalls, Standing};
use crate::place::RegionId;
use crate::process::{self, ProcessUse};
use crate::recount::{self, Recount};
use crate::world::World;

/// Everything at one moment.
#[derive(Debug, Serialize)]
pub struct Status {
    players: usize,
    actors: Vec<Actors>,
    best: Vec<Standing>,
    acts: Acts,
    log: Log,
    arena: ArenaFigures,
    process: ProcessUse,
}

/// Actors of one type.
#[derive(Debug, Serialize)]
struct Actors {
    name: String,
    alive: u64,
    started: u64,
}

/// What became of what clients asked for.
#[derive(Debug, Serialize)]
struct Acts {
    done: u64,
    refused: u64,
    teleports: u64,
    floods: u64,
    foreign: u64,
    malformed: u64,
    oversized: u64,
    slow: u64,
    retries: u64,
    unavailable: u64,
    killed: u64,
}

#[derive(Debug, Serialize)]
struct Log {
    events: u64,
    bytes: u64,
    syncs: u64,
}

#[derive(Debug, Serialize)]
struct ArenaFigures {
    chunks: usize,
    epochs: usize,
    blocks: usize,
}

/// A recount of the log beside what the regions say.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recounted {
    /// What the log says.
    pub log: Recount,
    /// Regions whose own points differ from the log's.
    pub regions_wrong: Vec<String>,
    /// Players that the log has in the world and the server has not, or the other way round.
    pub players_wrong: usize,
}

pub(super) async fn status(State(world): State<Arc<World>>) -> Json<Status> {
    let counters = &world.counters;
    let (usage, arena) = (world.journal.usage(), world.arena.usage());
    let actors = world.node().metrics().kinds.into_iter().map(|kind| Actors {
        alive: kind.live(),
        name: kind.name.to_string(),
        started: kind.started,
    });
    Json(Status {
        players: world.attendance.len(),
        actors: actors.collect(),
        best: world.board().best().await.unwrap_or_default(),
        acts: Acts {
            done: counters.done.get(),
            refused: counters.refused.get(),
            teleports: counters.teleports.get(),
            floods: counters.floods.get(),
            foreign: counters.foreign.get(),
            malformed: counters.malformed.get(),
            oversized: counters.oversized.get(),
            slow: counters.slow.get(),
            retries: counters.retries.get(),
            unavailable: counters.unavailable.get(),
            killed: counters.killed.get(),
        },
        log: Log { events: usage.events, bytes: usage.bytes, syncs: usage.syncs },
        arena: ArenaFigures { chunks: arena.chunks, epochs: arena.epochs, blocks: arena.blocks },
        process: process::usage(),
    })
}

/// Recounts the log on the pool and compares it with the living regions, which may only have moved
/// on meanwhile.
pub(super) async fn recount(
    State(world): State<Arc<World>>,
) -> Result<Json<Recounted>, (StatusCode, String)> {
    let before = region_scores(&world).await;
    let path = world.journal.path().to_owned();
    let log = world
        .node()
        .blocking(move || recount::of_file(&path))
        .await
        .map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()))?;
    let after = region_scores(&world).await;
    let regions_wrong = RegionId::all()
        .filter_map(|region| {
            let (least, most) = (before[region.index()]?, after[region.index()]?);
            let counted = log.region_scores[region.index()];
            (!(least..=most).contains(&counted))
                .then(|| format!("region {}: {least} to {most}, log {counted}", region.number()))
        })
        .collect();
    let players_wrong = log.present.abs_diff(world.attendance.len());
    Ok(Json(Recounted { log, regions_wrong, players_wrong }))
}

/// Points as the regions know them; `None` for one that is being rebuilt.
async fn region_scores(world: &World) -> Vec<Option<u64>> {
    let mut scores = Vec::new();
    for region in RegionId::all() {
        let totals = world.region(region).totals().await;
        scores.push(totals.ok().map(|totals| totals.score));
    }
    scores
}
