//! Timers belong to one life of one actor, and nothing that one actor's messages do ends the timers
//! of others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Charge, Count, Flex, Note, On, act, flex, lines, node, within};
use althing::{
    Actor, ActorError, ActorOptions, Context, Handler, Node, Start, StopReason, Supervision,
};

/// A named actor with a timer, which takes longer to stop than its timer to fire.
struct Ticking(Arc<AtomicU32>);

#[derive(Clone)]
struct Tick;

impl Actor for Ticking {
    const NAME: &'static str = "test.ticking";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.0.fetch_add(1, SeqCst);
        ctx.every(Duration::from_millis(30), Tick);
        Ok(())
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Handler<Tick> for Ticking {
    type Reply = ();

    async fn handle(&mut self, _: Tick, _: &mut Context<Self>) {}
}

#[test]
fn a_tick_that_comes_while_its_actor_stops_does_not_begin_another_life() {
    within(On::PausedTime, async {
        let lives = Arc::new(AtomicU32::new(0));
        let counted = lives.clone();
        let node = Node::builder("test")
            .actor(move |_: Start<Ticking>| {
                let lives = counted.clone();
                async move { Ok(Ticking(lives)) }
            })
            .build();
        let ticking = node.get::<Ticking>("a");
        ticking.send(Tick).await.unwrap();
        ticking.stop().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((lives.load(SeqCst), ticking.is_active()), (1, false));
    });
}

struct BadClone;

impl Clone for BadClone {
    fn clone(&self) -> Self {
        panic!("a clone on purpose");
    }
}

impl Handler<BadClone> for Flex {
    type Reply = ();

    async fn handle(&mut self, _: BadClone, _: &mut Context<Self>) {}
}

impl Handler<Charge> for Flex {
    type Reply = ();

    async fn handle(&mut self, charge: Charge, _: &mut Context<Self>) {
        std::mem::forget(charge);
    }
}

/// How many times a timer of 10 ms has fired ten seconds after it was set.
async fn rings_on(node: &Node) -> usize {
    let good = flex(node);
    let arming = act(|_, ctx| {
        ctx.after(Duration::from_millis(10), Note(1));
    });
    good.send(arming).await.expect("it runs");
    tokio::time::sleep(Duration::from_secs(10)).await;
    good.send(Count).await.expect("it runs")
}

#[test]
fn timers_go_on_after_a_message_whose_clone_panics() {
    within(On::PausedTime, async {
        let node = node();
        let bad = flex(&node);
        let arming = act(|_, ctx| {
            ctx.every(Duration::from_millis(10), BadClone);
        });
        bad.send(arming).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(rings_on(&node).await, 1);
    });
}

/// A timer of a stopped actor fires into nothing, and its message is dropped then.
#[test]
fn timers_go_on_after_a_message_whose_drop_panics() {
    within(On::PausedTime, async {
        let node = node();
        let bad = flex(&node);
        let arming = act(|_, ctx| {
            ctx.after(Duration::from_millis(10), Charge);
        });
        bad.send(arming).await.unwrap();
        bad.stop().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(rings_on(&node).await, 1);
    });
}

/// Counts how often it was cloned; the second clone panics.
struct ClonesBadlyOnce(Arc<AtomicU32>);

impl Clone for ClonesBadlyOnce {
    fn clone(&self) -> Self {
        assert_ne!(self.0.fetch_add(1, SeqCst), 1, "a clone on purpose");
        Self(self.0.clone())
    }
}

impl Handler<ClonesBadlyOnce> for Flex {
    type Reply = ();

    async fn handle(&mut self, _: ClonesBadlyOnce, _: &mut Context<Self>) {
        self.log.lock().push("tick".into());
    }
}

#[test]
fn a_periodic_timer_goes_on_with_an_actor_that_survives_its_clone() {
    within(On::PausedTime, async {
        let options = ActorOptions::default().supervision(Supervision::Resume);
        let node = Node::builder("test").options::<Flex>(options).build();
        let (actor, log) = crate::support::logging(&node);
        let arming = act(|_, ctx| {
            ctx.every(Duration::from_secs(1), ClonesBadlyOnce(Arc::default()));
        });
        actor.send(arming).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5_500)).await;
        assert_eq!(lines(&log).len(), 4, "of five ticks one failed");
    });
}

/// Unloads as its first life starts, once it has asked to be woken; that is due before it is gone.
struct Dozing {
    lives: Arc<AtomicU32>,
    woken: Arc<AtomicU32>,
}

struct Wake;

impl Actor for Dozing {
    const NAME: &'static str = "test.dozing";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        if self.lives.fetch_add(1, SeqCst) == 0 {
            ctx.wake_after(Duration::ZERO, Wake);
            ctx.passivate();
        }
        Ok(())
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Handler<Wake> for Dozing {
    type Reply = ();

    async fn handle(&mut self, _: Wake, _: &mut Context<Self>) {
        self.woken.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_waking_timer_brings_back_an_actor_that_unloads_as_it_starts() {
    within(On::PausedTime, async {
        let (lives, woken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let counts = (lives.clone(), woken.clone());
        let node = Node::builder("test")
            .actor(move |_: Start<Dozing>| {
                let (lives, woken) = counts.clone();
                async move { Ok(Dozing { lives, woken }) }
            })
            .build();
        node.get::<Dozing>("a").activate();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((lives.load(SeqCst), woken.load(SeqCst)), (2, 1));
    });
}

/// Sets timers in its last hook.
struct Setting(Arc<AtomicU32>);

impl Actor for Setting {
    const NAME: &'static str = "test.setting";

    async fn stopping(&mut self, ctx: &mut Context<Self>, _: StopReason) {
        ctx.after(Duration::ZERO, Tick);
        ctx.wake_after(Duration::from_millis(1), Tick);
        ctx.every(Duration::from_millis(1), Tick);
    }
}

impl Handler<Tick> for Setting {
    type Reply = ();

    async fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn timers_of_the_last_hook_end_with_the_life_whose_hook_it_was() {
    within(On::PausedTime, async {
        let ticks = Arc::new(AtomicU32::new(0));
        let counted = ticks.clone();
        let node = Node::builder("test")
            .actor(move |_: Start<Setting>| {
                let ticks = counted.clone();
                async move { Ok(Setting(ticks)) }
            })
            .build();
        let setting = node.get::<Setting>("a");
        setting.send(Tick).await.unwrap();
        setting.stop().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((ticks.load(SeqCst), setting.is_active()), (1, false));
    });
}
