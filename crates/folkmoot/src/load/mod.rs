//! `folkmoot load`: puts a running server under load with as many sockets as one asks for, and
//! says how long messages took to everybody, and whether all came, once and in order.
//!
//! Clients and their measures live in one process, so that a message carries the time of its
//! sending and no clocks have to agree. Whatever a client sees follows from offsets: one that is
//! missing is a gap, one that comes again is doubled.

mod client;
mod frames;
mod glance;
mod histogram;
mod plan;
mod report;
mod socket;
mod tally;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use client::{Absent, Client, Stage};
pub use plan::{LoadFlags, LoadPlan, LoadPlanError};
pub use report::LoadReport;
use report::{Resumed, Said, Storm, Troubles};
pub use socket::SocketError;
use tally::Tally;

use folkmoot_gateway::raise_descriptors;

/// Clients that come in at once: more wait in the server's queue for connections, and not here.
const ENTERING_AT_ONCE: usize = 256;
/// Rooms that messages are said in at once while everybody is away.
const FILLING_AT_ONCE: usize = 64;
/// How long nothing may arrive before what is missing counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Why a server could not be put under load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A client did not get in.
    #[error("client {number}: {error}")]
    Entrance {
        /// Which of them.
        number: usize,
        /// Its reason.
        error: SocketError,
    },
    /// Its user is not in so many rooms as were asked for.
    #[error("client {number} has {found} rooms of those wanted, not {wanted}")]
    TooFewRooms {
        /// Which of them.
        number: usize,
        /// That there are.
        found: usize,
        /// That there should be.
        wanted: usize,
    },
}

struct Run {
    plan: Arc<LoadPlan>,
    tally: Arc<Tally>,
    stage: watch::Sender<Stage>,
    clients: JoinSet<Absent>,
    /// Dropped, it has its client leave.
    staying: Vec<oneshot::Sender<()>>,
}

/// Carries a plan out.
///
/// # Errors
/// [`LoadError`] if not all clients get in; what happens to them later is in the report.
pub async fn load(plan: LoadPlan) -> Result<LoadReport, LoadError> {
    raise_descriptors();
    let stage = watch::Sender::new(Stage::Waiting);
    let tally = Arc::new(Tally::new(plan.flags.in_flight));
    let plan = Arc::new(plan);
    let (clients, staying) = (JoinSet::new(), Vec::new());
    let mut run = Run { plan, tally, stage, clients, staying };
    let memory_before = run.server_memory();
    let began = Instant::now();
    run.enter().await?;
    let entered_after = began.elapsed();
    let sockets = run.plan.flags.sockets;
    let said = run.speak().await;
    // After the load: what a connection keeps for it counts, too.
    let grown = run.server_memory().zip(memory_before);
    let bytes_per_socket =
        grown.map(|(after, before)| after.saturating_sub(before) / sockets as u64);
    let lost = run.tally.missing();
    let storm = match run.plan.flags.reconnect {
        Some(missed) => Some(run.storm(missed).await?),
        None => None,
    };
    let resumed = run.resumed();
    run.leave().await;
    let troubles = run.troubles(lost);
    Ok(LoadReport { sockets, entered_after, bytes_per_socket, said, storm, resumed, troubles })
}

impl Run {
    /// Brings all clients in; each listens from then on.
    async fn enter(&mut self) -> Result<(), LoadError> {
        let doors = Arc::new(Semaphore::new(ENTERING_AT_ONCE));
        let (entered, mut entering) = mpsc::unbounded_channel();
        for number in 0..self.plan.flags.sockets {
            let (plan, tally) = (self.plan.clone(), self.tally.clone());
            let (doors, entered, stage) = (doors.clone(), entered.clone(), self.stage.subscribe());
            let (stays, leaving) = oneshot::channel();
            self.staying.push(stays);
            self.clients.spawn(async move {
                let door = doors.acquire().await;
                let client = Client::enter(plan, tally, number).await;
                drop(door);
                match client {
                    Ok(client) => {
                        let _ = entered.send(Ok(client.rooms().collect::<Vec<_>>()));
                        // All are in when nobody is left who could say so.
                        drop(entered);
                        client.run(stage, leaving).await
                    }
                    Err(error) => {
                        let _ = entered.send(Err(error));
                        Absent::stranger(number)
                    }
                }
            });
        }
        drop(entered);
        let mut listeners = HashMap::new();
        while let Some(rooms) = entering.recv().await {
            for room in rooms? {
                *listeners.entry(room).or_insert(0) += 1;
            }
        }
        self.tally.expect(listeners);
        Ok(())
    }

