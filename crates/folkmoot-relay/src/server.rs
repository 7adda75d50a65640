//! What one relay consists of, and its start and stop.

mod several;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use althing::{AskError, Node, Start};
use althing_cluster::Member;
use axum::extract::{DefaultBodyLimit, Extension, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Router, middleware};
use bytes::Bytes;
use folkmoot_gateway::{
    Door, Doorman, EventQuery, Guest, Handshake, Ids, Room, SocketQuery, Spoken,
    accept_until_stopped, look_until_stopped, raise_descriptors,
};
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::rpc::RpcError;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::api;
use crate::api::grpc::Grpc;
use crate::api::keys::Keys;
use crate::cdc::Cdc;
use crate::channels::{Channels, Hub, Refused, SHARDS};
use crate::durable::{DiskError, Ledger};
use crate::emulation;
use crate::inner;
#[cfg(feature = "kafka")]
use crate::kafka::Kafka;
use crate::metrics::Metrics;
use crate::nodes::NodeError;
use crate::outbox::Outbox;
use crate::owners::Owners;
use crate::people::People;
use crate::proxy::{Proxies, Trust};
use crate::rules::Rules;
use crate::session::{Calls, Sockets};
use crate::settings::{
    ClientSettings, ConsumerKind, ConsumerSettings, ErrorMode, Listening, Settings, SettingsError,
};
use crate::token::Verifier;
use crate::unidirectional;

/// Where clients open their sockets, as with Centrifugo.
const SOCKET: &str = "/connection/websocket";
/// The largest request of a backend: a hundred thousand channels with names of some length.
const API_BODY_BYTES_MAX: usize = 32 << 20;
/// A frame as a string in JSON, whose every character may be escaped.
const EMULATION_BODY_BYTES_MAX: usize = 8 * FRAME_BYTES_MAX;
/// Until the headers of a request must be there.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// From one address that is not this machine.
const CONNECTIONS_PER_ADDRESS_MAX: usize = 10_000;
/// How long actors and connections may take to end.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a node of several may take to hand its channels to the others.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Why a relay did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings contradict themselves, or a key is none.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// It does not become one of its cluster's nodes.
    #[error("{0}")]
    Node(#[from] NodeError),
    /// The histories on disk cannot be used.
    #[error("the histories: {0}")]
    Disk(#[from] DiskError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As given.
        address: SocketAddr,
        /// The system's reason, such as a port in use.
        source: std::io::Error,
    },
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) client: ClientSettings,
    pub(crate) listening: Listening,
    pub(crate) rules: Arc<Rules>,
    pub(crate) connection_tokens: Verifier,
    pub(crate) subscription_tokens: Verifier,
    pub(crate) api_keys: Keys,
    pub(crate) grpc_keys: Keys,
    /// Of the API over HTTP.
    pub(crate) error_mode: ErrorMode,
    /// Opens the metrics from other machines; empty: nothing does.
    pub(crate) metrics_token: String,
    pub(crate) metrics: Metrics,
    pub(crate) proxies: Proxies,
    pub(crate) rpc: Calls,
    pub(crate) hub: Hub,
    pub(crate) people: Arc<People>,
    pub(crate) node: Node,
    pub(crate) started: Instant,
    pub(crate) ids: Ids,
    pub(crate) emulation: emulation::Sessions,
    /// What is kept on disk beside the channels; `None`: nothing is.
    pub(crate) ledger: Option<Ledger>,
    stopping: watch::Sender<bool>,
}

/// A relay that is up.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    is_encrypted: bool,
    server: Arc<Server>,
    accepting: JoinHandle<()>,
    /// Where backends call by gRPC, if they may.
    grpc: Option<(SocketAddr, JoinHandle<()>)>,
    /// What reads rows of backends.
    consuming: JoinSet<()>,
}

/// Listens and serves.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub async fn start(settings: Settings, at: SocketAddr) -> Result<Relay, StartError> {
    start_with(settings, at, None).await
}

