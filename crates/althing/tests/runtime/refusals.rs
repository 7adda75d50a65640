//! What an asker hears when user code panics around its message: a guard, a handler before its
//! first await, a handler that was to reply later, a refused message's drop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{Charge, On, node, settle, soon, within};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Admission, AskError, Context, Delayed,
    DelayedHandler, Handler, MailboxKind, Receives, ReplyTo,
};
use tokio::sync::Notify;

/// Room for two messages; counts its lives.
struct Gate {
    lives: Arc<AtomicU32>,
    opens: Arc<Notify>,
}

/// Its guard panics.
struct Suspect;
/// Its handler panics before there is a future.
struct Hasty;
/// Its handler panics while it holds the reply.
struct Patient;
/// Its guard refuses it, and its drop panics.
struct Unwanted(#[allow(dead_code, reason = "held for its drop")] Charge);
/// Its guard puts it aside.
struct Aside(#[expect(dead_code, reason = "held for its drop")] Option<Charge>);
/// Its handler waits.
struct Wait;

impl Actor for Gate {
    const NAME: &'static str = "test.gate";

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Bounded(2))
    }

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        self.lives.fetch_add(1, SeqCst);
        Ok(())
    }
}

impl Handler<Suspect> for Gate {
    type Reply = ();

    fn admit(&mut self, _: &Suspect, _: &mut Context<Self>) -> Admission {
        panic!("on purpose")
    }

    async fn handle(&mut self, _: Suspect, _: &mut Context<Self>) {}
}

impl Handler<Hasty> for Gate {
    type Reply = ();

    fn handle(&mut self, _: Hasty, _: &mut Context<Self>) -> impl Future<Output = ()> + Send {
        assert_eq!(self.lives.load(SeqCst), 0, "on purpose: it lives");
        async {}
    }
}

impl Receives<Patient> for Gate {
    type Reply = ();
    type Way = Delayed;
}

impl DelayedHandler<Patient> for Gate {
    type Reply = ();

    async fn handle(&mut self, _: Patient, _reply: ReplyTo<()>, _: &mut Context<Self>) {
        panic!("on purpose")
    }
}

impl Handler<Unwanted> for Gate {
    type Reply = ();

    fn admit(&mut self, _: &Unwanted, _: &mut Context<Self>) -> Admission {
        Admission::Reject("not today".into())
    }

    async fn handle(&mut self, _: Unwanted, _: &mut Context<Self>) {}
}

impl Handler<Aside> for Gate {
    type Reply = ();

    fn admit(&mut self, _: &Aside, _: &mut Context<Self>) -> Admission {
        Admission::Stash
    }

    async fn handle(&mut self, _: Aside, _: &mut Context<Self>) {}
}

impl Handler<Wait> for Gate {
    type Reply = ();

    async fn handle(&mut self, _: Wait, _: &mut Context<Self>) {
        self.opens.notified().await;
    }
}

fn gate() -> (ActorRef<Gate>, Arc<AtomicU32>) {
    let lives = Arc::new(AtomicU32::new(0));
    let counted = lives.clone();
    let gate = node().spawn_with(move |_| {
        let lives = counted.clone();
        async move { Ok(Gate { lives, opens: Arc::default() }) }
    });
    (gate, lives)
}

#[test]
fn whoever_asks_hears_that_a_guard_panicked() {
    within(On::OneThread, async {
        let (gate, _) = gate();
        assert_eq!(gate.send(Suspect).await, Err(AskError::HandlerPanicked(gate.id())));
    });
}

#[test]
fn whoever_asks_hears_that_a_handler_panicked_before_it_had_a_future() {
    within(On::OneThread, async {
        let (gate, _) = gate();
        assert_eq!(gate.send(Hasty).await, Err(AskError::HandlerPanicked(gate.id())));
    });
}

#[test]
fn whoever_asks_hears_that_a_handler_panicked_which_held_the_reply() {
    within(On::OneThread, async {
        let (gate, _) = gate();
        assert_eq!(gate.send(Patient).await, Err(AskError::HandlerPanicked(gate.id())));
    });
}

/// Through the mailbox, and in place.
#[test]
fn a_message_that_a_guard_refuses_and_whose_drop_panics_harms_neither_asker_nor_actor() {
    within(On::OneThread, async {
        let (gate, lives) = gate();
        for _ in 0..3 {
            let refused = gate.send(Unwanted(Charge)).await;
            assert_eq!(refused, Err(AskError::Rejected(gate.id(), "not today".into())));
        }
        assert_eq!(lives.load(SeqCst), 1);
    });
}

#[test]
fn a_message_for_which_the_stash_has_no_room_and_whose_drop_panics_harms_neither() {
    within(On::OneThread, async {
        let (gate, lives) = gate();
        for _ in 0..2 {
            gate.send(Aside(None)).try_tell().unwrap();
            settle().await;
        }
        let refused = gate.send(Aside(Some(Charge))).await;
        assert_eq!(refused, Err(AskError::Overloaded(gate.id())));
        assert_eq!(lives.load(SeqCst), 1);
    });
}

#[test]
fn whoever_asks_an_actor_that_is_killed_hears_so_though_the_message_panics_in_its_drop() {
    within(On::OneThread, async {
        let (gate, _) = gate();
        gate.send(Wait).try_tell().unwrap();
        settle().await;
        let asker = gate.clone();
        let asked = tokio::spawn(async move { asker.send(Unwanted(Charge)).await });
        tokio::time::sleep(Duration::from_millis(1)).await;
        gate.kill();
        let heard = soon("the end", asked).await.expect("it does not panic");
        assert_eq!(heard, Err(AskError::Stopped(gate.id())));
    });
}
