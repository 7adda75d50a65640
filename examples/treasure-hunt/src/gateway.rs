//! The way in: HTTP for the page, the map and the figures; a WebSocket for playing and watching.
//!
//! Nothing is decided here about the game. What is: who may speak for which player, how much may
//! wait, and that a question to an actor that died over it is asked again.

mod connection;
mod outbox;
mod pages;
mod patrol;
mod socket;
mod start;
mod status;
mod table;
mod upgrade;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use connection::Connection;
pub(crate) use connection::dismiss;
pub use outbox::Outbox;
pub(crate) use pages::routes as pages;
use patrol::Patrol;
pub(crate) use socket::Conversation;
pub(crate) use start::{random, random_region, start_place};
pub use status::{Recounted, Status};
pub(crate) use upgrade::{Host, upgrade};

use crate::actors::{RegionActorCalls, is_worth_a_retry};
use crate::limits::RETRY_PAUSE;
use crate::place::RegionId;
use crate::world::World;

/// What all connections share.
#[derive(Debug)]
pub struct Gateway {
    world: Arc<World>,
    patrol: Patrol,
}

impl Gateway {
    /// The way into that world.
    pub fn new(world: Arc<World>) -> Arc<Self> {
        Arc::new(Self { world, patrol: Patrol::default() })
    }

    /// Looks after the connections until dropped.
    pub async fn patrol(&self) -> Infallible {
        self.patrol.walk(&self.world).await
    }
}

impl Host for Gateway {
    type Conversation = Connection;

    fn open(self: &Arc<Self>) -> Connection {
        Connection::open(self)
    }
}

/// Everything that the server answers.
pub fn router(gateway: Arc<Gateway>) -> Router {
    let world = gateway.world.clone();
    let socket = get(upgrade::<Gateway>).with_state(gateway);
    pages::routes()
        .route("/socket", socket)
        .route("/map/{region}", get(map))
        .route("/status", get(status::status))
        .route("/recount", get(status::recount))
        .with_state(world)
}

/// The ground of a region: one byte per tile, row by row; it never changes.
async fn map(State(world): State<Arc<World>>, Path(region): Path<u16>) -> Response {
    let Some(region) = RegionId::new(region) else {
        return (StatusCode::NOT_FOUND, "there is no such region\n").into_response();
    };
    loop {
        match world.region(region).terrain().await {
            Ok(terrain) => {
                let tag = [
                    (header::CONTENT_TYPE, "application/octet-stream"),
                    (header::CACHE_CONTROL, "no-cache"),
                ];
                return (tag, terrain.bytes().to_vec()).into_response();
            }
            Err(error) if is_worth_a_retry(&error) => world.node().sleep(RETRY_PAUSE).await,
            Err(error) => {
                tracing::error!(%error, "a region's ground cannot be told");
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
        }
    }
}
