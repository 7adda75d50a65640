//! A life that begins while others still hear of an end: what it watches and links to is its own,
//! and what it hears of is for it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{self, Wake, Waker};

use crate::support::{Log, On, lines, settle, soon, within};
use althing::{
    Actor, ActorOptions, ActorRef, Context, Handler, MailboxKind, Node, Start, Supervision,
    Terminated,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A named actor whose lives end when it fails.
struct Mortal {
    news: Log,
    /// The number of its life, from 1.
    life: u32,
}

#[derive(Clone)]
enum Tie {
    Link(ActorRef<Mortal>),
    Watch(ActorRef<Mortal>),
}

/// Fails once that is sent.
struct Fail(oneshot::Receiver<()>);

/// Replies with the number of the life.
struct Life;

impl Actor for Mortal {
    const NAME: &'static str = "test.mortal";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Stop).mailbox(MailboxKind::Bounded(1))
    }

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        self.news.lock().push(format!("{:?}", other.reason));
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

impl Handler<Life> for Mortal {
    type Reply = u32;

    async fn handle(&mut self, _: Life, _: &mut Context<Self>) -> u32 {
        self.life
    }
}

/// A mortal, on a node of its own, and the news of its lives.
fn mortal() -> (ActorRef<Mortal>, Log) {
    let (log, lives) = (Log::default(), AtomicU32::new(0));
    let each = log.clone();
    let factory = move |_: Start<Mortal>| {
        let (news, life) = (each.clone(), lives.fetch_add(1, SeqCst) + 1);
        async move { Ok(Mortal { news, life }) }
    };
    (Node::builder("test").actor(factory).build().get("a"), log)
}

/// Does something on the thread that wakes, once.
struct OnWake(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Wake for OnWake {
    fn wake(self: Arc<Self>) {
        let act = self.0.lock().take();
        act.into_iter().for_each(|act| act());
    }
}

/// Has the mortal fail, and something happen meanwhile: whoever waits for room in its mailbox is
/// woken when its life is over and before others hear of that.
async fn fail_while(mortal: &ActorRef<Mortal>, act: impl Future<Output = ()> + Send + 'static) {
    let (release, released) = oneshot::channel();
    mortal.send(Fail(released)).try_tell().expect("there is room");
    until("its handler", || mortal.mailbox_depth() == 0).await;
    mortal.send(Life).try_tell().expect("there is room for one beside the handler");
    let (runtime, (done, is_done)) = (Handle::current(), oneshot::channel());
    let on_wake = move || {
        std::thread::spawn(move || runtime.block_on(act)).join().expect("it does not panic");
        done.send(()).ok();
    };
    let waker = Waker::from(Arc::new(OnWake(Mutex::new(Some(Box::new(on_wake))))));
    let mut waits_for_room = Box::pin(mortal.send(Life).tell().into_future());
    assert!(waits_for_room.as_mut().poll(&mut task::Context::from_waker(&waker)).is_pending());
    release.send(()).expect("its handler waits");
    soon("what happens meanwhile", is_done).await.expect("it was woken");
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            settle().await;
        }
    };
    soon(what, waiting).await;
}

/// Ties two lives of a mortal, the second of them while the end of the first is being told.
async fn tied_in_two_lives(tie: Tie) -> (ActorRef<Mortal>, Log) {
    let (mortal, news) = mortal();
    mortal.send(tie.clone()).await.expect("it runs");
    let next_life = mortal.clone();
    let act = async move { next_life.send(tie).await.expect("the next life runs") };
    fail_while(&mortal, act).await;
    (mortal, news)
}

#[test]
fn a_link_of_the_next_life_outlasts_the_end_of_the_life_before() {
    within(On::Workers(2), async {
        let other = Node::builder("other").build().spawn(Mortal { news: Log::default(), life: 1 });
        let (mortal, _) = tied_in_two_lives(Tie::Link(other.clone())).await;
        // The first life's end is its end, and so the end of the second life.
        soon("the other's end", other.stopped()).await;
        until("the end of the second life", || !mortal.is_active()).await;
        let weak = other.downgrade();
        drop(other);
        until("the end of the other's memory", || weak.upgrade().is_none()).await;
    });
}

