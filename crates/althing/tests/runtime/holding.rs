//! An actor that runs nothing is sealed and frozen at once, whatever it waits for: the end of its
//! pause before a restart, or of another hold.

use std::time::Duration;

use crate::support::{On, flex, later, settle, within};
use althing::{Actor, ActorOptions, ActorRef, Context, Handler, Node, RestartPolicy, Supervision};
use futures_util::poll;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

const PAUSE: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(1);

/// Pauses for an hour before its second restart.
struct Fragile;

struct Fail;
struct Touch;

impl Actor for Fragile {
    const NAME: &'static str = "test.fragile";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Restart(RestartPolicy {
            backoff: PAUSE,
            backoff_max: PAUSE,
            window: 10 * PAUSE,
            ..RestartPolicy::default()
        }))
    }
}

impl Handler<Fail> for Fragile {
    type Reply = ();

    async fn handle(&mut self, _: Fail, _: &mut Context<Self>) {
        panic!("on purpose");
    }
}

impl Handler<Touch> for Fragile {
    type Reply = ();

    async fn handle(&mut self, _: Touch, _: &mut Context<Self>) {}
}

/// One that has begun to pause.
async fn pausing() -> (Node, ActorRef<Fragile>) {
    let node = Node::builder("test").actor(async |_| Ok(Fragile)).build();
    let fragile = node.get::<Fragile>("a");
    for _ in 0..2 {
        fragile.send(Fail).await.expect_err("it fails");
    }
    settle().await;
    (node, fragile)
}

#[test]
fn a_freeze_does_not_wait_for_the_end_of_a_pause() {
    within(On::PausedTime, async {
        let (node, fragile) = pausing().await;
        timeout(SOON, node.freeze()).await.expect("nothing runs");
        tokio::time::sleep(2 * PAUSE).await;
        assert!(!fragile.is_active(), "its node is frozen");
        node.thaw();
        fragile.send(Touch).await.expect("it goes on");
    });
}

#[test]
fn a_pause_goes_on_after_a_freeze_and_after_a_seal() {
    within(On::PausedTime, async {
        let (node, fragile) = pausing().await;
        let begun = Instant::now();
        timeout(SOON, node.freeze()).await.expect("nothing runs");
        node.thaw();
        let sealed = timeout(SOON, node.seal(&fragile.id())).await.expect("nothing runs");
        drop(sealed.expect("it is in memory"));
        fragile.send(Touch).timeout(2 * PAUSE).await.expect("it starts in the end");
        assert!(begun.elapsed() > PAUSE / 2, "{:?}", begun.elapsed());
    });
}

#[test]
fn an_actor_that_pauses_is_sealed_and_departs() {
    within(On::PausedTime, async {
        let (node, fragile) = pausing().await;
        let sealed = timeout(SOON, node.seal(&fragile.id())).await.expect("nothing runs");
        tokio::time::sleep(2 * PAUSE).await;
        assert!(!fragile.is_active(), "it is sealed");
        timeout(SOON, sealed.expect("it is in memory").depart()).await.expect("it goes");
        // It lives here still, so it comes back.
        fragile.send(Touch).await.expect("it starts");
    });
}

#[test]
fn a_freeze_does_not_wait_for_the_end_of_a_seal() {
    within(On::PausedTime, async {
        let node = crate::support::node();
        let actor = flex(&node);
        let (end, ended) = oneshot::channel();
        let waiting = later(async move { ended.await.expect("the test says when") });
        actor.send(waiting).try_tell().expect("there is room");
        settle().await;
        let id = actor.id();
        let mut sealing = Box::pin(node.seal(&id));
        assert!(poll!(&mut sealing).is_pending(), "a handler runs");
        let mut freezing = Box::pin(node.freeze());
        assert!(poll!(&mut freezing).is_pending(), "a handler runs");
        // Both wait with the actor for the end of its handler.
        settle().await;
        end.send(0).expect("the handler waits");
        let sealed = sealing.await.expect("it is in memory");
        timeout(SOON, freezing).await.expect("nothing runs");
        drop(sealed);
    });
}
