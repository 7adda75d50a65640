//! A life that begins while others still hear of the end of the one before it: what the new life
//! watches and links to is its own.

use std::future::Future;
use std::sync::Arc;
use std::task::{self, Wake, Waker};

use crate::support::{Flex, Log, On, flex, lines, settle, soon, within};
use althing::{
    Actor, ActorOptions, ActorRef, Context, Handler, MailboxKind, Node, Supervision, Terminated,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A named actor whose lives end when it fails.
struct Mortal(Log);

#[derive(Clone)]
enum Tie {
    Link(ActorRef<Flex>),
    Watch(ActorRef<Flex>),
}

/// Fails once that is sent.
struct Fail(oneshot::Receiver<()>);

impl Actor for Mortal {
    const NAME: &'static str = "test.mortal";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Stop).mailbox(MailboxKind::Bounded(1))
    }

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.0.lock().push(format!("{:?}", other.reason));
    }
}

impl Handler<Tie> for Mortal {
    type Reply = ();

    async fn handle(&mut self, tie: Tie, ctx: &mut Context<Self>) {
        match tie {
            Tie::Link(other) => ctx.link(&other),
            Tie::Watch(other) => ctx.watch(&other),
        }
    }
}

impl Handler<Fail> for Mortal {
    type Reply = ();

    async fn handle(&mut self, Fail(when): Fail, _: &mut Context<Self>) {
        when.await.ok();
        panic!("on purpose");
    }
}

/// Does something on the thread that wakes, once.
struct OnWake(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for OnWake {
    fn wake(self: Arc<Self>) {
        let act = self.0.lock().take();
        act.into_iter().for_each(|act| act());
    }
}

/// Ties two lives of an actor to `other`, the second of them while the end of the first is being
/// told: whoever waits for room in its mailbox is woken before others hear of that end.
async fn tied_in_two_lives(tie: Tie) -> (ActorRef<Mortal>, Log) {
    let log = Log::default();
    let each = log.clone();
    let node = Node::builder("test")
        .actor(move |_| {
            let log = each.clone();
            async move { Ok(Mortal(log)) }
        })
        .build();
    let mortal = node.get::<Mortal>("a");
    mortal.send(tie.clone()).await.expect("it runs");
    let (release, released) = oneshot::channel();
    mortal.send(Fail(released)).try_tell().expect("there is room");
    settle().await;
    mortal.send(tie.clone()).try_tell().expect("there is room for one beside the handler");
    let (again, done) = oneshot::channel();
    let (next_life, runtime) = (mortal.clone(), Handle::current());
    let act = move || {
        let asking = move || {
            again.send(runtime.block_on(next_life.send(tie).into_future())).ok();
        };
        std::thread::spawn(asking).join().expect("it does not panic");
    };
    let waker = Waker::from(Arc::new(OnWake(Mutex::new(Some(Box::new(act))))));
    let mut waits_for_room = Box::pin(mortal.send(Tie::Watch(flex(&node))).tell().into_future());
    assert!(waits_for_room.as_mut().poll(&mut task::Context::from_waker(&waker)).is_pending());
    release.send(()).expect("its handler waits");
    soon("the next life", done).await.expect("it was woken").expect("the next life runs");
    drop(waits_for_room);
    (mortal, log)
}

#[test]
fn a_link_of_the_next_life_outlasts_the_end_of_the_life_before() {
    within(On::Workers(2), async {
        let other = flex(&Node::builder("other").build());
        let (mortal, _) = tied_in_two_lives(Tie::Link(other.clone())).await;
        // The first life's end is its end, and so the end of the second life.
        soon("the other's end", other.stopped()).await;
        let ended = async {
            while mortal.is_active() {
                settle().await;
            }
        };
        soon("the end of the second life", ended).await;
        let weak = other.downgrade();
        drop(other);
        let forgotten = async {
            while weak.upgrade().is_some() {
                settle().await;
            }
        };
        soon("the end of the other's memory", forgotten).await;
    });
}

#[test]
fn a_watch_of_the_next_life_outlasts_the_end_of_the_life_before() {
    within(On::Workers(2), async {
        let other = flex(&Node::builder("other").build());
        let (mortal, log) = tied_in_two_lives(Tie::Watch(other.clone())).await;
        other.stop().await;
        let heard = async {
            while lines(&log).is_empty() {
                settle().await;
            }
        };
        soon("the news of the other's end", heard).await;
        assert!(mortal.is_active());
        assert_eq!(lines(&log), ["Requested"]);
    });
}
