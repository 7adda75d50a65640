//! Who is measured: Althing, and the peers under `bench/peers`, each with its mailbox and settings.
//!
//! A system with two kinds of mailbox is two candidates: its best for every workload, and a variant
//! for the tells, so that bounded is compared with bounded and unbounded with unbounded. A peer
//! whose toolchain is missing or whose build fails stays a candidate with the reason, and becomes a
//! row that says so.

use crate::build::{Launch, Toolchain, bench_directory, build};
use crate::catalogue::Workload;
use althing_bench_workloads::Mailbox;
use anyhow::{Context, Result, bail};
use std::env;

/// Which workloads a candidate takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Everything,
    /// A second mailbox of a system that is there already; it decides tells only.
    Tells,
}

/// A system to be measured, or the reason why it cannot be.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) is_ours: bool,
    pub(crate) mailbox: Mailbox,
    /// Version and settings, for the tables.
    pub(crate) settings: &'static str,
    pub(crate) launch: Result<Launch, String>,
    part: Part,
}

impl Candidate {
    /// Whether the workload is to be measured on this candidate.
    pub(crate) fn takes(&self, workload: &Workload) -> bool {
        (self.is_ours || workload.shared)
            && (self.part == Part::Everything || workload.fills_mailboxes())
    }

    #[cfg(test)]
    pub(crate) fn absent(name: &str, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_ours: false,
            mailbox: Mailbox::Unbounded,
            settings: "",
            launch: Err(reason.to_owned()),
            part: Part::Everything,
        }
    }
}

struct Peer {
    name: &'static str,
    program: &'static str,
    toolchain: Toolchain,
    mailbox: Mailbox,
    part: Part,
    settings: &'static str,
}

/// A peer with its best settings, measured on every workload.
const fn peer(
    name: &'static str,
    toolchain: Toolchain,
    mailbox: Mailbox,
    settings: &'static str,
) -> Peer {
    Peer { name, program: name, toolchain, mailbox, part: Part::Everything, settings }
}

/// The same program with its other mailbox.
const fn variant(
    name: &'static str,
    program: &'static str,
    toolchain: Toolchain,
    mailbox: Mailbox,
    settings: &'static str,
) -> Peer {
    Peer { name, program, toolchain, mailbox, part: Part::Tells, settings }
}

const PEERS: &[Peer] = &[
    peer("kameo", Toolchain::Rust, Mailbox::Bounded, "0.22.2; mailbox bounded 1,024, no tracing"),
    variant(
        "kameo-unbounded",
        "kameo",
        Toolchain::Rust,
        Mailbox::Unbounded,
        "0.22.2; unbounded mailbox, no tracing",
    ),
    peer(
        "ractor",
        Toolchain::Rust,
        Mailbox::Unbounded,
        "0.16.5; unbounded (its only mailbox), no span propagation",
    ),
    peer(
        "ractor-cluster",
        Toolchain::Rust,
        Mailbox::Unbounded,
        "0.16.5; two nodes, unencrypted, actors found in a process group",
    ),
    peer(
        "actix",
        Toolchain::Rust,
        Mailbox::Unbounded,
        "0.13.5; one arbiter per core, do_send (ignores the bound); asks from the actor's own thread",
    ),
    peer(
        "coerce",
        Toolchain::Rust,
        Mailbox::Unbounded,
        "0.8.11; anonymous actors, unbounded (its only mailbox)",
    ),
    peer("hollywood", Toolchain::Go, Mailbox::Unbounded, "1.0.5; inbox 1,024 growing, GOGC 400"),
    peer("protoactor", Toolchain::Go, Mailbox::Unbounded, "20240822; unbounded mailbox, GOGC 400"),
    variant(
        "protoactor-bounded",
        "protoactor",
        Toolchain::Go,
        Mailbox::Bounded,
        "20240822; mailbox bounded 1,024, GOGC 400",
    ),
    peer(
        "goakt",
        Toolchain::Go,
        Mailbox::Unbounded,
        "3.2.0; long-lived actors, no logging, GOGC 400; of its concurrent asks some get no reply and \
         count as answered",
    ),
    peer(
        "elixir",
        Toolchain::Elixir("on_heap"),
        Mailbox::Unbounded,
        "BEAM with JIT; plain processes, default message queue; Erlang's distribution",
    ),
    peer(
        "elixir-off-heap",
        Toolchain::Elixir("off_heap"),
        Mailbox::Unbounded,
        "BEAM with JIT; plain processes, message_queue_data off_heap",
    ),
    peer(
        "pekko",
        Toolchain::Maven,
        Mailbox::Unbounded,
        "1.4.0; classic API, throughput 1,024, single-consumer mailbox, parallel GC; Artery over TCP",
    ),
    variant(
        "pekko-bounded",
        "pekko",
        Toolchain::Maven,
        Mailbox::Bounded,
        "1.4.0; the same with the bounded mailbox (1,024) whose senders block",
    ),
];

/// Althing itself, this very program, one run per process: as it comes.
pub(crate) fn ours() -> Result<Candidate> {
    own("althing", Mailbox::Bounded, Part::Everything, "mailbox bounded 1,024, metrics on")
}

fn own(name: &str, mailbox: Mailbox, part: Part, settings: &'static str) -> Result<Candidate> {
    let program = env::current_exe().context("cannot find the running program")?.into();
    let launch = Launch {
        program,
        arguments: vec!["once".into()],
        directory: bench_directory(),
        mailbox: mailbox.name(),
    };
    Ok(Candidate {
        name: name.to_owned(),
        is_ours: true,
        mailbox,
        settings,
        launch: Ok(launch),
        part,
    })
}

/// Althing with either mailbox, and its peers, built. `only` names the peers wanted; none means
/// all.
pub(crate) fn with_peers(only: &[String]) -> Result<Vec<Candidate>> {
    let unknown = only.iter().find(|name| {
        name.as_str() != "althing" && PEERS.iter().all(|peer| peer.name != name.as_str())
    });
    if let Some(name) = unknown {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        bail!("no peer {name}; there are {}", names.join(", "));
    }
    let unbounded =
        own("althing-unbounded", Mailbox::Unbounded, Part::Tells, "unbounded mailbox, metrics on")?;
    let mut candidates = vec![ours()?, unbounded];
    for peer in PEERS {
        if !only.is_empty() && only.iter().all(|name| name != peer.name) {
            continue;
        }
        eprintln!("building {}", peer.name);
        let launch = build(peer.toolchain, peer.program, peer.mailbox.name());
        if let Err(reason) = &launch {
            eprintln!("  not built: {reason}");
        }
        candidates.push(Candidate {
            name: peer.name.to_owned(),
            is_ours: false,
            mailbox: peer.mailbox,
            settings: peer.settings,
            launch,
            part: peer.part,
        });
    }
    Ok(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::find;

    #[test]
    fn a_second_mailbox_takes_part_in_tells_only() {
        let unbounded = own("a", Mailbox::Unbounded, Part::Tells, "").unwrap();
        assert!(unbounded.takes(find("tell-8to8-tasks").unwrap()));
        assert!(!unbounded.takes(find("ask-1").unwrap()));
        assert!(ours().unwrap().takes(find("fairness").unwrap()));
        assert!(!Candidate::absent("b", "").takes(find("fairness").unwrap()));
    }

    #[test]
    fn an_unknown_peer_is_refused() {
        let error = with_peers(&["akka".to_owned()]).unwrap_err();
        assert!(error.to_string().starts_with("no peer akka"));
    }
}