/// Listens and serves, as one of several nodes with the same channels: this member, which has not
/// joined its cluster yet. Channels and users are reached through any of them.
///
/// # Errors
/// [`StartError`]; settings that several nodes cannot keep are among them. Nothing runs then.
pub async fn start_as_node(
    settings: Settings,
    at: SocketAddr,
    member: Arc<Member>,
) -> Result<Relay, StartError> {
    start_with(settings, at, Some(member)).await
}

async fn start_with(
    settings: Settings,
    at: SocketAddr,
    member: Option<Arc<Member>>,
) -> Result<Relay, StartError> {
    let listen = |source| StartError::Listen { address: at, source };
    let listener = folkmoot_gateway::listen(at).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let consumers = settings.consumers.iter().filter(|one| one.enabled).cloned();
    let consumers: Result<Vec<_>, _> = consumers.map(Consumer::new).collect();
    let consumers = consumers?;
    let tls = settings.http_server.tls.open("http_server.tls", Spoken::Http1).await?.map(Arc::new);
    let grpc = Grpc::bind(settings.grpc_api.clone(), address).await?;
    let server = Arc::new(Server::new(settings, member).await?);
    if let Some(nodes) = server.hub.nodes() {
        several::join(&server, nodes).await?;
    }
    let mut consuming = JoinSet::new();
    for consumer in consumers {
        match consumer {
            Consumer::Outbox(outbox) => outbox.start(&server, &mut consuming),
            Consumer::Cdc(cdc) => cdc.start(&server, &mut consuming),
            #[cfg(feature = "kafka")]
            Consumer::Kafka(kafka) => kafka.start(&server, &mut consuming),
        }
    }
    let possible = raise_descriptors();
    let doorman = Doorman::new(Room {
        connections_max: possible,
        per_address_max: CONNECTIONS_PER_ADDRESS_MAX,
        unlimited: vec!["127.0.0.0/8".parse().expect("a network"), "::1".parse().expect("one")],
    });
    let stopping = server.stopping();
    if let Some(tls) = &tls {
        tokio::spawn(look_until_stopped(tls.clone(), server.stopping()));
    }
    let is_encrypted = tls.is_some();
    let door = Door { doorman, header_timeout: HEADER_TIMEOUT, tls, stopping };
    let accepting = tokio::spawn(accept_until_stopped(door, listener, routes(server.clone())));
    let grpc = grpc.map(|grpc| (grpc.address(), grpc.start(server.clone())));
    Ok(Relay { address, is_encrypted, server, accepting, grpc, consuming })
}

/// Where publications come from beside the API.
enum Consumer {
    Outbox(Outbox),
    Cdc(Cdc),
    #[cfg(feature = "kafka")]
    Kafka(Kafka),
}

impl Consumer {
    fn new(settings: ConsumerSettings) -> Result<Self, SettingsError> {
        match settings.kind {
            ConsumerKind::Postgresql => Outbox::new(settings).map(Self::Outbox),
            ConsumerKind::PostgresqlCdc => Cdc::new(settings).map(Self::Cdc),
            #[cfg(feature = "kafka")]
            ConsumerKind::Kafka => Kafka::new(settings).map(Self::Kafka),
            #[cfg(not(feature = "kafka"))]
            ConsumerKind::Kafka => {
                let text = "type kafka needs a Folkmoot that was built with `--features kafka`";
                let text = format!("consumer `{}`: {text}", settings.name);
                Err(SettingsError::Invalid(text))
            }
        }
    }
}

