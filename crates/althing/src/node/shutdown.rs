//! The end of a node: everybody finishes, and then nobody starts any more.
//!
//! Who stops may wake others for a last word, a room its store, so actors are asked in rounds until
//! a round finds nobody. Only then, or at the deadline, are all addresses closed: before, they
//! would take that word away; without it, a late message would start an actor that nobody stops.

use std::sync::Arc;
use std::time::Duration;

use crate::activation::current;
use crate::activation::ending::close_sleeper;
use crate::activation::run::Run;
use crate::activation::stopping::request_stop;
use crate::address::actor_id::ActorId;
use crate::address::place::AnyPlace;
use crate::address::signal::send_system;
use crate::mail::extras::System;
use crate::mail::mailbox::{Phase, Sent};
use crate::node::shared::Node;
use crate::stop_reason::StopReason;

/// How often a shutdown looks whether everybody has stopped.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Threads that idle actors' `stopping` hooks are spread over, for each core: enough that a few
/// that block leave others.
const JOBS_PER_CORE: usize = 8;

/// What a shutdown came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Actors whose `stopping` hook ran to its end.
    pub stopped: usize,
    /// Actors that were killed at the deadline.
    pub killed: Vec<ActorId>,
}

impl Node {
    /// Stops every actor after the messages that wait now, also those that wake meanwhile; kills
    /// who is left at the deadline. From then on every address refuses, those given out later too.
    /// Actors that await it in a handler are not waited for: they stop when that handler has
    /// ended.
    pub async fn shutdown(&self, deadline: Duration) -> ShutdownReport {
        let until = self.elapsed().saturating_add(deadline);
        let callers = &self.shared().holdings().shutdown_callers;
        let _awaits = current::actor().map(|caller| callers.add(caller.header().serial()));
        let is_caller = |place: &Arc<dyn AnyPlace>| callers.has(place.header().serial());
        // Who stops may wake others for a last word.
        let mut stopped = self.stop_in_rounds(until, &is_caller).await;
        self.shared().shut();
        self.close_sleepers();
        // Those who started after the last look, before nobody could any more.
        stopped += self.stop_in_rounds(until, &is_caller).await;
        let killed = self.close(is_caller);
        self.shared().forget_types();
        ShutdownReport { stopped, killed }
    }

    /// Ends the node at once, as its process would by being killed: no hook runs, states are
    /// dropped, what waits is refused, and so is everything from then on. A handler that is running
    /// now ends with its actor as soon as it waits.
    pub fn kill(&self) {
        self.shared().shut();
        self.shared().holdings().directory.for_each(|place| {
            let mut inner = place.header().mailbox.lock();
            if inner.has_ended() {
                return;
            }
            inner.shut();
            let is_free = inner.phase == Phase::Idle;
            if is_free {
                inner.phase = Phase::Running;
            }
            // Released before ending the life, which takes the lock.
            drop(inner);
            if is_free {
                Run::new(place.clone()).end(StopReason::Killed);
            } else {
                send_system(place, System::Kill);
            }
        });
        self.close_foreign();
        self.shared().forget_types();
    }

    /// Asks everybody to stop, again and again, until nobody is awake or the time is over; returns
    /// how many have stopped.
    async fn stop_in_rounds(
        &self,
        until: Duration,
        is_caller: &impl Fn(&Arc<dyn AnyPlace>) -> bool,
    ) -> usize {
        let mut stopped = 0;
        loop {
            let mut stopping = self.ask_all_to_stop();
            let mut asked = stopping.len();
            loop {
                // One may begin to await the end meanwhile.
                asked -= stopping.extract_if(.., |life| is_caller(&life.place)).count();
                stopping.retain(|life| !life.has_ended());
                if stopping.is_empty() || self.elapsed() >= until {
                    break;
                }
                // By the caller's clock: the node's runtime may have ended, or be driven by nobody.
                self.shared().env.sleep_here(LOOK_EVERY).await;
            }
            stopped += asked - stopping.len();
            if asked == 0 || self.elapsed() >= until {
                return stopped;
            }
        }
    }

    /// Closes the addresses of those who sleep.
    fn close_sleepers(&self) {
        self.shared().holdings().directory.for_each(close_sleeper);
        self.close_foreign();
    }

    /// Closes the addresses of other nodes' anonymous actors.
    fn close_foreign(&self) {
        self.shared().holdings().foreign.held().iter().for_each(close_sleeper);
    }

    /// Asks everybody who is awake, and returns who that was.
    fn ask_all_to_stop(&self) -> Vec<Asked> {
        let (mut stopping, mut idle) = (Vec::new(), Vec::new());
        self.shared().holdings().directory.for_each(|place| {
            let mut inner = place.header().mailbox.lock();
            let (is_asleep, life) = (inner.sleeps_now(), inner.lives());
            // Released before asking, which takes the lock.
            drop(inner);
            if !is_asleep {
                idle.extend(request_stop(place, StopReason::NodeShutdown, Sent::Here));
                stopping.push(Asked { place: place.clone(), life });
            }
        });
        self.stop_idle(idle);
        stopping
    }

    /// Stops idle actors away from the runtime's workers: a `stopping` hook that blocks its thread
    /// must not keep the deadline from being seen.
    fn stop_idle(&self, mut idle: Vec<Run>) {
        let cores = if self.shared().env.is_simulated() {
            // A simulation must not depend on the machine.
            1
        } else {
            std::thread::available_parallelism().map_or(1, usize::from)
        };
        let jobs = cores * JOBS_PER_CORE;
        let share = idle.len().div_ceil(jobs).max(1);
        while !idle.is_empty() {
            let runs = idle.split_off(idle.len().saturating_sub(share));
            self.shared().env.spawn_blocking(move || runs.into_iter().for_each(Run::run_now));
        }
    }

    /// Closes every address and kills who is still awake; returns who that was.
    fn close(&self, is_caller: impl Fn(&Arc<dyn AnyPlace>) -> bool) -> Vec<ActorId> {
        let mut killed = Vec::new();
        self.shared().holdings().directory.for_each(|place| {
            close_sleeper(place);
            let mut inner = place.header().mailbox.lock();
            let is_asleep = inner.sleeps_now();
            inner.shut();
            // Released before killing, which takes the lock.
            drop(inner);
            if !is_asleep && !is_caller(place) {
                killed.push(place.header().id());
                send_system(place, System::Kill);
            }
        });
        killed
    }
}

/// A life that was asked to stop. If the actor is woken meanwhile, that is another life, which the
/// next round asks.
struct Asked {
    place: Arc<dyn AnyPlace>,
    life: u32,
}

impl Asked {
    fn has_ended(&self) -> bool {
        let mut inner = self.place.header().mailbox.lock();
        inner.lives() != self.life || inner.sleeps_now()
    }
}
