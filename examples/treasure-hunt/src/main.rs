//! `treasure-hunt`: serve a world, play it with bots, recount its log.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use treasure_hunt::journal::LOG_NAME;
use treasure_hunt::nodes::{self, NodeServer};
use treasure_hunt::{load, recount, serve};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A treasure hunt for thousands of players, built on althing.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a world; open the printed address in a browser to watch and play
    Serve(Serve),
    /// Play with bots over WebSocket, then check every answer against the log
    Load(Load),
    /// Count an event log again, trusting nothing but the log
    Recount(RecountOf),
    /// Serve a world as one of several nodes that share a PostgreSQL
    Node(NodeOf),
    /// Run several nodes of one world on this machine, each a process
    Cluster(ClusterOf),
}

#[derive(Args)]
struct Serve {
    /// Directory of the event log; made if missing
    #[arg(long, default_value = "treasure-hunt-data", env = "HUNT_DATA")]
    data: PathBuf,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7777", env = "HUNT_ADDRESS")]
    address: SocketAddr,
    /// Everything about the ground follows from it; a log belongs to one seed
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Kill a tenth of all players and regions, at random moments, in each such period (3s, 500ms)
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    chaos: Option<Duration>,
    /// Threads of the runtime; one per core when absent
    #[arg(long)]
    threads: Option<usize>,
}

#[derive(Args)]
struct Load {
    /// Address of the server
    #[arg(long, default_value = "127.0.0.1:7777", env = "HUNT_ADDRESS")]
    address: SocketAddr,
    /// Players
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    players: u32,
    /// Players that share one socket; by default one each, but no more than 3,000 sockets
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    players_per_socket: Option<u32>,
    /// Seconds to play
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Acts of each player in a second
    #[arg(long, default_value_t = 10.0)]
    rate: f64,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct RecountOf {
    /// Directory of the event log
    #[arg(long, default_value = "treasure-hunt-data", env = "HUNT_DATA")]
    data: PathBuf,
    /// The database of a world on several nodes, instead of a directory: postgres://…
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct NodeOf {
    /// Name of the node; no two have one
    #[arg(long)]
    name: String,
    /// The database that all nodes share: postgres://…
    #[arg(long, value_name = "URL", env = "HUNT_STORE")]
    store: String,
    /// Address to listen on for clients; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7777", env = "HUNT_ADDRESS")]
    address: SocketAddr,
    /// Address to listen on for other nodes; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    peers: SocketAddr,
    /// Everything about the ground follows from it; all nodes have the same
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// How long a silent node counts as alive
    #[arg(long, value_name = "PERIOD", value_parser = period, default_value = "5s")]
    lease: Duration,
    /// Directory of certificates, as `folkmoot cluster init DIR --cluster hunt --node NAME` makes
    /// them; without it nodes talk in the clear
    #[arg(long, value_name = "DIR")]
    certificates: Option<PathBuf>,
}

#[derive(Args)]
struct ClusterOf {
    /// How many nodes
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    nodes: u16,
    /// Address of the first one; the others take the ports after it
    #[arg(long, default_value = "127.0.0.1:7777", env = "HUNT_ADDRESS")]
    address: SocketAddr,
    /// A database to use; without it a PostgreSQL of this machine is started, which ends with all
    #[arg(long, value_name = "URL", env = "HUNT_STORE")]
    store: Option<String>,
    /// Everything about the ground follows from it
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// Sockets opened unless told otherwise: each costs a descriptor in both processes.
const SOCKETS_DEFAULT: u32 = 3_000;

fn main() -> ExitCode {
    // The kernel clears two megabytes in the middle of a message when it makes a huge page; on a
    // virtual machine, where the host has to find them first, that takes tens of milliseconds.
    // Kernels that cannot leave it off lose nothing but that.
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let outcome = match Cli::parse().command {
        Command::Serve(options) => serve_world(options),
        Command::Load(options) => play(&options),
        Command::Recount(options) => count_again(&options),
        Command::Node(options) => serve_node(options),
        Command::Cluster(options) => serve_cluster(options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("treasure-hunt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve_world(options: Serve) -> Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = options.threads {
        builder.worker_threads(threads.max(1));
    }
    let runtime = builder.enable_all().build().context("starting the runtime")?;
    runtime.block_on(async {
        let Serve { data, address, seed, chaos, .. } = options;
        let server = serve::Server::start(serve::Options { data, address, seed, chaos }).await?;
        println!("treasure hunt: open http://{}", server.address);
        server.run(stop_signal()).await
    })
}

fn serve_node(options: NodeOf) -> Result<()> {
    let NodeOf { name, store, address, peers, seed, lease, certificates } = options;
    let options = nodes::Options { name, address, store, seed, peers, lease, certificates };
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    runtime.block_on(async {
        let name = options.name.clone();
        let server = NodeServer::start(options).await?;
        println!("treasure hunt, {name}: open http://{}", server.address);
        server.run(stop_signal()).await
    })
}

fn serve_cluster(options: ClusterOf) -> Result<()> {
    let ClusterOf { nodes, address, store, seed } = options;
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    runtime.block_on(nodes::Cluster { nodes, address, store, seed }.run(stop_signal()))
}

/// Resolves when somebody asks the process to stop.
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

fn play(options: &Load) -> Result<()> {
    if !(0.01..=1_000.0).contains(&options.rate) {
        bail!("--rate {} is not between 0.01 and 1000", options.rate);
    }
    if !(0.1..=86_400.0).contains(&options.seconds) {
        bail!("--seconds {} is not between 0.1 and 86400", options.seconds);
    }
    let shared = options.players.div_ceil(SOCKETS_DEFAULT);
    let plan = load::Options {
        address: options.address,
        players: options.players,
        players_per_socket: options.players_per_socket.unwrap_or(shared),
        rate: options.rate,
        duration: Duration::from_secs_f64(options.seconds),
    };
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    let report = runtime.block_on(load::play(plan))?;
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report}");
    }
    if !report.verdict.is_good() || report.errors > 0 {
        bail!("the run was not clean");
    }
    Ok(())
}

fn count_again(options: &RecountOf) -> Result<()> {
    let recount = match &options.store {
        Some(store) => {
            let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
            runtime.block_on(nodes::recount(store))?
        }
        None => {
            let path = options.data.join(LOG_NAME);
            recount::of_file(&path).with_context(|| format!("cannot recount {}", path.display()))?
        }
    };
    if options.json {
        println!("{}", serde_json::to_string(&recount)?);
    } else {
        println!("events      {}", recount.events);
        println!("players     {} ever, {} in the world", recount.players.len(), recount.present);
        let score: u64 = recount.players.values().map(|player| u64::from(player.score)).sum();
        println!("points      {} by events, {score} by players", recount.score);
        println!("violations  {}", recount.violations);
        recount.violations_told.iter().for_each(|told| println!("  {told}"));
    }
    if recount.violations > 0 {
        bail!("the log does not follow the rules");
    }
    Ok(())
}

/// A number with a unit: `3s`, `500ms`, `2m`.
fn period(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()]
        .parse()
        .map_err(|_| "expected a number with a unit, like 3s or 500ms".to_owned())?;
    let period = match unit {
        "ms" => Duration::from_millis(number),
        "s" | "" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.saturating_mul(60)),
        unit => return Err(format!("the unit {unit} is none of ms, s, m")),
    };
    if period < Duration::from_millis(30) {
        return Err("a period is 30ms or longer".to_owned());
    }
    Ok(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_units_and_a_least_length() {
        assert_eq!(period("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(period("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "3h", "1ms", "-1s"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
