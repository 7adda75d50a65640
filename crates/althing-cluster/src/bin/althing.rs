//! `althing`: looks at a running cluster, finds actors, moves them, drains nodes.
//!
//! It is a client like any other, and may do what its certificate says. What it prints is one line
//! for each node or actor, with columns that spaces part; it fails with a line that says why.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use althing::ActorId;
use althing_cluster::{Client, ClientConfig, FoundActor, Neighbour, Role, Tls, View};
use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// Looks at an Althing cluster, and moves its actors.
#[derive(Parser)]
#[command(name = "althing", version)]
struct Line {
    #[command(flatten)]
    way: Way,
    #[command(subcommand)]
    task: Task,
}

/// How the cluster is found.
#[derive(Args)]
struct Way {
    /// Name of the cluster
    #[arg(long, env = "ALTHING_CLUSTER")]
    cluster: String,
    /// Where some of its nodes are, as host:port, parted by commas
    #[arg(long, env = "ALTHING_AT", value_delimiter = ',', required = true)]
    at: Vec<String>,
    /// Directory with `ca.pem`, and a certificate and a key as `<NAME>.pem` and `<NAME>.key`
    #[arg(long, env = "ALTHING_TLS", requires = "name")]
    tls: Option<PathBuf>,
    /// Whose certificate it is, such as ada.look.client, or a node's
    #[arg(long = "as", id = "name", env = "ALTHING_AS")]
    name: Option<String>,
    /// Talk without encryption to a cluster that has none
    #[arg(long, conflicts_with = "tls", required_unless_present = "tls")]
    insecure_plaintext: bool,
    /// Seconds until a node has to answer
    #[arg(long, default_value_t = 10)]
    connect_timeout_s: u64,
}

#[derive(Subcommand)]
enum Task {
    /// Lists the nodes: name, state, buckets, buckets that come and go, actors, messages that wait
    Nodes,
    /// Lists actors in memory: node, name, messages that wait, messages handled
    Actors {
        /// A part of kind or key
        #[arg(default_value = "")]
        text: String,
        /// One node only
        #[arg(long)]
        node: Option<String>,
        /// As many of each node
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Says where an actor lives
    Find {
        /// Its kind, such as shop.cart
        kind: String,
        /// Its key
        key: String,
    },
    /// Has an actor live on another node, with all others of its bucket
    Move {
        /// Its kind
        kind: String,
        /// Its key
        key: String,
        /// The node
        node: String,
        /// Seconds until it is given up to wait
        #[arg(long, default_value_t = 60)]
        timeout_s: u64,
    },
    /// Has a node give all that it owns to others
    Drain {
        /// The node
        node: String,
        /// Seconds until it is given up to wait
        #[arg(long, default_value_t = 300)]
        timeout_s: u64,
    },
    /// Lists the nodes again with each change
    Watch,
}

fn main() -> ExitCode {
    let line = Line::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(line))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("althing: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(line: Line) -> Result<()> {
    let client = Client::connect(line.way.config()).await?;
    match line.task {
        Task::Nodes => nodes(&client).await?,
        Task::Actors { text, node, limit } => actors(&client, &text, node, limit).await?,
        Task::Find { kind, key } => find(&client, &kind, &key).await?,
        Task::Move { kind, key, node, timeout_s } => {
            let id = ActorId::named(&kind, key);
            client.move_to(&id, &node, Duration::from_secs(timeout_s)).await?;
            println!("{id} is on {node}");
        }
        Task::Drain { node, timeout_s } => {
            client.drain(&node, Duration::from_secs(timeout_s)).await?;
            println!("{node} owns nothing");
        }
        Task::Watch => {
            let mut changes = client.changes().await?;
            loop {
                show(&changes.next().await?);
            }
        }
    }
    Ok(())
}

impl Way {
    fn config(self) -> ClientConfig {
        let tls = match (self.tls, self.name) {
            (Some(directory), Some(name)) => Tls::from_directory(directory, &name),
            _ => Tls::insecure_plaintext(),
        };
        ClientConfig::new(self.cluster, self.at, tls)
            .connect_timeout(Duration::from_secs(self.connect_timeout_s))
    }
}

async fn nodes(client: &Client) -> Result<()> {
    for node in client.view().await?.members {
        // A node that does not answer is a line, too: that is what one looks for.
        let said = match client.status(&node.name).await {
            Ok(is) => {
                let state = format!("{:?}", is.state).to_lowercase();
                format!("{state} {} actors {} waiting {}", buckets(&node), is.live, is.waiting)
            }
            Err(why) => format!("unreachable {} ({why})", buckets(&node)),
        };
        println!("{} {said}", node.name);
    }
    Ok(())
}

fn buckets(node: &Neighbour) -> String {
    let Neighbour { buckets, arriving, departing, .. } = node;
    let leaving = if node.is_leaving { " leaving" } else { "" };
    let guest = if node.role == Role::Guest { " guest" } else { "" };
    let labels: String = node.labels.iter().map(|label| format!(" {label}")).collect();
    format!("buckets {buckets} arriving {arriving} departing {departing}{leaving}{guest}{labels}")
}

async fn actors(client: &Client, text: &str, node: Option<String>, limit: usize) -> Result<()> {
    let nodes = match node {
        Some(node) => vec![node],
        None => client.view().await?.members.into_iter().map(|node| node.name).collect(),
    };
    for node in nodes {
        let listed = client.actors(&node, text, limit).await?;
        for actor in listed.actors {
            println!("{node} {}", doing(&actor));
        }
        if listed.left > 0 {
            println!("{node} ... {} more", listed.left);
        }
    }
    Ok(())
}

fn doing(actor: &FoundActor) -> String {
    let FoundActor { name, depth, handled, .. } = actor;
    let asleep = if actor.is_active { "" } else { " asleep" };
    format!("{name} waiting {depth} handled {handled}{asleep}")
}

async fn find(client: &Client, kind: &str, key: &str) -> Result<()> {
    let found = client.find(kind, key).await?;
    let node = found.node.as_deref().unwrap_or("nowhere");
    let going = found.going_to.map(|to| format!(" going to {to}")).unwrap_or_default();
    println!("{node} bucket {} epoch {}{going}", found.bucket, found.epoch);
    match &found.actor {
        Some(actor) => println!("{}", doing(actor)),
        None => println!("not in memory"),
    }
    Ok(())
}

fn show(view: &View) {
    for node in &view.members {
        println!("{} {} {}", view.number, node.name, buckets(node));
    }
}
