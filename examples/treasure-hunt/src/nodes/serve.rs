//! Starts one node of a world, serves the clients that come to it, and ends it in order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use althing::Node;
use althing_cluster::{Authority, AuthorityConfig, Member, MemberConfig, RecordStore, State, Tls};
use althing_store::{Courier, Postgres};
use anyhow::{Context, Result, bail, ensure};
use axum::Router;
use axum::extract::{Path, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::realm::Realm;
use super::seed::{SeedActor, SeedActorCalls, WORLD};
use crate::gateway::{pages, upgrade};
use crate::map::Terrain;
use crate::place::RegionId;
use crate::process;
use crate::serve::Quick;

/// What the cluster of a world is called, in certificates, too.
const CLUSTER: &str = "hunt";
/// How long a node may take to hand its players and regions over.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// What to serve, and as which node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the node; no two have one.
    pub name: String,
    /// Where clients come in; port 0 takes a free one.
    pub address: SocketAddr,
    /// The database that has everything: `postgres://…`.
    pub store: String,
    /// Everything about the ground follows from it; all nodes have the same.
    pub seed: u64,
    /// Where this node listens for others, and is a candidate for the authority.
    pub peers: SocketAddr,
    /// How long a node that is silent counts as alive.
    pub lease: Duration,
    /// Certificates as `folkmoot cluster init DIR --cluster hunt` makes them; without them nodes
    /// talk in the clear.
    pub certificates: Option<PathBuf>,
}

/// One node of a world.
pub struct NodeServer {
    /// Where clients come in.
    pub address: SocketAddr,
    realm: Arc<Realm>,
    authority: Authority,
    listener: TcpListener,
}

impl NodeServer {
    /// Connects to the store, becomes one of the nodes and listens.
    ///
    /// # Errors
    /// An address, the store or the certificates cannot be used, the others do not take the node,
    /// or their world has another seed.
    pub async fn start(options: Options) -> Result<Self> {
        let Options { name, address, store, seed, peers, lease, certificates } = options;
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let tls = match certificates {
            Some(directory) => Tls::from_directory(directory, &name),
            None => Tls::insecure_plaintext(),
        };
        let record = RecordStore::postgres(&store).context("the store's address")?;
        let candidate = AuthorityConfig::new(CLUSTER, record, tls.clone());
        let candidate = candidate.listen((peers.ip(), 0).into()).lease(lease);
        let authority = Authority::serve(candidate).context("listening for candidates")?;
        let member = MemberConfig::new(CLUSTER, &name, authority.address().to_string(), tls);
        let member = member.listen(peers).join_timeout(lease * 4);
        let member = Member::bind(member).with_context(|| format!("cannot listen on {peers}"))?;
        let actors = Postgres::connect(&store).await.context("connecting to the store")?;
        let courier = Arc::new(Courier::new(Arc::new(actors)));
        let realm = Realm::new(seed, courier.clone(), member);
        let node = realm.build(&name);
        realm.member.join().await.context("joining the other nodes")?;
        courier.start(&node);
        agree(&node, &realm).await?;
        Ok(Self { address: listener.local_addr()?, realm, authority, listener })
    }

    /// Serves until `stop` resolves, then hands players and regions over.
    ///
    /// # Errors
    /// The other nodes have given this one up, so that nothing of it counts any more.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<()> {
        let Self { realm, authority, listener, .. } = self;
        let mut state = realm.member.state();
        let listener = Quick(listener);
        let routes = router(realm.clone());
        let outcome = tokio::select! {
            served = async { axum::serve(listener, routes).await } => served.context("serving"),
            _ = state.wait_for(|state| *state == State::Evicted) => {
                bail!("the other nodes have given this one up: it has to be started again")
            }
            () = stop => Ok(()),
        };
        realm.member.leave(STOP_WITHIN).await;
        authority.resign().await;
        outcome
    }
}

async fn agree(node: &Node, realm: &Realm) -> Result<()> {
    let keeper = node.get::<SeedActor>(WORLD);
    let seed = realm.again(|| keeper.agree(realm.seed)).await;
    let seed = seed.context("the other nodes do not tell the world's seed")?;
    ensure!(seed == realm.seed, "the world in the store has seed {seed}, not {}", realm.seed);
    Ok(())
}

fn router(realm: Arc<Realm>) -> Router {
    pages()
        .route("/socket", get(upgrade::<Realm>))
        .route("/map/{region}", get(map))
        .route("/status", get(status))
        .with_state(realm)
}

/// The ground of a region: one byte per tile, row by row; it never changes.
async fn map(Shared(realm): Shared<Arc<Realm>>, Path(region): Path<u16>) -> Response {
    let Some(region) = RegionId::new(region) else {
        return (StatusCode::NOT_FOUND, "there is no such region\n").into_response();
    };
    let seed = realm.seed;
    let terrain = realm.node().blocking(move || Terrain::generate(seed, region)).await;
    let kind =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CACHE_CONTROL, "no-cache")];
    (kind, terrain.bytes().to_vec()).into_response()
}

/// The figures of this node, for the page; there is no log and no arena here.
async fn status(Shared(realm): Shared<Arc<Realm>>) -> axum::Json<Value> {
    let counters = &realm.counters;
    let kinds = realm.node().metrics().kinds;
    let players = kinds.iter().find(|kind| kind.name == "hunt.player");
    let players = players.map_or(0, |kind| kind.live());
    let actors: Vec<_> = kinds
        .iter()
        .map(|kind| {
            let (name, alive, started) = (kind.name.to_string(), kind.live(), kind.started);
            json!({"name": name, "alive": alive, "started": started})
        })
        .collect();
    let members = realm.member.view().members;
    let nodes: Vec<_> = members.into_iter().map(|member| member.name).collect();
    axum::Json(json!({
        "players": players,
        "nodes": nodes,
        "actors": actors,
        "best": [],
        "acts": {
            "done": counters.done.get(), "refused": counters.refused.get(),
            "teleports": counters.teleports.get(), "floods": counters.floods.get(),
            "foreign": counters.foreign.get(), "malformed": counters.malformed.get(),
            "oversized": counters.oversized.get(), "slow": counters.slow.get(),
            "retries": counters.retries.get(), "unavailable": counters.unavailable.get(),
            "killed": 0,
        },
        "log": {"events": counters.done.get(), "bytes": 0, "syncs": 0},
        "arena": {"chunks": 0, "epochs": 0, "blocks": 0},
        "process": process::usage(),
    }))
}
