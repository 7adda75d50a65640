//! What a system under test offers to the workloads.
//!
//! One implementation per actor library, each with the best settings its documentation names. The
//! methods are generic and monomorphised: the trait itself costs nothing at run time.

use crate::block_on::block_on;
use crate::tally::Tally;
use std::env;
use std::future::Future;
use std::sync::mpsc;

/// The environment variable by which the harness asks for a mailbox.
pub const MAILBOX: &str = "MAILBOX";

/// Which mailbox the receiving actors have. A system with only one kind ignores the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mailbox {
    /// At most [`Mailbox::LEN_MAX`] messages wait, and senders wait for room.
    Bounded,
    /// Any number of messages waits.
    Unbounded,
}

impl Mailbox {
    /// The bound of every bounded mailbox.
    pub const LEN_MAX: u32 = 1_024;

    /// The word that asks for it, and that the tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bounded => "bounded",
            Self::Unbounded => "unbounded",
        }
    }

    /// What the harness asks for; bounded unless the variable says `unbounded`.
    #[must_use]
    pub fn asked_for() -> Self {
        match env::var(MAILBOX).as_deref() {
            Ok("unbounded") => Self::Unbounded,
            _ => Self::Bounded,
        }
    }
}

/// An actor library, as the workloads see it.
pub trait System: Send + Sync + Sized + 'static {
    /// Name in the tables.
    const NAME: &'static str;
    /// How [`System::publish`] reaches the subscribers, for the note beside the figure.
    const PUBLISHES_BY: &'static str;
    /// Address of an actor that wraps a [`Tally`].
    type Address: Clone + Send + Sync + 'static;
    /// Address of an actor that sends from inside its handler.
    type Producer: Send + Sync + 'static;
    /// Subscribers of one publisher.
    type Group: Send + Sync + 'static;

    /// Starts the runtime with all its worker threads.
    fn start() -> Self;

    /// Runs `task` on one of the runtime's own workers.
    fn run_task(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Runs `future` on the calling thread, which belongs to no runtime.
    fn on_thread<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }

    /// Starts an actor; its start hook calls [`Tally::started`].
    fn spawn(&self, tally: Tally) -> impl Future<Output = Self::Address> + Send;

    /// Starts an actor that answers [`System::burst`] by telling `target` the numbers below a
    /// count.
    fn spawn_producer(&self, target: Self::Address) -> impl Future<Output = Self::Producer> + Send;

    /// Asks a producer to tell its target the numbers `0..count` from inside one handler.
    fn burst(producer: &Self::Producer, count: u64) -> impl Future<Output = ()> + Send;

    /// Sends without a reply; waits for room where the mailbox is bounded.
    fn tell(to: &Self::Address, number: u64) -> impl Future<Output = ()> + Send;

    /// Sends and waits for the sum.
    fn ask(to: &Self::Address, number: u64) -> impl Future<Output = u64> + Send;

    /// Stops the actor in the library's graceful way; need not wait until it is gone.
    fn stop(address: Self::Address) -> impl Future<Output = ()> + Send;

    /// Starts one subscriber per tally.
    fn group(&self, members: Vec<Tally>) -> impl Future<Output = Self::Group> + Send;

    /// Sends one number to every member of the group.
    fn publish(group: &Self::Group, number: u64) -> impl Future<Output = ()> + Send;
}

/// Runs `work` on a worker of the system's runtime and returns its output.
///
/// # Panics
/// When the runtime drops the task, which only a panic inside `work` can cause.
pub fn on_worker<S: System, T: Send + 'static>(
    system: &S,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (tx, rx) = mpsc::sync_channel(1);
    system.run_task(async move {
        // The receiver waits below for as long as this task lives.
        let _ = tx.send(work.await);
    });
    rx.recv().expect("the runtime runs every task to its end")
}
