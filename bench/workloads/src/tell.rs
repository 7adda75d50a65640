//! `tell-*`: eight senders tell one or eight actors a number each.
//!
//! Senders are threads outside the runtime (`tell-8to1`), tasks inside it (`-tasks`) or the
//! handlers of eight actors (`-actors`). They start together at a barrier; the clock stops when the
//! last message is handled, not when it is sent.

use crate::measure::{Budget, Sample, median_ns};
use crate::system::{System, on_worker};
use crate::tally::Board;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Senders of every tell workload.
pub(crate) const SENDERS: usize = 8;

/// Where the messages are sent from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    Threads,
    Tasks,
    Handlers,
    /// Tasks that wait after every eighth message until it is handled, so that no batch is larger.
    TasksByEight,
}

/// Messages between two waits of [`From::TasksByEight`].
const EIGHT: u64 = 8;

/// Everything of a tell workload that lives longer than one batch.
pub(crate) struct Field<S: System> {
    system: Arc<S>,
    board: Arc<Board>,
    targets: Vec<S::Address>,
    producers: Arc<Vec<S::Producer>>,
    per_sender: u64,
}

impl<S: System> Field<S> {
    pub(crate) fn new(system: S, messages: u64, targets: usize) -> Result<Self, String> {
        let per_sender = messages / SENDERS as u64;
        if per_sender == 0 {
            return Err(format!("--messages must be at least {SENDERS}, not {messages}"));
        }
        let system = Arc::new(system);
        let board = Board::new(1);
        let per_target = per_sender * (SENDERS / targets) as u64;
        let tallies = board.tallies(targets, per_target);
        let spawner = Arc::clone(&system);
        let targets = on_worker(&*system, async move {
            let mut targets = Vec::new();
            for tally in tallies {
                targets.push(spawner.spawn(tally).await);
            }
            targets
        });
        let spawner = Arc::clone(&system);
        let sinks = targets.clone();
        let producers = on_worker(&*system, async move {
            let mut producers = Vec::new();
            for sender in 0..SENDERS {
                let target = sinks[sender % sinks.len()].clone();
                producers.push(spawner.spawn_producer(target).await);
            }
            drop(sinks);
            producers
        });
        Ok(Self { system, board, targets, producers: Arc::new(producers), per_sender })
    }

    /// Messages of one batch, all senders together.
    pub(crate) fn batch_messages(&self) -> u64 {
        self.per_sender * SENDERS as u64
    }

    /// Sends one batch, checks that every number arrived once, and returns the time it took.
    pub(crate) fn batch(&self, from: From) -> Result<Duration, String> {
        self.board.sum.store(0, Ordering::Relaxed);
        self.board.handled.expect(self.targets.len());
        let begun = match from {
            From::Threads => self.send_from_threads(),
            From::Tasks => self.send_from_tasks(send_all::<S>),
            From::TasksByEight => self.send_from_tasks(send_by_eight::<S>),
            From::Handlers => self.send_from_handlers(),
        };
        let ended = self.board.handled.wait().map_err(|error| error.to_string())?;
        let sum = self.board.sum.load(Ordering::Relaxed);
        let expected = SENDERS as u64 * (self.per_sender * (self.per_sender - 1) / 2);
        if sum != expected {
            return Err(format!("handlers added up to {sum} instead of {expected}"));
        }
        Ok(ended.duration_since(begun))
    }

    fn target(&self, sender: usize) -> S::Address {
        self.targets[sender % self.targets.len()].clone()
    }

    fn send_from_threads(&self) -> Instant {
        let (ready, go) =
            (Arc::new(Barrier::new(SENDERS + 1)), Arc::new(Barrier::new(SENDERS + 1)));
        for sender in 0..SENDERS {
            let (target, count) = (self.target(sender), self.per_sender);
            let (ready, go) = (Arc::clone(&ready), Arc::clone(&go));
            let system = Arc::clone(&self.system);
            // Detached on purpose: the batch ends with the last message handled, by when every
            // sender has sent its last.
            thread::spawn(move || {
                ready.wait();
                go.wait();
                system.on_thread(send_all::<S>(target, count));
            });
        }
        ready.wait();
        // Before the second barrier: after it this thread may wait for a core while others send.
        let begun = Instant::now();
        go.wait();
        begun
    }

    fn send_from_tasks<F>(&self, send: fn(S::Address, u64) -> F) -> Instant
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let begun = Instant::now();
        for sender in 0..SENDERS {
            let (target, count) = (self.target(sender), self.per_sender);
            self.system.run_task(send(target, count));
        }
        begun
    }

    fn send_from_handlers(&self) -> Instant {
        let begun = Instant::now();
        let (producers, count) = (Arc::clone(&self.producers), self.per_sender);
        self.system.run_task(async move {
            for producer in producers.iter() {
                S::burst(producer, count).await;
            }
        });
        begun
    }
}

async fn send_all<S: System>(target: S::Address, count: u64) {
    for number in 0..count {
        S::tell(&target, number).await;
    }
}

async fn send_by_eight<S: System>(target: S::Address, count: u64) {
    for number in 0..count {
        if number % EIGHT == EIGHT - 1 {
            S::ask(&target, number).await;
        } else {
            S::tell(&target, number).await;
        }
    }
}

pub(crate) fn run<S: System>(
    budget: Budget,
    targets: usize,
    from: From,
) -> Result<Vec<Sample>, String> {
    let field = Field::new(S::start(), budget.messages, targets)?;
    let mut durations = budget.run(|| field.batch(from))?;
    Ok(vec![Sample::rate(field.batch_messages(), median_ns(&mut durations))])
}
