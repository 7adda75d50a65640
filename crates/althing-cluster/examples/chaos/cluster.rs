//! The cluster under test: its nodes' processes, the servers, and the ways between them. Whoever ends
//! is started again, as systemd and Kubernetes do, unless a fault holds it down.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use althing_testkit::servers::{EtcdServer, PostgresServer};
use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::arguments::Timing;
use crate::callers::Acks;
use crate::clock::{Micros, now};
use crate::history::{Deed, History, Incident};
use crate::links::{ETCD, Links, Way};
use crate::node::{EVICTED, NOT_JOINED};
use crate::plan::NODES;
use crate::process::Process;

const NAMES: [&str; NODES] = ["one", "two", "three"];

/// How often it is looked whether a process has ended, which nobody tells.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Before a node that could not join is started again: by default systemd waits for 0.1 s, and
/// Kubernetes for 10 s.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// A cluster that begins without faults takes no longer.
const START_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    timing: Timing,
    directory: tempfile::TempDir,
    pub(crate) etcd: Mutex<EtcdServer>,
    postgres: PostgresServer,
    pub(crate) links: Arc<Links>,
    to_etcd: Way,
    nodes: [Mutex<Slot>; NODES],
    ways: [Ways; NODES],
    incidents: Mutex<Vec<Incident>>,
    troubles: Mutex<Vec<String>>,
}

/// A node, through its lives.
#[derive(Default)]
struct Slot {
    process: Option<Process>,
    lives: u32,
    /// It stays down until its fault has ended.
    is_held: bool,
    /// It is not started again before.
    rests_until: Option<Instant>,
}

/// The ways in to a node and to its authority.
struct Ways {
    node: Way,
    authority: Way,
}

impl Cluster {
    /// Starts servers and nodes; returns when all nodes are members.
    pub(crate) async fn start(timing: Timing) -> Self {
        let servers =
            tokio::task::spawn_blocking(|| (EtcdServer::start(), PostgresServer::start()));
        let (etcd, postgres) = servers.await.expect("the servers start");
        let links = Arc::new(Links::new());
        let to_etcd = links.way_in(ETCD).await;
        to_etcd.lead_to(etcd.host().parse().expect("it is an address"));
        let mut ways = Vec::new();
        for end in 0..NODES {
            let (node, authority) = (links.way_in(end).await, links.way_in(end).await);
            ways.push(Ways { node, authority });
        }
        let directory = tempfile::Builder::new().prefix("chaos-").tempdir();
        let cluster = Self {
            timing,
            directory: directory.expect("a temporary directory can be made"),
            etcd: Mutex::new(etcd),
            postgres,
            links,
            to_etcd,
            nodes: Default::default(),
            ways: ways.try_into().ok().expect("one for each node"),
            incidents: Mutex::default(),
            troubles: Mutex::default(),
        };
        (0..NODES).for_each(|node| cluster.begin(node));
        let troubles = cluster.recover(START_MAX).await;
        assert!(troubles.is_empty(), "the cluster does not start: {troubles:?}");
        cluster
    }

