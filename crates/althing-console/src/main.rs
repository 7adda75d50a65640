//! `althing-console`: shows the console of a node in the terminal, asking it once a second over
//! HTTP; or serves a page with the nodes of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use althing_cluster::{Client, ClientConfig, Tls};
use althing_console::{CLUSTER_PATH, View, cluster_router, terminal};
use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};

const REFRESH: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How often the keyboard is looked at: quick enough to feel immediate.
const KEYS: Duration = Duration::from_millis(50);

/// Shows who is busy, who is behind and what is slow on an Althing node.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true, arg_required_else_help = true)]
struct Cli {
    /// Where the console's JSON is, such as http://127.0.0.1:8000/console/api
    #[arg(default_value = "")]
    url: String,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Serves a page with the nodes of a cluster at /console/cluster
    Cluster(Cluster),
}

#[derive(Args)]
struct Cluster {
    /// Where the page is served; there is no authentication
    #[arg(long, default_value = "127.0.0.1:7600")]
    listen: SocketAddr,
    /// Name of the cluster
    #[arg(long, env = "ALTHING_CLUSTER")]
    cluster: String,
    /// Where some of its nodes are, as host:port, parted by commas
    #[arg(long, env = "ALTHING_AT", value_delimiter = ',', required = true)]
    at: Vec<String>,
    /// Directory with `ca.pem`, and a certificate and a key as `<NAME>.pem` and `<NAME>.key`
    #[arg(long, env = "ALTHING_TLS", requires = "name")]
    tls: Option<PathBuf>,
    /// Whose certificate it is, such as ada.look.client
    #[arg(long = "as", id = "name", env = "ALTHING_AS")]
    name: Option<String>,
    /// Talk without encryption to a cluster that has none
    #[arg(long, conflicts_with = "tls", required_unless_present = "tls")]
    insecure_plaintext: bool,
}

fn main() -> Result<()> {
    let Cli { url, task } = Cli::parse();
    if let Some(Task::Cluster(cluster)) = task {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        return runtime.block_on(serve(cluster));
    }
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(ANSWER_MAX)).build().into();
    // The first answer is awaited in the open, so that a wrong address is told plainly.
    let first = fetch(&agent, &url)?;
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        // Ends with the receiver, when the terminal is closed.
        while tx.send(fetch(&agent, &url)).is_ok() {
            thread::sleep(REFRESH);
        }
    });
    ratatui::run(|terminal| show(terminal, first, &rx))
}

async fn serve(cluster: Cluster) -> Result<()> {
    let tls = match (&cluster.tls, &cluster.name) {
        (Some(directory), Some(name)) => Tls::from_directory(directory, name),
        _ => Tls::insecure_plaintext(),
    };
    let client = Client::connect(ClientConfig::new(cluster.cluster, cluster.at, tls)).await?;
    let listener = tokio::net::TcpListener::bind(cluster.listen).await?;
    println!("http://{}{CLUSTER_PATH}", listener.local_addr()?);
    Ok(axum::serve(listener, cluster_router::<()>(client)).await?)
}

fn fetch(agent: &ureq::Agent, url: &str) -> Result<View> {
    let mut answer = agent.get(url).call().with_context(|| format!("no answer from {url}"))?;
    answer.body_mut().read_json().with_context(|| format!("{url} is not a console's JSON"))
}

fn show(
    terminal: &mut DefaultTerminal,
    first: View,
    views: &mpsc::Receiver<Result<View>>,
) -> Result<()> {
    let mut view = first;
    let mut trouble = None;
    loop {
        for answer in views.try_iter() {
            match answer {
                Ok(fresh) => (view, trouble) = (fresh, None),
                Err(error) => trouble = Some(format!("{error:#}")),
            }
        }
        terminal.draw(|frame| terminal::draw(frame, &view, trouble.as_deref()))?;
        if event::poll(KEYS)? && quits(&event::read()?) {
            return Ok(());
        }
    }
}

fn quits(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}
