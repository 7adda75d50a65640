//! A turn that is aborted lets nothing out, not even by what its handler's locals do when they are
//! dropped. And it takes nothing of others along.

use std::future::pending;
use std::time::Duration;

use crate::support::{AtDrop, Flex, Note, On, lines, logging, node, within};
use althing::{Actor, ActorError, ActorRef, Commit, Context, Handler, Turns};

/// Whose disk fails after a while.
struct Keeper(ActorRef<Flex>);

struct Change;

/// Has a local that tells when it is dropped; then waits without end, or panics.
struct TellAtDrop {
    panics: bool,
}

impl Actor for Keeper {
    const NAME: &'static str = "test.keeper";
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, _: &mut Context<Self>) -> Commit {
        Commit::when(async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Err(ActorError::new("no space left on the disk"))
        })
    }
}

impl Handler<Change> for Keeper {
    type Reply = ();

    async fn handle(&mut self, _: Change, _: &mut Context<Self>) {}
}

impl Handler<TellAtDrop> for Keeper {
    type Reply = ();

    async fn handle(&mut self, TellAtDrop { panics }: TellAtDrop, _: &mut Context<Self>) {
        let listener = self.0.clone();
        let _tells = AtDrop(move || {
            listener.send(Note(1)).try_tell().expect("there is room");
        });
        tokio::task::yield_now().await;
        assert!(!panics, "on purpose");
        pending::<()>().await;
    }
}

#[test]
fn what_the_locals_of_an_aborted_handler_tell_goes_with_its_turn() {
    within(On::PausedTime, async {
        let node = node();
        for (panics, is_killed) in [(false, false), (true, false), (false, true)] {
            let (listener, log) = logging(&node);
            let keeper = node.spawn(Keeper(listener));
            keeper.send(Change).try_tell().expect("there is room");
            keeper.send(TellAtDrop { panics }).try_tell().expect("there is room");
            tokio::time::sleep(Duration::from_millis(50)).await;
            if is_killed {
                keeper.kill();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(keeper.is_stopped());
            assert!(lines(&log).is_empty(), "panics: {panics}, killed: {is_killed}");
        }
    });
}

/// Tells when it is dropped.
struct Fragile(ActorRef<Flex>);

struct Touch {
    breaks: bool,
}

impl Actor for Fragile {
    const NAME: &'static str = "test.fragile";
}

impl Handler<Touch> for Fragile {
    type Reply = ();

    async fn handle(&mut self, Touch { breaks }: Touch, _: &mut Context<Self>) {
        assert!(!breaks, "on purpose");
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.0.send(Note(2)).try_tell().expect("there is room");
    }
}

struct Break(ActorRef<Fragile>);

impl Handler<Break> for Keeper {
    type Reply = ();

    async fn handle(&mut self, Break(other): Break, _: &mut Context<Self>) {
        other.send(Touch { breaks: true }).await.expect_err("it broke");
    }
}

#[test]
fn what_the_state_of_an_actor_tells_that_breaks_in_a_held_turn_is_not_the_turns() {
    within(On::PausedTime, async {
        let node = node();
        let (listener, log) = logging(&node);
        let fragile = node.spawn(Fragile(listener.clone()));
        for _ in 0..2 {
            // From now on it is asked in place.
            fragile.send(Touch { breaks: false }).await.expect("it answers");
        }
        let keeper = node.spawn(Keeper(listener));
        keeper.send(Break(fragile)).try_tell().expect("there is room");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(keeper.is_stopped());
        assert_eq!(lines(&log), ["2"]);
    });
}