impl Relay {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    #[cfg(test)]
    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// By what its address is called: `http`, or `https` with a certificate.
    pub fn scheme(&self) -> &'static str {
        if self.is_encrypted { "https" } else { "http" }
    }

    /// Where it takes calls by gRPC; `None`: it takes none.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc.as_ref().map(|(address, _)| *address)
    }

    /// Resolves when the other nodes have given this one up, so that it serves nobody any more; of a
    /// relay that is alone, never.
    pub async fn evicted(&self) {
        match self.server.hub.nodes() {
            None => std::future::pending().await,
            Some(nodes) => nodes.evicted().await,
        }
    }

    /// Tells all clients to come back later, and ends.
    pub async fn stop(mut self) {
        self.server.stopping.send_replace(true);
        let mut grpc = self.grpc.map(|(_, calls)| calls);
        let calls = async {
            if let Some(calls) = &mut grpc {
                // A panic of it is told already.
                let _ = calls.await;
            }
        };
        // Rows that are being published are finished while their channels are still here.
        let consumed = async { while self.consuming.join_next().await.is_some() {} };
        let ended = async { tokio::join!(self.accepting, calls, consumed) };
        if tokio::time::timeout(GOODBYE_TIMEOUT, ended).await.is_err() {
            tracing::warn!("some connections did not end in time");
        }
        if let Some(calls) = grpc {
            // A call that never comes whole would keep its connection open for ever.
            calls.abort();
        }
        // What still reads rows then has nowhere to publish them.
        self.consuming.abort_all();
        match self.server.hub.nodes() {
            None => drop(self.server.node.shutdown(GOODBYE_TIMEOUT).await),
            Some(nodes) => nodes.leave(LEAVE_TIMEOUT).await,
        }
        if let Some(ledger) = &self.server.ledger {
            ledger.disk.close().await;
        }
    }
}

impl Server {
    async fn new(settings: Settings, member: Option<Arc<Member>>) -> Result<Self, StartError> {
        settings.check()?;
        let trust = Trust::new(settings.tls.ca.clone());
        let (proxies, rpc) = (Proxies::new(&settings, &trust)?, Calls::new(&settings.rpc));
        let Settings { uni_websocket, uni_http_stream, uni_sse, .. } = settings;
        let listening = Listening { uni_websocket, uni_http_stream, uni_sse };
        let Settings { client, channel, http_api, grpc_api, prometheus, .. } = settings;
        let rules = Arc::new(Rules::new(&channel)?);
        let api_keys = Keys::new("http_api", &http_api.key, &http_api.keys, &rules)?;
        let grpc_keys = Keys::new("grpc_api", &grpc_api.key, &grpc_api.keys, &rules)?;
        if let Some(channel) = client.subscribe_to_user_personal_channel.of("user") {
            rules.of(&channel).map_err(|error| {
                let text = format!("client.subscribe_to_user_personal_channel: {}", error.message);
                SettingsError::Invalid(text)
            })?;
        }
        let (ledger, found) = Ledger::open(channel.history_directory).await?;
        let disk = ledger.as_ref().map(|ledger| (ledger.disk.clone(), ledger.rows.clone()));
        let people = Arc::new(People::default());
        let owners = Arc::new(Owners::new(people.clone(), rules.clone(), disk));
        let of = owners.clone();
        let begin = move |start: Start<Channels>| {
            let owners = of.clone();
            async move { owners.begin(start).await }
        };
        let node = Node::builder("folkmoot-relay").actor(begin);
        let (node, hub) = match member {
            None => {
                let node = node.build();
                let hub = Hub::new(&node);
                let restored = hub.restore(rules.kept(found)).await;
                restored.expect("owners of channels that nobody knows yet answer");
                if let Some(ledger) = &ledger {
                    ledger.disk.restored(SHARDS);
                }
                (node, hub)
            }
            Some(member) => {
                several::shareable(&rules, &client)?;
                several::distinct(&settings.consumers)?;
                if let Some(ledger) = &ledger {
                    // No channel is durable.
                    ledger.disk.restored(0);
                }
                several::node_of(node, &owners, member)?
            }
        };
        let subscriptions = client.subscription_token.as_ref().unwrap_or(&client.token);
        Ok(Self {
            rules,
            connection_tokens: Verifier::new(&client.token, &trust)?,
            subscription_tokens: Verifier::new(subscriptions, &trust)?,
            client,
            listening,
            api_keys,
            grpc_keys,
            error_mode: http_api.error_mode,
            metrics_token: prometheus.token,
            metrics: Metrics::default(),
            proxies,
            rpc,
            hub,
            people,
            emulation: emulation::Sessions::on(node.incarnation()),
            node,
            started: Instant::now(),
            ids: Ids::default(),
            ledger,
            stopping: watch::Sender::new(false),
        })
    }

