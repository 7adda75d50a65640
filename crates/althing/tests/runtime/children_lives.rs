//! A child belongs to the life that started it: what becomes of it later does not concern the
//! parent's next life.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Flex, On, act, later, nothing, settle, soon, within};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, ChildStrategy, Context, Handler, Node, Supervision,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Counts its starts.
struct Child(Arc<AtomicU32>);

/// Fails at the sign.
struct Fail(oneshot::Receiver<()>);

impl Actor for Child {
    const NAME: &'static str = "test.child";

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

impl Handler<Fail> for Child {
    type Reply = ();

    async fn handle(&mut self, Fail(sign): Fail, _: &mut Context<Self>) {
        sign.await.ok();
        panic!("on purpose");
    }
}

/// A parent that can be built anew, and how many lives it has begun.
fn parent(children: Supervision) -> (ActorRef<Flex>, Arc<AtomicU32>) {
    let node = Node::builder("test")
        .options::<Flex>(ActorOptions::default().children(ChildStrategy::AllForOne))
        .options::<Child>(ActorOptions::default().supervision(children))
        .build();
    let lives = Arc::new(AtomicU32::new(0));
    let counted = lives.clone();
    let parent = node.spawn_with(move |_| {
        counted.fetch_add(1, SeqCst);
        async { Ok(Flex::default()) }
    });
    (parent, lives)
}

/// Starts a child, and returns it with the number of its starts.
async fn child_of(parent: &ActorRef<Flex>) -> (ActorRef<Child>, Arc<AtomicU32>) {
    let (starts, child) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(None)));
    let (counted, started) = (starts.clone(), child.clone());
    let starting = act(move |_, ctx| {
        let child = ctx.spawn(move |_| {
            let counted = counted.clone();
            async move { Ok(Child(counted)) }
        });
        *started.lock() = Some(child);
    });
    parent.send(starting).await.expect("the parent runs");
    let child = child.lock().take().expect("it was started");
    (child, starts)
}

/// Has a child of a first life fail in the second.
async fn fail_after_the_parent(parent: &ActorRef<Flex>, child: &ActorRef<Child>) {
    let (fail, sign) = oneshot::channel();
    child.send(Fail(sign)).try_tell().expect("there is room");
    settle().await;
    parent.send(act(|_, _| panic!("on purpose"))).await.expect_err("it fails");
    parent.send(nothing()).await.expect("the second life runs");
    fail.send(()).expect("it waits");
}

#[test]
fn a_failure_that_is_escalated_does_not_reach_the_life_after_the_parents_own() {
    within(On::PausedTime, async {
        let (parent, lives) = parent(Supervision::Escalate);
        let (child, _) = child_of(&parent).await;
        fail_after_the_parent(&parent, &child).await;
        soon("the child's end", child.stopped()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        parent.send(nothing()).await.expect("it runs");
        assert_eq!(lives.load(SeqCst), 2);
    });
}

#[test]
fn a_failure_that_was_escalated_before_its_parent_failed_does_not_reach_the_next_life() {
    within(On::PausedTime, async {
        let (parent, lives) = parent(Supervision::Escalate);
        let (child, _) = child_of(&parent).await;
        let (fail, sign) = oneshot::channel::<()>();
        let failing = later(async move {
            sign.await.ok();
            panic!("on purpose")
        });
        parent.send(failing).try_tell().expect("there is room");
        settle().await;
        let (now, when) = oneshot::channel();
        now.send(()).expect("it is held");
        child.send(Fail(when)).await.expect_err("it fails");
        soon("the child's end", child.stopped()).await;
        fail.send(()).expect("it waits");
        tokio::time::sleep(Duration::from_secs(1)).await;
        parent.send(nothing()).await.expect("it runs");
        assert_eq!(lives.load(SeqCst), 2);
    });
}

#[test]
fn a_child_of_an_earlier_life_restarts_none_of_the_next_one() {
    within(On::PausedTime, async {
        let (parent, _) = parent(Supervision::default());
        let (child, _) = child_of(&parent).await;
        let (fail, sign) = oneshot::channel();
        child.send(Fail(sign)).try_tell().expect("there is room");
        settle().await;
        parent.send(act(|_, _| panic!("on purpose"))).await.expect_err("it fails");
        let (_next, starts) = child_of(&parent).await;
        settle().await;
        fail.send(()).expect("it waits");
        soon("the child's end", child.stopped()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(starts.load(SeqCst), 1);
    });
}
