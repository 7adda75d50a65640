//! A stop that comes to an actor which is about to end otherwise: it unloads, or stops itself.
//!
//! What was told before the stop runs before whoever asked for it goes on, if need be in another
//! life, and then the actor has stopped.

use std::sync::Arc;

use crate::support::{Log, Note, On, lines, settle, soon, within};
use althing::{Actor, ActorRef, Context, Handler, Node, StopReason, Terminated};
use tokio::sync::Notify;

/// A named actor whose handlers and hooks wait.
#[derive(Clone, Default)]
struct Guest {
    log: Log,
    /// What its `stopping` hook waits for when it is unloaded.
    leaves: Arc<Notify>,
    /// What `Wait` waits for.
    gate: Arc<Notify>,
}

struct Unload;
struct End;
struct EndAndUnload;
struct Wait;

impl Actor for Guest {
    const NAME: &'static str = "test.guest";

    async fn stopping(&mut self, _: &mut Context<Self>, reason: StopReason) {
        self.log.lock().push(format!("{reason:?}"));
        if reason == StopReason::Passivated {
            self.leaves.notified().await;
        }
    }
}

impl Handler<Note> for Guest {
    type Reply = ();

    async fn handle(&mut self, Note(n): Note, _: &mut Context<Self>) {
        self.log.lock().push(n.to_string());
    }
}

impl Handler<Unload> for Guest {
    type Reply = ();

    async fn handle(&mut self, _: Unload, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

impl Handler<End> for Guest {
    type Reply = ();

    async fn handle(&mut self, _: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

impl Handler<EndAndUnload> for Guest {
    type Reply = ();

    async fn handle(&mut self, _: EndAndUnload, ctx: &mut Context<Self>) {
        ctx.stop();
        ctx.passivate();
    }
}

impl Handler<Wait> for Guest {
    type Reply = ();

    async fn handle(&mut self, _: Wait, _: &mut Context<Self>) {
        self.gate.notified().await;
    }
}

fn guest() -> (ActorRef<Guest>, Guest) {
    let guest = Guest::default();
    let each = guest.clone();
    let node = Node::builder("test")
        .actor(move |_| {
            let guest = each.clone();
            async move { Ok(guest) }
        })
        .build();
    (node.get("a"), guest)
}

#[test]
fn an_actor_that_is_stopped_while_it_unloads_runs_what_came_before_the_stop() {
    within(On::PausedTime, async {
        let (named, Guest { log, leaves, .. }) = guest();
        named.send(Unload).await.unwrap();
        settle().await;
        named.send(Note(1)).try_tell().unwrap();
        let stopped = named.stop();
        leaves.notify_one();
        soon("the stop", stopped).await;
        assert_eq!(lines(&log), ["Passivated", "1", "Requested"]);
        assert!(!named.is_active());
    });
}

/// Hears of the ends of others.
struct Watcher(Log);

struct Watch(ActorRef<Guest>);

impl Actor for Watcher {
    const NAME: &'static str = "test.watcher";

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.0.lock().push(format!("{:?}", other.reason));
    }
}

impl Handler<Watch> for Watcher {
    type Reply = ();

    async fn handle(&mut self, Watch(other): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }
}

#[test]
fn a_watcher_hears_of_an_actor_that_is_stopped_while_it_unloads() {
    within(On::PausedTime, async {
        let (named, Guest { leaves, .. }) = guest();
        let heard = Log::default();
        let watcher = named.node().spawn(Watcher(heard.clone()));
        watcher.send(Watch(named.clone())).await.unwrap();
        named.send(Unload).await.unwrap();
        settle().await;
        let stopped = named.stop();
        leaves.notify_one();
        soon("the stop", stopped).await;
        settle().await;
        assert_eq!(lines(&heard), ["Requested"]);
    });
}

#[test]
fn a_stop_is_not_lost_when_a_message_before_it_unloads_the_actor() {
    within(On::PausedTime, async {
        let (named, Guest { log, leaves, gate }) = guest();
        named.send(Wait).try_tell().unwrap();
        settle().await;
        named.send(Unload).try_tell().unwrap();
        named.send(Note(1)).try_tell().unwrap();
        let stopped = named.stop();
        gate.notify_one();
        leaves.notify_one();
        soon("the stop", stopped).await;
        assert_eq!(lines(&log), ["Passivated", "1", "Requested"]);
        assert!(!named.is_active());
    });
}

#[test]
fn a_stop_is_not_lost_when_the_last_message_before_it_unloads_the_actor() {
    within(On::PausedTime, async {
        let (named, Guest { leaves, gate, .. }) = guest();
        let heard = Log::default();
        let watcher = named.node().spawn(Watcher(heard.clone()));
        watcher.send(Watch(named.clone())).await.unwrap();
        named.send(Wait).try_tell().unwrap();
        settle().await;
        named.send(Unload).try_tell().unwrap();
        let stopped = named.stop();
        gate.notify_one();
        leaves.notify_one();
        soon("the stop", stopped).await;
        settle().await;
        assert_eq!(lines(&heard), ["Requested"]);
    });
}

#[test]
fn a_stop_is_not_lost_when_a_message_before_it_stops_the_actor() {
    within(On::PausedTime, async {
        let (named, Guest { log, gate, .. }) = guest();
        named.send(Wait).try_tell().unwrap();
        settle().await;
        named.send(End).try_tell().unwrap();
        named.send(Note(1)).try_tell().unwrap();
        let stopped = named.stop();
        gate.notify_one();
        soon("the stop", stopped).await;
        assert_eq!(lines(&log), ["Requested", "1", "Requested"]);
        assert!(!named.is_active());
    });
}

#[test]
fn what_comes_between_two_stops_runs_before_the_second() {
    within(On::PausedTime, async {
        let (named, Guest { log, gate, .. }) = guest();
        named.send(Wait).try_tell().unwrap();
        named.send(Wait).try_tell().unwrap();
        settle().await;
        drop(named.stop());
        gate.notify_one();
        settle().await;
        // The second handler waits, with the first stop behind it.
        named.send(Note(1)).try_tell().unwrap();
        let stopped = named.stop();
        gate.notify_one();
        soon("the stop", stopped).await;
        assert_eq!(lines(&log), ["Requested", "1", "Requested"]);
        assert!(!named.is_active());
    });
}

#[test]
fn a_handler_that_stops_its_actor_and_unloads_it_stops_it() {
    within(On::PausedTime, async {
        let (named, Guest { log, .. }) = guest();
        named.send(EndAndUnload).await.unwrap();
        settle().await;
        assert_eq!(lines(&log), ["Requested"]);
    });
}
