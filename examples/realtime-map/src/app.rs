//! The whole map as one value: start it with its settings, ask where it listens, shut it down.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use althing::{Node, ShutdownReport, Start};
use anyhow::Context;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::broker;
use crate::chaos;
use crate::city::City;
use crate::feed::{Feed, FeedStatus, POSITIONS};
use crate::geofence::Geofence;
use crate::http::{self, App};
use crate::mqtt_url::MqttUrl;
use crate::organization::Organization;
use crate::overview::{OVERVIEW_KEY, Overviewer};
use crate::simulator;
use crate::store::Store;
use crate::vehicle::{self, Vehicle};
use crate::world::World;

/// Time for vehicles to be stored at the end.
const SHUTDOWN_MAX: Duration = Duration::from_secs(20);
/// The broker inside needs milliseconds to take our subscription.
const FEED_STANDS_MAX: Duration = Duration::from_secs(10);
const STORE_FILE: &str = "vehicles.sqlite";

/// Where positions come from.
#[derive(Clone, Debug)]
pub enum Broker {
    /// A broker in this process, on a loopback port (0: any), with so many simulated vehicles.
    Embedded {
        /// Port.
        port: u16,
        /// Vehicles.
        vehicles: usize,
    },
    /// A broker elsewhere.
    External(MqttUrl),
}

/// Everything that can be chosen.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to serve HTTP; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where positions come from.
    pub broker: Broker,
    /// Topic filters, one connection each; empty means all positions over one.
    pub filters: Vec<String>,
    /// Directory of the vehicle store.
    pub data: PathBuf,
    /// Silence after which a vehicle goes to sleep.
    pub idle: Duration,
    /// The city to draw and to drive in.
    pub city: City,
    /// Kill an actor this often.
    pub chaos: Option<Duration>,
}

/// A running map.
pub struct Map {
    node: Node,
    world: Arc<World>,
    http: SocketAddr,
    broker: MqttUrl,
    tasks: Vec<JoinHandle<()>>,
}

impl Map {
    /// Starts everything. Once it returns, the feed hears the broker inside: whoever publishes
    /// there is heard from the first message. A broker forwards what has a subscriber when it
    /// comes, and forgets the rest without a word.
    ///
    /// # Errors
    /// Says which port, file or broker was the trouble. A broker elsewhere that is not there is
    /// none: it is waited for.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let Settings { listen, broker, filters, data, idle, city, chaos } = settings;
        let listener =
            TcpListener::bind(listen).await.with_context(|| format!("HTTP on {listen}"))?;
        std::fs::create_dir_all(&data).with_context(|| format!("directory {}", data.display()))?;
        let store = Store::open(&data.join(STORE_FILE))?;
        let world = Arc::new(World::new(city, store, idle)?);
        let (broker, simulated) = match broker {
            Broker::External(url) => (url, None),
            Broker::Embedded { port, vehicles } => {
                let address = spawn_blocking(move || broker::start(port)).await??;
                let (host, port) = (address.ip().to_string(), address.port());
                (MqttUrl { host, port, credentials: None }, Some(vehicles))
            }
        };
        let filters = if filters.is_empty() { vec![POSITIONS.to_owned()] } else { filters };
        let status = Arc::new(FeedStatus::new(broker.to_string(), filters.len()));
        let node = node(&world, &status);
        node.get::<Overviewer>(OVERVIEW_KEY).activate();

        let mut tasks = Vec::new();
        for filter in filters {
            let feed = Feed {
                node: node.clone(),
                world: world.clone(),
                status: status.clone(),
                broker: broker.clone(),
                filter,
            };
            tasks.push(tokio::spawn(feed.run()));
        }
        if let Some(vehicles) = simulated {
            let stands = timeout(FEED_STANDS_MAX, status.connected()).await;
            stands.with_context(|| format!("no subscription at the broker inside, {broker}"))?;
            if vehicles > 0 {
                let city = Arc::new(world.city.clone());
                let (host, port) = (broker.host.clone(), broker.port);
                tasks.push(tokio::spawn(simulator::run(city, vehicles, host, port)));
            }
        }
        if let Some(every) = chaos {
            tasks.push(tokio::spawn(chaos::run(node.clone(), world.clone(), every)));
        }
        let http = listener.local_addr()?;
        let app = App { node: node.clone(), world: world.clone(), feed: status };
        tasks.push(tokio::spawn(http::serve(listener, Arc::new(app))));
        Ok(Self { node, world, http, broker, tasks })
    }

    /// Where HTTP is served.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where positions come from.
    pub fn broker(&self) -> &MqttUrl {
        &self.broker
    }

    /// Takes no more positions and requests, stores every vehicle, and closes the store.
    pub async fn shutdown(self) -> ShutdownReport {
        for task in &self.tasks {
            task.abort();
        }
        let report = self.node.shutdown(SHUTDOWN_MAX).await;
        self.world.store.close().await;
        report
    }
}

fn node(world: &Arc<World>, status: &Arc<FeedStatus>) -> Node {
    let vehicles = world.clone();
    let organizations = world.clone();
    let geofences = world.clone();
    let (overview, feed) = (world.clone(), status.clone());
    Node::builder("map")
        .options::<Vehicle>(vehicle::options(world.idle))
        .actor(move |start: Start<Vehicle>| Vehicle::wake(start, vehicles.clone()))
        .actor(move |start: Start<Organization>| Organization::open(start, organizations.clone()))
        .actor(move |start: Start<Geofence>| Geofence::open(start, geofences.clone()))
        .actor(move |start: Start<Overviewer>| {
            Overviewer::open(start, overview.clone(), feed.clone())
        })
        .build()
}
