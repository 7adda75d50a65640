//! Senders that wait for room in a full mailbox: who is called up, and who may come first.

use std::collections::VecDeque;
use std::time::Duration;

use crate::support::{Do, Flex, Log, Note, On, act, later, lines, settle, within};
use althing::{ActorOptions, ActorRef, MailboxKind, Node, SendError};
use tokio::sync::oneshot;

const ROOM: u32 = 8;

/// An actor with little room, and its diary.
fn small() -> (ActorRef<Flex>, Log) {
    let options = ActorOptions::default().mailbox(MailboxKind::Bounded(ROOM));
    let node = Node::builder("test").options::<Flex>(options).build();
    let log = Log::default();
    (node.spawn(Flex { log: log.clone(), kept: Vec::new() }), log)
}

/// A message whose handler waits for its release.
fn held() -> (oneshot::Sender<()>, Do) {
    let (release, released) = oneshot::channel();
    let waiting = later(async {
        released.await.ok();
        0
    });
    (release, waiting)
}

/// Fills the mailbox beside a handler that waits; returns what releases each of them.
async fn fill(actor: &ActorRef<Flex>) -> VecDeque<oneshot::Sender<()>> {
    let mut releases = VecDeque::new();
    for _ in 0..=ROOM {
        let (release, message) = held();
        actor.send(message).try_tell().expect("there is room");
        releases.push_back(release);
        // The first one's handler begins.
        settle().await;
    }
    assert!(matches!(actor.send(Note(0)).try_tell(), Err(SendError::Full(Note(0)))));
    releases
}

#[test]
fn senders_that_wait_are_called_up_in_the_order_in_which_they_came() {
    within(On::PausedTime, async {
        let (actor, log) = small();
        let releases = fill(&actor).await;
        let waiting: Vec<_> = (1..=20)
            .map(|n| {
                let actor = actor.clone();
                tokio::spawn(async move { actor.send(Note(n)).tell().await })
            })
            .collect();
        settle().await;
        drop(releases);
        for told in waiting {
            told.await.expect("it ends").expect("there is room in time");
        }
        while lines(&log).len() < 20 {
            tokio::task::yield_now().await;
        }
        let in_order: Vec<_> = (1..=20).map(|n| n.to_string()).collect();
        assert_eq!(lines(&log), in_order);
    });
}

/// Each time that those who were called up leave the mailbox empty, more are called: a number that
/// must not overflow.
#[test]
fn thousands_of_senders_that_wait_for_little_room_all_get_it() {
    within(On::OneThread, async {
        let (actor, _log) = small();
        let releases = fill(&actor).await;
        let waiting: Vec<_> = (0..2_000)
            .map(|n| {
                let actor = actor.clone();
                tokio::spawn(async move { actor.send(Note(n)).tell().await })
            })
            .collect();
        settle().await;
        drop(releases);
        for told in waiting {
            told.await.expect("it ends").expect("there is room in time");
        }
    });
}

/// Room is not kept for those who wait: that would cost every sender of a busy actor a switch of
/// tasks for each message.
#[test]
fn a_sender_that_waits_may_be_overtaken_until_its_deadline_hands_its_message_back() {
    within(On::PausedTime, async {
        let (actor, _log) = small();
        let mut releases = fill(&actor).await;
        let waiter = actor.clone();
        let timeout = Duration::from_secs(2);
        let waiting =
            tokio::spawn(async move { waiter.send(Note(7)).timeout(timeout).tell().await });
        settle().await;
        while !waiting.is_finished() {
            releases.pop_front().expect("as many as the mailbox holds").send(()).ok();
            settle().await;
            let (release, message) = held();
            if actor.send(message).try_tell().is_ok() {
                releases.push_back(release);
            }
            // Whoever looks again by itself does so in between, and finds the mailbox full.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let told = waiting.await.expect("it ends");
        assert!(matches!(told, Err(SendError::Timeout(Note(7)))), "{told:?}");
    });
}

#[test]
fn a_sender_that_waits_is_called_up_when_the_actor_is_unloaded() {
    within(On::PausedTime, async {
        let options = ActorOptions::default().mailbox(MailboxKind::Bounded(1));
        let builder = Node::builder("test").actor(async |_| Ok(Flex::default()));
        let actor = builder.options::<Flex>(options).build().get::<Flex>("a");
        actor.send(act(|_, ctx| ctx.passivate())).try_tell().expect("there is room");
        let begun = tokio::time::Instant::now();
        actor.send(Note(1)).tell().await.expect("there is room again");
        assert_eq!(begun.elapsed(), Duration::ZERO, "it does not look for itself");
    });
}