    /// Turns true when the server begins to stop.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Whether a page may open a socket. Those over HTTP the layer of origins judges.
    pub(crate) fn allows(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let text = "pages of this origin may not connect; see client.allowed_origins";
        let is_allowed = folkmoot_gateway::is_allowed(headers, &self.client.allowed_origins);
        if is_allowed { Ok(()) } else { Err((StatusCode::FORBIDDEN, text)) }
    }

    /// How each connection is kept.
    pub(crate) fn sockets(&self) -> folkmoot_gateway::Settings {
        let client = &self.client;
        folkmoot_gateway::Settings {
            ping: client.ping_interval.0,
            pong_timeout: client.pong_timeout.0,
            connect_timeout: client.stale_close_delay.0,
            outgoing_queue_bytes_max: client.queue_max_size,
        }
    }
}

fn routes(server: Arc<Server>) -> Router {
    let cors = middleware::from_fn_with_state(server.clone(), cors);
    let transports = Router::new()
        .route("/connection/http_stream", post(http_stream).options(no_content))
        .route("/connection/sse", get(event_stream).options(no_content))
        .route("/emulation", post(emulation::emulation).options(no_content))
        .layer(DefaultBodyLimit::max(EMULATION_BODY_BYTES_MAX))
        .merge(unidirectional::over_http(&server))
        .layer(cors);
    Router::new()
        .merge(api::routes(&server).layer(DefaultBodyLimit::max(API_BODY_BYTES_MAX)))
        .merge(transports)
        .merge(unidirectional::socket(&server))
        .route(SOCKET, any(websocket))
        .route("/health", get(inner::health))
        .route("/metrics", get(inner::metrics))
        .layer(middleware::map_request_with_state(server.clone(), note_guest))
        .with_state(server)
}

/// The answer is in the layer of origins.
pub(crate) async fn no_content() -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn cors(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    folkmoot_gateway::cors(&server.client.allowed_origins, request, next).await
}

async fn http_stream(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    headers: HeaderMap,
    connect: Bytes,
) -> Response {
    let sockets = Sockets::new(server.clone(), "http_stream", &headers);
    let settings = server.sockets();
    folkmoot_gateway::http_stream(
        &headers,
        connect,
        visit,
        settings,
        sockets,
        server.emulation.here(),
    )
}

async fn event_stream(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> Response {
    let sockets = Sockets::new(server.clone(), "sse", &headers);
    let settings = server.sockets();
    folkmoot_gateway::event_stream(query, visit, settings, sockets, server.emulation.here())
}

/// Who knows a key is none of those that say nothing. A client has still to say who it is.
async fn note_guest(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    request: Request,
) -> Request {
    if api::is_known(&server, request.headers()) {
        visit.has_spoken();
    }
    request
}

async fn websocket(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    Query(query): Query<SocketQuery>,
    headers: HeaderMap,
    handshake: Handshake,
) -> Response {
    if let Err(refused) = server.allows(&headers) {
        return refused.into_response();
    }
    let settings = server.sockets();
    let sockets = Sockets::new(server, "websocket", &headers);
    folkmoot_gateway::upgrade(handshake, &query, visit, settings, sockets)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// How long until a moment in seconds since 1970; 0: it is over, or there is none.
pub(crate) fn seconds_left(at: i64) -> u32 {
    u32::try_from(at.saturating_sub(now_ms() / 1_000).max(0)).unwrap_or(u32::MAX)
}

/// Why something was not published; it may be tried again.
pub(crate) fn not_published(refused: &Refused) -> RpcError {
    match refused {
        Refused::Asking(error) => unavailable(error),
        Refused::Disk => ErrorCode::StoreUnavailable.into(),
        Refused::TooLarge(_) => RpcError::new(ErrorCode::TooLarge, refused.to_string()),
    }
}

/// A channel's owner does not answer, because there is too much to do or the server stops.
pub(crate) fn unavailable(error: &AskError) -> RpcError {
    match error {
        AskError::Overloaded(_) | AskError::Timeout(_) => ErrorCode::TooManyRequests.into(),
        error => {
            tracing::warn!(%error, "a channel does not answer");
            ErrorCode::Internal.into()
        }
    }
}
