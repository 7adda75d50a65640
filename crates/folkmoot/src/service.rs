//! A running server: starts it, says where it listens, stops it without losing anything.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folkmoot_gateway::{Tls, TlsError, accept_until_stopped, look_until_stopped};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::attachment::{Attachments, remove_unshown_until_stopped, sweep_until_stopped};
use crate::config::Config;
use crate::nodes::{NodeError, Nodes};
use crate::pulse::{self, Reading};
use crate::search::{Index, Search};
use crate::server::{Beginning, Server};
use crate::settings::Settings;
use crate::setup::Setup;
use crate::storage::contract::{Administration, Files};
use crate::storage::{Lost, NodeName, OpenError, ReadError, Restored, Store, StoreOptions};
use crate::{backup, deletion, demo, http, retention};

/// How late a node takes over what was set on another one.
const SETTINGS_READ_EVERY: Duration = Duration::from_secs(5);

/// How long clients may take to read their close frame.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a server did not start. One line for whoever typed the command.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("{0}")]
    Store(#[from] OpenError),
    /// The directory of files in messages cannot be used.
    #[error("cannot use the attachment directory {path}: {source}")]
    Attachments {
        /// As configured, or within the data directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The database cannot be read.
    #[error("{0}")]
    Read(#[source] ReadError),
    /// The certificate or its key cannot be used.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// It cannot be one of several nodes.
    #[error("{0}")]
    Node(#[from] NodeError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// The system's reason, such as a port in use.
        source: std::io::Error,
    },
}

/// A server that is up.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    pub(crate) server: Arc<Server>,
    accepting: JoinHandle<()>,
}

/// Opens the data directory, listens and serves.
///
/// # Errors
/// [`StartError`]; nothing runs then, and the data directory is as it was.
pub async fn start(config: Config) -> Result<Running, StartError> {
    // First the address: a second server on it must not touch the data.
    let listener = folkmoot_gateway::listen(config.listen)
        .map_err(|source| StartError::Listen { address: config.listen, source })?;
    let address = listener
        .local_addr()
        .map_err(|source| StartError::Listen { address: config.listen, source })?;
    let tls = match config.tls.clone() {
        Some(files) => {
            let opened = tokio::task::spawn_blocking(move || Tls::open(files)).await;
            Some(opened.expect("reading two files does not panic")?)
        }
        None => None,
    };
    let restored = if config.restored { Restored::Yes } else { Restored::Unknown };
    let defaults = StoreOptions::new(&config.data);
    let segment_bytes = config.log_segment_bytes.unwrap_or(defaults.segment_bytes);
    let database = config.database.clone();
    let nodes = config.cluster.as_ref().map(Nodes::bind).transpose()?;
    let node = config
        .cluster
        .as_ref()
        .map(|cluster| NodeName { cluster: cluster.name.clone(), node: cluster.node.clone() });
    let options = StoreOptions { restored, segment_bytes, database, node, ..defaults };
    let heap_bytes = config.search_heap_bytes;
    let begun = config.clone();
    let (store, index) = tokio::task::spawn_blocking(move || {
        let store = Store::open(&options)?;
        backup::release(&begun);
        let index = heap_bytes.and_then(|bytes| open_index(&options.directory, &store, bytes));
        Ok::<_, OpenError>((store, index))
    })
    .await
    .expect("opening a store does not panic")?;
    let attachments = open_attachments(&config).await?;
    let setup = Setup::of(&store).await.map_err(StartError::Read)?;
    let settings = Settings::load(&store, config.registration).await;
    let settings = settings.map_err(StartError::Read)?;
    let beginning = Beginning { setup, settings, nodes };
    let server = Server::new(config, store, index, attachments, beginning);
    if let Some(tls) = tls {
        server.encrypt(tls);
    }
    if let Some(nodes) = server.nodes() {
        nodes.join().await?;
        follow_nodes(&server, nodes);
        follow_settings(&server);
    }
    Ok(serve(server, listener, address).await)
}

/// Without its index a server still chats.
fn open_index(data: &Path, store: &Store, heap_bytes: usize) -> Option<Index> {
    let index = Search::open(data, store, heap_bytes);
    index.inspect_err(|error| tracing::error!(%error, "there is no search")).ok()
}

async fn open_attachments(config: &Config) -> Result<Attachments, StartError> {
    let config = config.attachments.clone();
    let path = config.directory.clone();
    tokio::task::spawn_blocking(move || Attachments::open(&config))
        .await
        .expect("opening a directory does not panic")
        .map_err(|source| StartError::Attachments { path, source })
}

async fn serve(server: Arc<Server>, listener: TcpListener, address: SocketAddr) -> Running {
    if server.nodes().is_none() {
        give_up_uploads(&server).await;
    }
    tokio::spawn(sweep_until_stopped(server.clone()));
    tokio::spawn(remove_unshown_until_stopped(server.clone()));
    tokio::spawn(deletion::work_until_stopped(server.clone()));
    tokio::spawn(retention::work_until_stopped(server.clone()));
    if let Some(tls) = server.tls() {
        tokio::spawn(look_until_stopped(tls.clone(), server.stopping()));
    }
    keep_pulse(&server);
    // Before anybody can sign up, so that everybody is let into its rooms.
    if server.config.demo {
        demo::start(&server).await;
    }
    let routes = http::router(server.clone());
    let accepting = tokio::spawn(accept_until_stopped(server.door(), listener, routes));
    Running { address, server, accepting }
}

/// Before anybody can upload, so that it gives up only what an earlier run left behind. What another
/// node takes at this moment cannot be told from that, so with several nodes they expire.
async fn give_up_uploads(server: &Server) {
    if let Err(error) = server.files().cancel_unfinished_uploads().await {
        tracing::warn!(%error, "unfinished uploads are kept until they expire");
    }
}

/// Tells sessions of each change of the cluster, and looks for what a node has left undone.
fn follow_nodes(server: &Arc<Server>, nodes: &Arc<Nodes>) {
    let (server, nodes) = (server.clone(), nodes.clone());
    // For as long as there are connections.
    let (mut views, mut last) = (nodes.views(), server.goodbye().of_last());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                changed = views.changed() => if changed.is_err() { return },
                _ = last.wait_for(|stops| *stops) => return,
            }
            server.moves().publish(nodes.moved()).expect("nobody claims the topic of moves");
            server.deletions.wake();
            server.keeper.wake();
        }
    });
}