    /// Where clients find the nodes.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.ways.iter().map(|ways| ways.node.address.to_string()).collect()
    }

    /// Begins the next life of a node.
    fn begin(&self, node: usize) {
        let mut slot = self.nodes[node].lock();
        slot.rests_until = None;
        slot.lives += 1;
        let life = format!("{}.{}", NAMES[node], slot.lives);
        let authorities = self.ways.iter().map(|ways| ways.authority.address.to_string());
        let seed = (u64::from(slot.lives) << 8) + node as u64;
        let arguments = [
            ("--name", NAMES[node].to_owned()),
            ("--directory", self.directory.path().display().to_string()),
            ("--etcd", self.to_etcd.address.to_string()),
            ("--postgres", self.postgres.url()),
            ("--lease-ms", self.timing.lease.as_millis().to_string()),
            ("--join-ms", self.timing.join.as_millis().to_string()),
            ("--advertised", self.ways[node].node.address.to_string()),
            ("--authority", self.ways[node].authority.address.to_string()),
            ("--authorities", authorities.collect::<Vec<_>>().join(",")),
            ("--seed", seed.to_string()),
        ];
        let arguments: Vec<_> =
            arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        let process = Process::start(&life, self.directory.path(), &arguments);
        let process = process.expect("this program can be started");
        self.links.processes[node].store(process.id(), Ordering::Relaxed);
        slot.process = Some(process);
    }

    /// Looks after the nodes: leads the ways to where they listen, and starts those again that have
    /// ended.
    pub(crate) fn look(&self) {
        for node in 0..NODES {
            let mut slot = self.nodes[node].lock();
            if let Some(process) = &mut slot.process {
                if let Some((at, authority)) = process.heard.borrow().ready {
                    self.ways[node].node.lead_to(at);
                    self.ways[node].authority.lead_to(authority);
                }
                let Some(status) = process.ended() else { continue };
                self.has_ended(&mut slot, status);
                self.links.processes[node].store(0, Ordering::Relaxed);
            }
            let is_resting = slot.rests_until.is_some_and(|until| Instant::now() < until);
            let is_kept_down = slot.is_held || is_resting;
            drop(slot);
            if !is_kept_down {
                self.begin(node);
            }
        }
    }

    /// A life has ended with that.
    fn has_ended(&self, slot: &mut Slot, status: ExitStatus) {
        let Some(process) = slot.process.take() else { return };
        match status.code() {
            Some(code) if code == i32::from(EVICTED) || code == 0 => {}
            Some(code) if code == i32::from(NOT_JOINED) => {
                // It may have become a member in its last moment, and was told something then.
                self.write_down(&process.life, Deed::Died);
                self.write_down(&process.life, Deed::NotJoined);
                slot.rests_until = Some(Instant::now() + RESTART_PAUSE);
            }
            // It was killed by us, which is written down then.
            None if slot.is_held => {}
            _ => {
                let why = self.complaint_of(&process.life);
                self.troubles.lock().push(format!("{} ended by itself: {why}", process.life));
                self.write_down(&process.life, Deed::Died);
            }
        }
    }

    fn complaint_of(&self, life: &str) -> String {
        let text = std::fs::read_to_string(self.directory.path().join(format!("{life}.log")));
        text.unwrap_or_default().trim().replace('\n', " / ")
    }

    fn write_down(&self, life: &str, deed: Deed) {
        self.incidents.lock().push(Incident { life: life.to_owned(), deed, at: now() });
    }

    /// Writes down that something was done to the ends of a way.
    pub(crate) fn write_down_fault(&self, ends: Vec<usize>, from: Micros) {
        for end in ends.into_iter().filter(|end| *end < NODES) {
            let name = NAMES[end].to_owned();
            let deed = Deed::Disturbed { from };
            self.incidents.lock().push(Incident { life: name, deed, at: now() });
        }
    }

    /// Kills a node and holds it down.
    pub(crate) fn kill(&self, node: usize) {
        let mut slot = self.nodes[node].lock();
        slot.is_held = true;
        if let Some(process) = &mut slot.process {
            self.write_down(&process.life, Deed::Died);
            process.kill();
        }
    }

    /// Has a node leave, and holds it down then.
    pub(crate) fn have_leave(&self, node: usize) {
        let mut slot = self.nodes[node].lock();
        slot.is_held = true;
        if let Some(process) = &mut slot.process {
            process.tell("leave");
        }
    }

    /// Whether the node has ended.
    pub(crate) fn is_down(&self, node: usize) -> bool {
        self.nodes[node].lock().process.is_none()
    }

    /// Lets a node begin again.
    pub(crate) fn let_begin(&self, node: usize) {
        self.nodes[node].lock().is_held = false;
    }

    pub(crate) fn stop(&self, node: usize) {
        if let Some(process) = &self.nodes[node].lock().process {
            process.signal(Signal::STOP);
        }
    }

    pub(crate) fn go_on(&self, node: usize) {
        if let Some(process) = &self.nodes[node].lock().process {
            // Before it: what it does at once is later.
            self.write_down(&process.life, Deed::WentOn);
            process.signal(Signal::CONT);
        }
    }

    /// Waits until all nodes are members; tells who is not.
    pub(crate) async fn recover(&self, within: Duration) -> Vec<String> {
        let until = Instant::now() + within;
        loop {
            self.look();
            let is_joined = |node: &Mutex<Slot>| {
                node.lock().process.as_ref().is_some_and(|process| process.heard.borrow().is_joined)
            };
            let missing = (0..NODES).filter(|node| !is_joined(&self.nodes[*node]));
            let missing: Vec<_> = missing.map(|node| NAMES[node]).collect();
            if missing.is_empty() {
                return Vec::new();
            }
            if Instant::now() > until {
                return vec![format!("no members after {within:?}: {}", missing.join(", "))];
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until the nodes' senders have finished; tells whose have not.
    pub(crate) async fn finish_senders(&self, within: Duration) -> Vec<String> {
        let until = Instant::now() + within;
        let mut told = [const { String::new() }; NODES];
        loop {
            self.look();
            let mut missing = Vec::new();
            for (slot, told) in self.nodes.iter().zip(&mut told) {
                let mut slot = slot.lock();
                let Some(process) = &mut slot.process else { continue };
                if *told != process.life && process.heard.borrow().is_joined {
                    told.clone_from(&process.life);
                    process.tell("finish");
                }
                if !process.heard.borrow().has_finished {
                    missing.push(process.life.clone());
                }
            }
            if missing.is_empty() {
                return Vec::new();
            }
            if Instant::now() > until {
                let missing = missing.join(", ");
                return vec![format!("senders wait after {within:?} without faults: {missing}")];
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Ends the nodes, and reads what was written down.
    pub(crate) async fn end(&self, acks: Acks) -> History {
        for slot in &self.nodes {
            slot.lock().process = None;
        }
        let incidents = std::mem::take(&mut *self.incidents.lock());
        let mut history = History::read(
            self.directory.path(),
            &self.postgres.url(),
            incidents,
            self.timing.lease,
        )
        .await;
        history.take(acks);
        history.troubles.append(&mut self.troubles.lock());
        history
    }

    /// Moves the diaries to where they outlive the run.
    pub(crate) fn keep_diaries(&self, seed: u64) -> std::io::Result<PathBuf> {
        let kept = std::env::temp_dir().join(format!("chaos-of-seed-{seed}"));
        std::fs::create_dir_all(&kept)?;
        for file in std::fs::read_dir(self.directory.path())?.flatten() {
            std::fs::copy(file.path(), kept.join(file.file_name()))?;
        }
        Ok(kept)
    }
}

/// Looks after the nodes from time to time, until the task is aborted.
pub(crate) async fn look_on(cluster: Arc<Cluster>) {
    loop {
        cluster.look();
        sleep(LOOK_EVERY).await;
    }
}
