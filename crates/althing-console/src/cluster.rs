//! The nodes of a cluster on one page: each one's state, its buckets, and what is being moved.
//!
//! It sees them as a client does, so it needs a certificate that says `look`, and shows also the
//! nodes that do not answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use althing_cluster::{Client, Neighbour, NodeStatus, Role};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::page::{POLICY, script, style};

/// Where the page of a cluster is; its JSON is at `/console/cluster/api`.
pub const CLUSTER_PATH: &str = "/console/cluster";

/// How long a node may take to say how it is; one that is there needs milliseconds.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// How old an answer may be: nodes are not asked more often than once a second, however many look.
const FRESH: Duration = Duration::from_millis(900);

/// A cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterView {
    /// The number of the view; it rises with each change.
    pub number: u64,
    /// All members, by name.
    pub nodes: Vec<NodeLine>,
    /// Why nothing is known; `nodes` is empty then.
    pub trouble: Option<String>,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeLine {
    /// Its name.
    pub name: String,
    /// What it says that it may do, or `unreachable`.
    pub state: String,
    /// Why it does not answer.
    pub trouble: Option<String>,
    /// Where other nodes reach it.
    pub address: String,
    /// How many of the 4,096 buckets it owns.
    pub buckets: usize,
    /// How many are on their way to it.
    pub arriving: usize,
    /// How many of its own are on their way to others.
    pub departing: usize,
    /// Whether it gives its buckets away.
    pub is_leaving: bool,
    /// Whether it is a guest, on which no actors of the cluster live.
    pub is_guest: bool,
    /// What it says of itself, such as `region=eu`, with commas between.
    pub labels: String,
    /// Actors that have their state in memory.
    pub actors: u64,
    /// Messages that wait in mailboxes.
    pub waiting: u64,
    /// Clients that are connected.
    pub clients: u64,
}

/// What looks at a cluster, for all who want to see it.
struct Lookout {
    client: Client,
    last: Mutex<Option<(Instant, ClusterView)>>,
}

/// Routes of the page of the cluster that `client` is connected to, to be merged into an
/// application's. Whoever reaches them sees the nodes' names and addresses.
pub fn cluster_router<S>(client: Client) -> Router<S> {
    let tables = include_str!("../page/tables.js");
    Router::new()
        .route(CLUSTER_PATH, get(document))
        .route("/console/cluster/api", get(api))
        .route("/console/cluster/cluster.js", get(script(include_str!("../page/cluster.js"))))
        .route("/console/cluster/tables.js", get(script(tables)))
        .route("/console/cluster/console.css", get(style))
        .with_state(Arc::new(Lookout { client, last: Mutex::new(None) }))
}

async fn document() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, include_str!("../page/cluster.html"))
}

async fn api(State(lookout): State<Arc<Lookout>>) -> impl IntoResponse {
    // Held while nodes are asked: who comes meanwhile gets the same answer.
    let mut last = lookout.last.lock().await;
    let fresh = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, view)| view.clone());
    let view = match fresh {
        Some(view) => view,
        None => {
            let view = look(&lookout.client).await;
            *last = Some((Instant::now(), view.clone()));
            view
        }
    };
    ([(CACHE_CONTROL, "no-store")], Json(view))
}

async fn look(client: &Client) -> ClusterView {
    let seen = timeout(ANSWER_MAX, client.view()).await;
    let view = match seen.map_err(|_| "it took too long".to_owned()) {
        Ok(Ok(view)) => view,
        Ok(Err(why)) => {
            return ClusterView { trouble: Some(why.to_string()), ..Default::default() };
        }
        Err(why) => return ClusterView { trouble: Some(why), ..Default::default() },
    };
    let nodes = view.members.into_iter().map(|node| async move {
        match timeout(ANSWER_MAX, client.status(&node.name)).await {
            Ok(Ok(status)) => line(node, Ok(&status)),
            Ok(Err(why)) => line(node, Err(why.to_string())),
            Err(_) => line(node, Err("it took too long".to_owned())),
        }
    });
    let mut nodes = join_all(nodes).await;
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    ClusterView { number: view.number, nodes, trouble: None }
}

fn line(node: Neighbour, status: Result<&NodeStatus, String>) -> NodeLine {
    let (said, trouble) = match status {
        Ok(status) => (Some(status), None),
        Err(why) => (None, Some(why)),
    };
    let state = said.map_or_else(|| "unreachable".to_owned(), |said| format!("{:?}", said.state));
    NodeLine {
        name: node.name,
        state: state.to_lowercase(),
        trouble,
        address: node.address,
        buckets: node.buckets,
        arriving: node.arriving,
        departing: node.departing,
        is_leaving: node.is_leaving,
        is_guest: node.role == Role::Guest,
        labels: node.labels.join(", "),
        actors: said.map_or(0, |said| said.live),
        waiting: said.map_or(0, |said| said.waiting),
        clients: said.map_or(0, |said| said.clients),
    }
}