    /// Sends for as long as was asked, and waits until all has arrived or nothing comes any more.
    async fn speak(&self) -> Option<Said> {
        let began = Instant::now();
        if self.plan.flags.senders == 0 {
            tokio::time::sleep(self.plan.duration()).await;
            return None;
        }
        self.stage.send_replace(Stage::Sending);
        tokio::time::sleep(self.plan.duration()).await;
        self.stage.send_replace(Stage::Listening);
        let took = self.quiet(began).await;
        let tally = &self.tally;
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Some(Said {
            sent: count(&tally.sent),
            acknowledged: count(&tally.acknowledged),
            refused: count(&tally.refused),
            delivered: count(&tally.delivered),
            took,
            to_acknowledgement: (&tally.to_acknowledgement).into(),
            to_delivery: (&tally.to_delivery).into(),
            to_last: (&tally.to_last).into(),
        })
    }

    /// Waits until nothing is missing; says how long after `began` the last event came.
    async fn quiet(&self, began: Instant) -> Duration {
        let seen = || {
            let counts = [&self.tally.delivered, &self.tally.acknowledged, &self.tally.refused];
            counts.map(|count| count.load(Ordering::Relaxed))
        };
        let (mut last, mut came_at) = (seen(), began.elapsed());
        while self.tally.missing() + self.tally.unanswered() > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
            let (now, at) = (seen(), began.elapsed());
            if now != last {
                (last, came_at) = (now, at);
            } else if at - came_at > SILENCE_MAX || self.is_alone() {
                break;
            }
        }
        came_at
    }

    /// Whether no connection is left that something could come by.
    fn is_alone(&self) -> bool {
        self.tally.broken.load(Ordering::Relaxed) as usize >= self.plan.flags.sockets
    }

    /// All leave, something is said in each room, and all come back at once.
    async fn storm(&mut self, missed: u32) -> Result<Storm, LoadError> {
        let absent = self.leave().await;
        self.fill(&absent, missed).await?;
        let began = Instant::now();
        let mut returning = JoinSet::new();
        for absent in absent {
            let (plan, tally) = (self.plan.clone(), self.tally.clone());
            returning.spawn(Client::come_back(plan, tally, absent, began));
        }
        // Kept until all are back: that is the state that a server has to reach.
        let mut back = Vec::new();
        while let Some(returned) = returning.join_next().await {
            match returned.expect("a client does not panic") {
                Ok(client) => back.push(client),
                Err(error) => self.tally.lose(&error),
            }
        }
        let took = began.elapsed();
        let missed = self.tally.recovered.load(Ordering::Relaxed);
        let retried = self.tally.retried.load(Ordering::Relaxed);
        Ok(Storm { missed, retried, took, to_return: (&self.tally.to_return).into() })
    }

    /// Has somebody say so many messages in each room.
    async fn fill(&self, absent: &[Absent], messages: u32) -> Result<(), LoadError> {
        let mut speakers = HashMap::new();
        for absent in absent {
            for room in absent.rooms() {
                speakers.entry(room).or_insert(absent.number);
            }
        }
        let at_once = Arc::new(Semaphore::new(FILLING_AT_ONCE));
        let mut filling = JoinSet::new();
        for (room, number) in speakers {
            let (plan, at_once) = (self.plan.clone(), at_once.clone());
            filling.spawn(async move {
                let _turn = at_once.acquire().await;
                let filled = Client::fill(plan, number, room, messages).await;
                filled.map_err(|error| LoadError::Entrance { number, error })
            });
        }
        while let Some(filled) = filling.join_next().await {
            filled.expect("a client does not panic")?;
        }
        Ok(())
    }

    /// Ends all connections.
    async fn leave(&mut self) -> Vec<Absent> {
        self.staying.clear();
        let mut absent = Vec::new();
        while let Some(left) = self.clients.join_next().await {
            absent.push(left.expect("a client does not panic"));
        }
        absent
    }

    fn troubles(&self, lost: u64) -> Troubles {
        let tally = &self.tally;
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Troubles {
            lost,
            doubled: count(&tally.doubled),
            skipped: count(&tally.skipped),
            unanswered: tally.unanswered(),
            broken: count(&tally.broken),
            unrecovered: count(&tally.unrecovered),
            first: tally.trouble().map(str::to_owned),
        }
    }

    fn resumed(&self) -> Option<Resumed> {
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        self.plan.flags.resume.then(|| Resumed {
            connections: count(&self.tally.resumed),
            retried: count(&self.tally.retried),
            pause: (&self.tally.to_resume).into(),
        })
    }

    /// What the server's process keeps in memory of its own, if it is one of this machine: pages of
    /// files, which the first connections touch, are no cost of a connection.
    fn server_memory(&self) -> Option<u64> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.plan.flags.server_pid?));
        let status = status.ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    }
}
