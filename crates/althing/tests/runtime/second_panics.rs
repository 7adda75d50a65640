//! A panic that follows a panic: a state, a message or a handler's value whose drop panics too.
//!
//! Such a drop comes while the runtime is already seeing to the first panic. It must end the actor
//! like any other panic: not the asker, not the publisher, not the claim on the actor, and nobody
//! else.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Charge, Flex, Log, On, act, flex, node, nothing, settle, soon, within};
use althing::{Actor, ActorRef, Context, EventHandler, Handler, Node, Published, TopicOptions};
use parking_lot::Mutex;

/// An actor whose state panics when it is dropped.
fn charged(node: &Node) -> ActorRef<Flex> {
    node.spawn(Flex { log: Log::default(), kept: vec![Box::new(Charge)] })
}

#[test]
fn an_actor_whose_drop_panics_after_its_handler_did_has_ended() {
    within(On::PausedTime, async {
        let bad = charged(&node());
        bad.send(act(|_, _| panic!("on purpose"))).try_tell().unwrap();
        settle().await;
        bad.kill();
        soon("stopped() after kill()", bad.stopped()).await;
        soon("stop()", bad.stop()).await;
    });
}

#[test]
fn an_asker_survives_an_actor_whose_drop_panics_after_its_handler_did() {
    within(On::OneThread, async {
        let bad = charged(&node());
        bad.send(nothing()).await.unwrap();
        let asked = tokio::spawn(async move { bad.send(act(|_, _| panic!("on purpose"))).await });
        assert!(asked.await.is_ok_and(|reply| reply.is_err()));
    });
}

/// Panics at the first event if it is charged, and then again when it is dropped.
struct Ear {
    heard: Arc<Mutex<Vec<u64>>>,
    charge: Option<Charge>,
}

impl Actor for Ear {
    const NAME: &'static str = "test.ear";
}

impl EventHandler<u64> for Ear {
    async fn event(&mut self, event: &Published<u64>, _: &mut Context<Self>) {
        assert!(self.charge.is_none(), "on purpose");
        self.heard.lock().push(event.payload);
    }
}

#[test]
fn a_publisher_and_the_other_subscribers_survive_one_whose_drop_panics_too() {
    within(On::PausedTime, async {
        let node = node();
        let topic = node.topic::<u64>("numbers", TopicOptions::default());
        let heard = Arc::<Mutex<Vec<u64>>>::default();
        let bad = node.spawn(Ear { heard: heard.clone(), charge: Some(Charge) });
        let good = node.spawn(Ear { heard: heard.clone(), charge: None });
        let _subscriptions = (topic.subscribe(&bad), topic.subscribe(&good));
        let publisher = topic.clone();
        let published = tokio::spawn(async move { publisher.publish(1) }).await;
        topic.publish(2).expect("anybody may publish");
        topic.publish(3).expect("anybody may publish");
        settle().await;
        assert!(published.is_ok(), "the publisher panicked");
        assert_eq!(*heard.lock(), [1, 2, 3]);
        assert_eq!(topic.pending(), 0);
    });
}

struct ChargedNote(Charge);

impl Handler<ChargedNote> for Flex {
    type Reply = ();

    async fn handle(&mut self, ChargedNote(charge): ChargedNote, _: &mut Context<Self>) {
        std::mem::forget(charge);
    }
}

/// The bundle of a handler's tells is handed over after the handler; what its target refuses is
/// dropped then, on the teller's side.
#[test]
fn a_teller_survives_refused_messages_whose_drop_panics() {
    within(On::PausedTime, async {
        let node = node();
        let (teller, refusing) = (flex(&node), flex(&node));
        teller.send(nothing()).await.unwrap();
        let telling = act(move |_, _| {
            refusing.send(ChargedNote(Charge)).try_tell().unwrap();
            refusing.send(ChargedNote(Charge)).try_tell().unwrap();
            refusing.kill();
        });
        let asker = teller.clone();
        let asked = tokio::spawn(async move { asker.send(telling).await }).await;
        assert!(asked.is_ok(), "the asker panicked");
        assert_eq!(teller.send(nothing()).await, Ok(0));
    });
}

#[test]
fn a_state_whose_drop_panics_at_a_stop_is_not_built_anew() {
    within(On::PausedTime, async {
        let lives = Arc::new(AtomicU32::new(0));
        let counted = lives.clone();
        let actor = node().spawn_with(move |_| {
            let is_first = counted.fetch_add(1, SeqCst) == 0;
            let charge: Option<Box<dyn Any + Send + Sync>> =
                is_first.then(|| Box::new(Charge) as Box<dyn Any + Send + Sync>);
            async move { Ok(Flex { log: Log::default(), kept: charge.into_iter().collect() }) }
        });
        settle().await;
        soon("the stop", actor.stop()).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!((lives.load(SeqCst), actor.is_active()), (1, false));
    });
}