/// Takes over what administrators have set on other nodes.
fn follow_settings(server: &Arc<Server>) {
    let (server, mut stopping) = (server.clone(), server.stopping());
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = server.node().sleep(SETTINGS_READ_EVERY) => {}
                _ = stopping.changed() => return,
            }
            if let Err(error) = server.settings.read_again(server.administration()).await {
                tracing::debug!(%error, "the settings are as they were");
            }
        }
    });
}

/// Reads the counters every second until the server stops.
fn keep_pulse(server: &Arc<Server>) {
    let (server, mut stopping) = (server.clone(), server.stopping());
    tokio::spawn(async move {
        loop {
            server.pulse.push(Reading {
                at: server.now(),
                connections: *server.connections().borrow(),
                messages: server.metrics.messages_total(),
                appends: server.administration().append_times(),
            });
            tokio::select! {
                () = server.node().sleep(pulse::BEAT) => {}
                _ = stopping.changed() => return,
            }
        }
    });
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https` or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.server.tls().is_some() { "https" } else { "http" }
    }

    /// Resolves when the other nodes have given this one up; never on a server alone. It serves
    /// nobody any more, and has to be started again.
    pub async fn evicted(&self) {
        match self.server.nodes() {
            Some(nodes) => nodes.evicted().await,
            None => std::future::pending().await,
        }
    }

    /// Resolves when the store is no longer this server's, and says why. What it shows is what it
    /// knew then, and it takes nothing more.
    pub async fn lost(&self) -> Lost {
        self.server.lost().await
    }

    /// Where the first administrator is made, as long as there is none; a secret.
    pub fn setup_link(&self) -> Option<String> {
        let public_url = self.server.config.public_url.as_deref();
        self.server.setup.link(self.scheme(), self.address, public_url)
    }

    /// Waits until nothing is left of the rooms and accounts that were deleted before the call.
    pub async fn erased(&self) {
        self.server.deletions.done().await;
    }

    /// Waits until all messages are gone that were due before the call.
    pub async fn kept_to(&self) {
        self.server.keeper.done().await;
    }

    /// Says goodbye to every client, finishes what was begun, closes the store.
    pub async fn stop(self) {
        let Self { server, mut accepting, .. } = self;
        server.begin_stop();
        if let Some(nodes) = server.nodes().filter(|nodes| nodes.others() > 0) {
            let connections = *server.connections().borrow();
            tokio::select! {
                () = server.goodbye().say_in_turn(connections) => {}
                () = nodes.evicted() => {}
            }
        }
        server.goodbye().say();
        // Ends when the last connection has: sockets with their goodbye, requests with their
        // answer.
        if tokio::time::timeout(GOODBYE_TIMEOUT, &mut accepting).await.is_err() {
            let connections = *server.connections().borrow();
            tracing::warn!(connections, "some clients did not read on");
            accepting.abort();
        }
        server.close().await;
    }
}
