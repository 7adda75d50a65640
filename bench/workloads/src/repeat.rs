//! A workload on a system that is already running, batch by batch.
//!
//! For comparisons inside one process, where two systems take turns every few batches.

use crate::publish::Audience;
use crate::system::System;
use crate::tell::{Field, From};
use std::time::Duration;

/// A workload made ready.
pub struct Repeat {
    messages: u64,
    batch: Box<dyn FnMut() -> Result<Duration, String>>,
}

impl Repeat {
    /// Names of the workloads that can be repeated.
    pub const WORKLOADS: [&str; 6] = [
        "tell-8to1-tasks",
        "tell-8to1-actors",
        "tell-8to8-tasks",
        "tell-8to8-by-8",
        "publish-1k",
        "publish-100k",
    ];

    /// Prepares `workload` on `system`, with `messages` per batch where its size is free.
    ///
    /// # Errors
    /// A name that is not in [`Repeat::WORKLOADS`], or too few messages.
    pub fn new<S: System>(system: S, workload: &str, messages: u64) -> Result<Self, String> {
        match workload {
            "tell-8to1-tasks" => Self::tells(system, messages, 1, From::Tasks),
            "tell-8to1-actors" => Self::tells(system, messages, 1, From::Handlers),
            "tell-8to8-tasks" => Self::tells(system, messages, 8, From::Tasks),
            "tell-8to8-by-8" => Self::tells(system, messages, 8, From::TasksByEight),
            "publish-1k" => Ok(Self::publishes(system, 1_000)),
            "publish-100k" => Ok(Self::publishes(system, 100_000)),
            _ => Err(format!("{workload} cannot be repeated; {}", Self::WORKLOADS.join(", "))),
        }
    }

    fn tells<S: System>(
        system: S,
        messages: u64,
        targets: usize,
        from: From,
    ) -> Result<Self, String> {
        let field = Field::new(system, messages, targets)?;
        Ok(Self { messages: field.batch_messages(), batch: Box::new(move || field.batch(from)) })
    }

    fn publishes<S: System>(system: S, subscribers: usize) -> Self {
        let audience = Audience::new(system, subscribers);
        Self { messages: audience.batch_messages(), batch: Box::new(move || audience.batch()) }
    }

    /// Messages of one batch.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Runs one batch and returns the time it took.
    ///
    /// # Errors
    /// What the workload's check found.
    pub fn batch(&mut self) -> Result<Duration, String> {
        (self.batch)()
    }
}
