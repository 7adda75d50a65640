//! The command line: serve the map, or load one that runs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use mimalloc::MiMalloc;
use realtime_map::{Broker, City, Load, LoadReport, Map, MqttUrl, Settings, run_load};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The broker inside opens a span at error level for every message and writes its topic into it,
/// which is a third of its work.
const LOG: &str = "info,rumqttd=off";

/// Vehicles on a live map: MQTT in, one actor per vehicle, HTTP and server-sent events out.
///
/// Without arguments: a broker inside, 2,000 simulated vehicles, the map on http://127.0.0.1:8090.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the map (the default)
    Serve(Serve),
    /// Publishes positions to the broker of a map that runs, and watches how soon they come out
    Load(LoadArgs),
}

#[derive(Args)]
struct Serve {
    /// Address to serve HTTP on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), env = "MAP_HOST")]
    host: IpAddr,
    /// Port to serve HTTP on; 0 takes a free one
    #[arg(long, default_value_t = 8090, env = "MAP_PORT")]
    port: u16,
    /// A broker elsewhere, as mqtt://user:password@host:1883; without it one runs inside
    #[arg(long, env = "MAP_MQTT")]
    mqtt: Option<MqttUrl>,
    /// Port of the broker inside, on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0, conflicts_with = "mqtt")]
    broker_port: u16,
    /// Vehicles to simulate with the broker inside
    #[arg(long, default_value_t = 2_000, conflicts_with = "mqtt")]
    vehicles: usize,
    /// A topic filter, with a connection of its own; may be repeated. Filters must not overlap
    #[arg(long)]
    subscribe: Vec<String>,
    /// Directory for what vehicles remember
    #[arg(long, default_value = "data/realtime-map", env = "MAP_DATA")]
    data: PathBuf,
    /// Seconds of silence after which a vehicle goes to sleep
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
    /// Another city, in the form of data/city.json
    #[arg(long)]
    city: Option<PathBuf>,
    /// Kill a random actor this often, as 3s or 500ms
    #[arg(long, value_parser = duration)]
    chaos: Option<Duration>,
}

#[derive(Args)]
struct LoadArgs {
    /// The broker, as mqtt://127.0.0.1:1883
    #[arg(long)]
    mqtt: MqttUrl,
    /// Different vehicles
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=99_000_000))]
    vehicles: u32,
    /// Positions per second, all together
    #[arg(long, default_value_t = 50_000)]
    rate: u32,
    /// How long
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// MQTT connections
    #[arg(long, default_value_t = 4)]
    connections: u32,
    /// HTTP address of the map, as 127.0.0.1:8090, to watch its event stream
    #[arg(long)]
    watch: Option<SocketAddr>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    // The kernel clears two megabytes in the middle of a message when it makes a huge page; on a
    // virtual machine, where the host has to find them first, that takes tens of milliseconds.
    // Kernels that cannot leave it off lose nothing but that.
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("realtime-map: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match cli.command {
        None => runtime.block_on(serve(cli.serve)),
        Some(Command::Serve(arguments)) => runtime.block_on(serve(arguments)),
        Some(Command::Load(arguments)) => runtime.block_on(load(arguments)),
    }
}

async fn serve(arguments: Serve) -> anyhow::Result<()> {
    let city = match &arguments.city {
        None => City::thingvik(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("city file {}", path.display()))?;
            City::parse(text).with_context(|| path.display().to_string())?
        }
    };
    let broker = match arguments.mqtt {
        Some(url) => Broker::External(url),
        None => Broker::Embedded { port: arguments.broker_port, vehicles: arguments.vehicles },
    };
    let map = Map::start(Settings {
        listen: SocketAddr::new(arguments.host, arguments.port),
        broker,
        filters: arguments.subscribe,
        data: arguments.data,
        idle: Duration::from_secs(arguments.idle),
        city,
        chaos: arguments.chaos,
    })
    .await?;
    // Others read these two lines: tests, and the benchmark.
    println!("map on http://{}", map.http());
    println!("broker on {}", map.broker());
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    let report = map.shutdown().await;
    tracing::info!(stopped = report.stopped, killed = report.killed.len(), "shut down");
    Ok(())
}

async fn load(arguments: LoadArgs) -> anyhow::Result<()> {
    let report = run_load(Load {
        broker: arguments.mqtt,
        vehicles: arguments.vehicles,
        rate: arguments.rate,
        seconds: arguments.seconds,
        connections: arguments.connections,
        watch: arguments.watch,
    })
    .await?;
    if arguments.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print_table(&report);
    }
    Ok(())
}

fn print_table(report: &LoadReport) {
    println!("published      {:>10}  positions in {:.1} s", report.published, report.seconds);
    println!("rate           {:>10.0}  positions/s", report.rate);
    if report.watched > 0 {
        println!("seen           {:>10}  positions in the event stream", report.watched);
        println!("latency p50    {:>10}  ms from being due to the stream", report.p50_ms);
        println!("latency p99    {:>10}  ms", report.p99_ms);
        println!("latency p99.9  {:>10}  ms", report.p999_ms);
        println!("latency max    {:>10}  ms", report.max_ms);
    }
}

/// `3s` or `500ms`.
fn duration(text: &str) -> anyhow::Result<Duration> {
    let (number, unit_ms) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').context("a duration ends in s or ms")?, 1_000),
    };
    let number: u64 = number.parse().with_context(|| format!("{text} is no duration"))?;
    if number == 0 {
        bail!("a duration is longer than nothing");
    }
    Ok(Duration::from_millis(number * unit_ms))
}
