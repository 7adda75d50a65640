//! What an end promises: no accepted message is lost by a stop, none is accepted after a kill, and
//! nobody is started to be stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::support::{
    Do, Log, Note, On, act, flex, later, lines, logging, node, settle, soon, within,
};
use althing::{
    Actor, ActorError, ActorRef, AskError, Context, Handler, Node, Priority, StopReason,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Tells of a handler travel in bundles; a stop must not pass the bundle that was made before it.
#[test]
fn tells_accepted_before_a_stop_run_before_it() {
    within(On::OneThread, async {
        let node = node();
        let (target, log) = logging(&node);
        let to = target.clone();
        let telling = act(move |_, _| {
            for n in 1..=3 {
                to.send(Note(n)).try_tell().unwrap();
            }
            drop(to.stop());
        });
        flex(&node).send(telling).await.unwrap();
        soon("the stop", target.stopped()).await;
        assert_eq!(lines(&log), ["1", "2", "3"]);
    });
}

#[test]
fn a_tell_to_an_actor_that_its_teller_has_killed_is_refused() {
    within(On::OneThread, async {
        let node = node();
        let target = flex(&node);
        let refused = Arc::new(Mutex::new(None));
        let outcome = refused.clone();
        let telling = act(move |_, _| {
            target.send(Note(1)).try_tell().unwrap();
            target.send(Note(2)).try_tell().unwrap();
            target.kill();
            *outcome.lock() = Some(target.send(Note(3)).try_tell().is_err());
        });
        flex(&node).send(telling).await.unwrap();
        assert_eq!(*refused.lock(), Some(true));
    });
}

/// A named actor that counts its lives.
struct Sleeper(Arc<AtomicU32>);

impl Actor for Sleeper {
    const NAME: &'static str = "test.sleeper";

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

#[test]
fn an_actor_that_sleeps_is_not_started_to_be_stopped_or_killed() {
    within(On::PausedTime, async {
        let lives = Arc::new(AtomicU32::new(0));
        let counted = lives.clone();
        let node = Node::builder("test")
            .actor(move |_| {
                let lives = counted.clone();
                async move { Ok(Sleeper(lives)) }
            })
            .build();
        soon("the stop", node.get::<Sleeper>("stopped").stop()).await;
        node.get::<Sleeper>("killed").kill();
        settle().await;
        assert_eq!(lives.load(SeqCst), 0);
    });
}

/// Both waits are for a life that was there, and there was none: the next life is nobody's to wait
/// for, even if it begins before the waits are polled.
#[test]
fn the_end_of_an_actor_that_sleeps_is_not_that_of_the_life_after_it() {
    within(On::OneThread, async {
        let node = Node::builder("test").actor(|_| async { Ok(Sleeper(Arc::default())) }).build();
        let sleeper = node.get::<Sleeper>("woken");
        let (stop, stopped) = (sleeper.stop(), sleeper.stopped());
        sleeper.activate();
        while !sleeper.is_active() {
            tokio::task::yield_now().await;
        }
        soon("the stop", stop).await;
        soon("the end", stopped).await;
        assert!(sleeper.is_active());
    });
}

/// Unloads itself.
struct Nap(Arc<AtomicU32>);

impl Handler<Nap> for Sleeper {
    type Reply = ();

    async fn handle(&mut self, Nap(naps): Nap, ctx: &mut Context<Self>) {
        naps.fetch_add(1, SeqCst);
        ctx.passivate();
    }
}

/// The bundle in which a handler tells is still open, and nothing more is in it.
#[test]
fn whoever_has_told_an_actor_does_not_wait_for_the_end_of_a_life_that_is_over() {
    within(On::Workers(2), async {
        let lives = Arc::new(AtomicU32::new(0));
        let counted = lives.clone();
        let node = Node::builder("test")
            .actor(move |_| {
                let lives = counted.clone();
                async { Ok(Sleeper(lives)) }
            })
            .build();
        let sleeper = node.get::<Sleeper>("told");
        let telling = later(async move {
            let naps = Arc::new(AtomicU32::new(0));
            for _ in 0..2 {
                sleeper.send(Nap(naps.clone())).try_tell().unwrap();
            }
            tokio::task::block_in_place(|| {
                while naps.load(SeqCst) < 2 || sleeper.is_active() {
                    std::thread::yield_now();
                }
            });
            // Without a deadline here, at which they would look again.
            sleeper.stopped().await;
            sleeper.stop().await;
            0
        });
        let teller = flex(&node);
        let telling = teller.send(telling).timeout(Duration::from_secs(60));
        soon("the teller", telling).await.expect("nothing is wrong");
        assert_eq!(lives.load(SeqCst), 2, "nobody is started to be stopped");
    });
}

/// Its own stop can end only after it: waiting for that inside would be waiting for itself, and a
/// stop has no deadline.
#[test]
fn a_handler_that_awaits_its_own_stop_does_not_wait_for_ever() {
    within(On::PausedTime, async {
        let awaiting = Do(Box::new(|_, ctx| {
            let me = ctx.address();
            Box::pin(async move {
                me.stop().await;
                0
            })
        }));
        let asked = flex(&node()).send(awaiting).timeout(Duration::from_secs(3_600)).await;
        assert!(!matches!(asked, Err(AskError::Timeout(_))), "{asked:?}");
    });
}

/// Blocks its thread at its end.
struct Blocks;

impl Actor for Blocks {
    const NAME: &'static str = "test.blocks";

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn hooks_that_block_do_not_hold_up_a_shutdown_beyond_its_deadline() {
    // A worker for each of them and more: only what the shutdown runs on its own thread can hold it
    // up.
    within(On::Workers(12), async {
        let node = node();
        for _ in 0..8 {
            node.spawn(Blocks);
        }
        let begun = Instant::now();
        let report = node.shutdown(Duration::from_millis(100)).await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "{took:?} for a deadline of 100 ms: {report:?}");
    });
}

/// Writes down what it is told, and its end; waits in a handler until the test lets it go on.
#[derive(Clone, Default)]
struct Clerk {
    log: Log,
    gate: Arc<Notify>,
}

struct Wait;
struct Write(&'static str);

impl Actor for Clerk {
    const NAME: &'static str = "test.clerk";

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        self.log.lock().push("the end".into());
    }
}

impl Handler<Wait> for Clerk {
    type Reply = ();

    async fn handle(&mut self, _: Wait, _: &mut Context<Self>) {
        self.gate.notified().await;
    }
}

impl Handler<Write> for Clerk {
    type Reply = ();

    async fn handle(&mut self, Write(line): Write, _: &mut Context<Self>) {
        self.log.lock().push(line.into());
    }
}

/// A named one that waits in each of two handlers.
async fn clerk() -> (ActorRef<Clerk>, Clerk) {
    let clerk = Clerk::default();
    let each = clerk.clone();
    let node = Node::builder("test")
        .actor(move |_| {
            let clerk = each.clone();
            async move { Ok(clerk) }
        })
        .build();
    let named = node.get::<Clerk>("a");
    for _ in 0..2 {
        named.send(Wait).try_tell().expect("there is room");
    }
    settle().await;
    (named, clerk)
}

#[test]
fn what_waits_at_a_stop_runs_before_it_though_urgent_messages_come() {
    within(On::PausedTime, async {
        let (named, Clerk { log, gate }) = clerk().await;
        for line in ["1", "2", "3"] {
            named.send(Write(line)).try_tell().unwrap();
        }
        let stopped = named.stop();
        gate.notify_one();
        settle().await;
        for line in ["urgent 1", "urgent 2", "urgent 3"] {
            named.send(Write(line)).priority(Priority::High).try_tell().unwrap();
        }
        gate.notify_one();
        soon("the stop", stopped).await;
        assert_eq!(lines(&log)[..4], ["1", "2", "3", "the end"]);
        settle().await;
        assert_eq!(lines(&log)[4..], ["urgent 1", "urgent 2", "urgent 3"], "in its next life");
    });
}

#[test]
fn what_waits_with_low_priority_at_a_stop_runs_before_it_though_others_come() {
    within(On::PausedTime, async {
        let (named, Clerk { log, gate }) = clerk().await;
        named.send(Write("low")).priority(Priority::Low).try_tell().unwrap();
        let stopped = named.stop();
        gate.notify_one();
        settle().await;
        named.send(Write("later")).try_tell().unwrap();
        gate.notify_one();
        soon("the stop", stopped).await;
        assert_eq!(lines(&log)[..2], ["low", "the end"]);
        settle().await;
        assert_eq!(lines(&log)[2..], ["later"], "in its next life");
    });
}
