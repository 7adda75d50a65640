//! An idle actor is unloaded and comes back; one that owes something, or is wanted, is not lost
//! between the two.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{On, settle, within};
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Context, Delayed, DelayedHandler, Handler, Node,
    Receives, ReplyTo, Start, StopReason,
};
use futures_util::stream;

/// Keeps a reply until the future that it has piped to itself is done, which takes longer than it
/// may idle.
#[derive(Default)]
struct Keeper(Vec<ReplyTo<u32>>);

struct Keep;
struct Answer;

impl Actor for Keeper {
    const NAME: &'static str = "test.keeper";

    fn options() -> ActorOptions {
        ActorOptions::default().passivate_after(Duration::from_secs(2))
    }
}

impl Receives<Keep> for Keeper {
    type Reply = u32;
    type Way = Delayed;
}

impl DelayedHandler<Keep> for Keeper {
    type Reply = u32;

    async fn handle(&mut self, _: Keep, reply: ReplyTo<u32>, ctx: &mut Context<Self>) {
        self.0.push(reply);
        ctx.pipe(tokio::time::sleep(Duration::from_secs(10)), |()| Answer);
    }
}

impl Handler<Answer> for Keeper {
    type Reply = ();

    async fn handle(&mut self, _: Answer, _: &mut Context<Self>) {
        for reply in self.0.drain(..) {
            reply.send(7);
        }
    }
}

#[test]
fn an_actor_that_owes_a_reply_is_not_unloaded() {
    within(On::PausedTime, async {
        let node = Node::builder("test").actor(async |_| Ok(Keeper::default())).build();
        let keeper = node.get::<Keeper>("a");
        assert_eq!(keeper.send(Keep).timeout(Duration::from_secs(60)).await, Ok(7));
    });
}

/// Takes a while to store its state.
struct Slow(Arc<AtomicU32>);

struct Unload;

impl Actor for Slow {
    const NAME: &'static str = "test.slow";

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorError> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }

    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Handler<Unload> for Slow {
    type Reply = ();

    async fn handle(&mut self, _: Unload, ctx: &mut Context<Self>) {
        ctx.passivate();
    }
}

#[test]
fn an_actor_that_is_activated_while_it_unloads_comes_back() {
    within(On::PausedTime, async {
        let lives = Arc::new(AtomicU32::new(0));
        let counted = lives.clone();
        let node = Node::builder("test")
            .actor(move |_: Start<Slow>| {
                let lives = counted.clone();
                async move { Ok(Slow(lives)) }
            })
            .build();
        let slow = node.get::<Slow>("a");
        slow.send(Unload).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        slow.activate();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((lives.load(SeqCst), slow.is_active()), (2, true));
    });
}

#[test]
fn an_actor_that_could_not_come_back_is_not_unloaded() {
    within(On::PausedTime, async {
        let node = Node::builder("test").build();
        let anonymous = node.spawn(Keeper::default());
        let named = node.spawn_named("a", Keeper::default()).expect("the name is free");
        for keeper in [&anonymous, &named] {
            keeper.send(Answer).await.expect("it runs");
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(anonymous.is_active() && named.is_active());
    });
}

/// Unloads itself, fails, or waits for something of its own.
struct Idler;

enum Order {
    Nothing,
    Pipe,
    Attach,
    Unload,
    Fail,
}

impl Actor for Idler {
    const NAME: &'static str = "test.idler";

    fn options() -> ActorOptions {
        ActorOptions::default().passivate_after(Duration::from_secs(2))
    }
}

impl Handler<Order> for Idler {
    type Reply = ();

    async fn handle(&mut self, order: Order, ctx: &mut Context<Self>) {
        match order {
            Order::Nothing => {}
            Order::Pipe => ctx.pipe(pending::<()>(), |()| Order::Nothing),
            Order::Attach => ctx.attach(stream::pending::<()>(), |()| Order::Nothing),
            Order::Unload => ctx.passivate(),
            Order::Fail => ctx.fail(ActorError::new("on purpose")),
        }
    }
}

fn idler() -> ActorRef<Idler> {
    Node::builder("test").actor(async |_| Ok(Idler)).build().get("a")
}

#[test]
fn what_one_life_waits_for_keeps_no_later_one_in_memory() {
    within(On::PausedTime, async {
        let waits: [fn() -> Order; 2] = [|| Order::Pipe, || Order::Attach];
        let ends: [fn() -> Order; 2] = [|| Order::Unload, || Order::Fail];
        for (wait, end) in waits.into_iter().flat_map(|wait| ends.map(|end| (wait, end))) {
            let idler = idler();
            idler.send(wait()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(idler.is_active(), "it waits for its own");
            idler.send(end()).await.unwrap();
            settle().await;
            idler.send(Order::Nothing).await.unwrap();
            assert!(idler.is_active());
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(!idler.is_active(), "the next life waits for nothing");
        }
    });
}

/// Somebody asks an actor right after its runtime's only thread was held.
#[test]
fn who_has_just_run_is_not_unloaded_however_long_all_threads_were_held() {
    within(On::OneThread, async {
        let idler = idler();
        idler.send(Order::Nothing).await.unwrap();
        std::thread::sleep(Duration::from_millis(3_500));
        idler.send(Order::Nothing).await.unwrap();
        // A pass is due, and comes before this one goes on.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(idler.is_active());
    });
}