#[test]
fn a_watch_of_the_next_life_outlasts_the_end_of_the_life_before() {
    within(On::Workers(2), async {
        let other = Node::builder("other").build().spawn(Mortal { news: Log::default(), life: 1 });
        let (mortal, news) = tied_in_two_lives(Tie::Watch(other.clone())).await;
        other.stop().await;
        until("the news of the other's end", || !lines(&news).is_empty()).await;
        assert!(mortal.is_active());
        assert_eq!(lines(&news), ["Requested"]);
    });
}

/// Ties a mortal to another, which ends; while that is being told the mortal fails, and its next
/// life begins. Whatever that was told by then, it goes on.
async fn tied_to_an_end(tie: impl FnOnce(ActorRef<Mortal>) -> Tie) -> Log {
    let ((mortal, news), (other, _)) = (mortal(), mortal());
    mortal.send(tie(other.clone())).await.expect("it runs");
    let failing = mortal.clone();
    let act = async move {
        let (now, when) = oneshot::channel();
        now.send(()).expect("it is held");
        failing.send(Fail(when)).await.expect_err("it fails");
        assert_eq!(failing.send(Life).await, Ok(2));
    };
    fail_while(&other, act).await;
    assert_eq!(other.send(Life).await, Ok(2), "the end has been told");
    settle().await;
    assert_eq!(mortal.send(Life).await, Ok(2));
    news
}

#[test]
fn an_end_by_a_link_does_not_reach_the_life_after_the_one_that_was_linked() {
    within(On::Workers(2), async {
        tied_to_an_end(Tie::Link).await;
    });
}

#[test]
fn the_news_of_an_end_does_not_reach_the_life_after_the_one_that_watched() {
    within(On::Workers(2), async {
        let news = tied_to_an_end(Tie::Watch).await;
        assert_eq!(lines(&news), Vec::<String>::new());
    });
}

/// Watches at the first sign, and goes on at the second.
struct WatchLater {
    other: ActorRef<Mortal>,
    signs: [oneshot::Receiver<()>; 2],
}

impl Handler<WatchLater> for Mortal {
    type Reply = ();

    async fn handle(&mut self, later: WatchLater, ctx: &mut Context<Self>) {
        let WatchLater { other, signs: [first, second] } = later;
        first.await.ok();
        ctx.watch(&other);
        second.await.ok();
    }
}

/// While the end of the second life is being told, the watcher hears of the first.
#[test]
fn the_end_of_a_second_life_is_heard_of_though_that_of_the_first_is_heard_late() {
    within(On::Workers(2), async {
        let (mortal, _) = mortal();
        let news = Log::default();
        let watcher = Node::builder("other").build().spawn(Mortal { news: news.clone(), life: 1 });
        watcher.send(Tie::Watch(mortal.clone())).await.expect("it runs");
        let ((watch, first), (go_on, second)) = (oneshot::channel(), oneshot::channel());
        let later = WatchLater { other: mortal.clone(), signs: [first, second] };
        watcher.send(later).try_tell().expect("there is room");
        settle().await;
        let (now, when) = oneshot::channel();
        now.send(()).expect("it is held");
        mortal.send(Fail(when)).await.expect_err("it fails");
        assert_eq!(mortal.send(Life).await, Ok(2), "the end of the first has been told");
        watch.send(()).expect("it waits");
        settle().await;
        let heard = news.clone();
        let act = async move {
            go_on.send(()).expect("it waits");
            until("the news of the first life", || !lines(&heard).is_empty()).await;
        };
        fail_while(&mortal, act).await;
        until("the news of the second life", || lines(&news).len() == 2).await;
    });
}
