//! A turn that is aborted lets nothing out, not even by what its handler's locals do when they are
//! dropped.

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
