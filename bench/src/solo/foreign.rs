//! `chat-send-foreign`: what 64 senders have acknowledged per second through a node on which no room
//! lives, beside the same at the only node of a server. Both have the cluster, TLS between nodes and a
//! PostgreSQL of their own; in turn, twice.

use super::folkmoot::Nodes;
use super::rolling::flags;
use althing_bench_workloads::{Budget, Sample};
use anyhow::Result;

const ROOMS: u64 = 8;
const MEMBERS: u64 = 9;
const SENDERS: u64 = 64;
const TURNS: usize = 2;

pub(crate) fn run(budget: Budget) -> Result<Vec<Sample>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut own, mut foreign) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            own.push(rate(&["both"], budget).await?);
            foreign.push(rate(&["gateway", "state"], budget).await?);
        }
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let (own, foreign) = (mean(&own), mean(&foreign));
        Ok(vec![
            Sample::new("foreign", "1/s", foreign),
            Sample::new("own", "1/s", own),
            Sample::new("ratio", "", foreign / own),
        ])
    })
}

/// Messages acknowledged per second at the first of these nodes.
async fn rate(roles: &[&'static str], budget: Budget) -> Result<f64> {
    let users = ROOMS * MEMBERS;
    let seed = flags(&[("--users", users.to_string()), ("--room", format!("{MEMBERS}x{ROOMS}"))]);
    let nodes = Nodes::seeded(roles, &seed).await?;
    let load = |seconds: f64| {
        flags(&[
            ("--sockets", users.to_string()),
            ("--senders", SENDERS.to_string()),
            ("--seconds", (seconds.ceil().max(1.0)).to_string()),
        ])
    };
    nodes.load(&[0], &load(budget.warm_up_seconds))?.await?;
    let report = nodes.load(&[0], &load(budget.seconds * 4.0))?.await?;
    Ok(report.said()?.acknowledged_per_second())
}
