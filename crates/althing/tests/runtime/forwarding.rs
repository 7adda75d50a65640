//! Replies that somebody else gives, and streams that come in as messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use althing::{
    ActorOptions, ActorRef, AskError, Context, MailboxKind, Node, ReplyTo, Supervision, actor,
};
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::Notify;

struct Library {
    open: Arc<Notify>,
}

fn tiny() -> ActorOptions {
    ActorOptions::default().mailbox(MailboxKind::Bounded(1)).supervision(Supervision::Resume)
}

#[actor(name = "test.library", options = tiny)]
impl Library {
    async fn find(&mut self, title: String) -> usize {
        assert_ne!(title, "panic");
        title.len()
    }

    async fn wait(&mut self) {
        self.open.notified().await;
    }
}

struct Desk(ActorRef<Library>);

#[actor(name = "test.desk")]
impl Desk {
    #[delayed]
    async fn find(&mut self, title: String, reply: ReplyTo<usize>) {
        self.0.find(title).reply_to(reply);
    }
}

fn town() -> (ActorRef<Library>, ActorRef<Desk>, Arc<Notify>) {
    let node = Node::builder("test").build();
    let open = Arc::new(Notify::new());
    let library = node.spawn(Library { open: open.clone() });
    let desk = node.spawn(Desk(library.clone()));
    (library, desk, open)
}

#[tokio::test]
async fn a_forwarded_ask_is_answered_by_whom_it_was_forwarded_to() {
    let (_library, desk, _) = town();
    assert_eq!(desk.find("Faust".into()).await, Ok(5));
    desk.find("Faust".into()).tell().await.unwrap();
    settle().await;
    assert_eq!(desk.find("Emma".into()).await, Ok(4));
}

#[tokio::test]
async fn the_asker_hears_what_becomes_of_a_forwarded_message() {
    let (library, desk, open) = town();
    let panicked = desk.find("panic".into()).await;
    assert_eq!(panicked, Err(AskError::HandlerPanicked(library.id())));
    let waiting = tokio::spawn({
        let library = library.clone();
        async move { library.wait().await }
    });
    tokio::task::yield_now().await;
    // The handler waits; one message fills the mailbox.
    while library.find("one".into()).try_tell().is_ok() {}
    let overloaded = desk.find("Faust".into()).await;
    assert_eq!(overloaded, Err(AskError::Overloaded(library.id())));
    open.notify_one();
    waiting.await.unwrap().unwrap();
    library.stop().await;
    assert_eq!(desk.find("Faust".into()).await, Err(AskError::Stopped(library.id())));
}

#[derive(Default)]
struct Sink {
    seen: Vec<u32>,
    /// How many items the stream has been asked for.
    polled: Arc<AtomicUsize>,
    dropped: Arc<Notify>,
    go_on: Arc<Notify>,
}

fn restart_at_once() -> ActorOptions {
    ActorOptions::default().supervision(Supervision::Resume)
}

struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[actor(name = "test.sink", options = restart_at_once)]
impl Sink {
    async fn drink(&mut self, upto: u32, ctx: &mut Context<Self>) {
        let (polled, dropped) = (self.polled.clone(), OnDrop(self.dropped.clone()));
        let items = stream::iter(0..upto).chain(stream::pending().take(usize::from(upto == 3)));
        ctx.attach(count(items, polled, dropped), |item| sink_messages::Item { item });
    }

    async fn item(&mut self, item: u32) {
        self.go_on.notified().await;
        self.seen.push(item);
        assert_ne!(item, 100, "on purpose");
    }

    async fn seen(&self) -> Vec<u32> {
        self.seen.clone()
    }
}

fn count(
    items: impl Stream<Item = u32> + Send + 'static,
    polled: Arc<AtomicUsize>,
    dropped: OnDrop,
) -> impl Stream<Item = u32> + Send + 'static {
    items.inspect(move |_| {
        let _kept = &dropped;
        polled.fetch_add(1, Ordering::Relaxed);
    })
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stream_waits_for_the_actor_that_takes_its_items() {
    let sink = Sink::default();
    let (polled, dropped, go_on) = (sink.polled.clone(), sink.dropped.clone(), sink.go_on.clone());
    let sink = Node::builder("test").build().spawn(sink);
    sink.drink(5).await.unwrap();
    for expected in 1..=5 {
        settle().await;
        assert_eq!(polled.load(Ordering::Relaxed), expected, "one item ahead at most");
        go_on.notify_one();
    }
    dropped.notified().await;
    assert_eq!(sink.seen().await, Ok(vec![0, 1, 2, 3, 4]));
}

#[tokio::test]
async fn a_stream_ends_with_the_life_that_attached_it() {
    let sink = Sink::default();
    let (dropped, go_on) = (sink.dropped.clone(), sink.go_on.clone());
    let sink = Node::builder("test").build().spawn(sink);
    sink.drink(3).await.unwrap();
    for _ in 0..3 {
        settle().await;
        go_on.notify_one();
    }
    settle().await;
    sink.stop().await;
    dropped.notified().await;
}

#[tokio::test]
async fn a_stream_goes_on_after_a_panic_that_the_actor_survives() {
    let sink = Sink::default();
    let (dropped, go_on) = (sink.dropped.clone(), sink.go_on.clone());
    let sink = Node::builder("test").build().spawn(sink);
    sink.drink(102).await.unwrap();
    for _ in 0..102 {
        settle().await;
        go_on.notify_one();
    }
    dropped.notified().await;
    assert_eq!(sink.seen().await.unwrap().last(), Some(&101));
}

#[tokio::test(start_paused = true)]
async fn an_actor_with_a_stream_stays_in_memory() {
    let options = ActorOptions::default().passivate_after(Duration::from_secs(1));
    let node =
        Node::builder("test").options::<Sink>(options).actor(async |_| Ok(Sink::default())).build();
    let sink = node.get::<Sink>("a");
    let other = node.get::<Sink>("b");
    sink.drink(1).await.unwrap();
    other.seen().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(sink.is_active() && !other.is_active());
}

/// Whose first life attaches a stream that never yields anything.
struct Drinker(Arc<Notify>);

#[actor(name = "test.drinker")]
impl Drinker {
    async fn drink(&mut self, ctx: &mut Context<Self>) {
        let dropped = OnDrop(self.0.clone());
        ctx.attach(stream::pending(), move |()| {
            let _kept = &dropped;
            drinker_messages::Touch
        });
    }

    async fn touch(&mut self) {}

    async fn fail(&mut self) {
        panic!("on purpose");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_dropped_when_its_actor_restarts_though_it_yields_nothing() {
    let dropped = Arc::new(Notify::new());
    let kept = dropped.clone();
    let node = Node::builder("test")
        .actor(move |_| {
            let dropped = kept.clone();
            async move { Ok(Drinker(dropped)) }
        })
        .build();
    let drinker = node.get::<Drinker>("a");
    drinker.drink().await.unwrap();
    drinker.fail().await.unwrap_err();
    drinker.touch().await.unwrap();
    tokio::time::timeout(Duration::from_secs(1), dropped.notified()).await.unwrap();
}
