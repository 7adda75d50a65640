//! What supervision, links, lives and priorities promise.

use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, AskError, ChildStrategy, Context, Handler, Node,
    Priority, StopReason, Supervision,
};
use tokio::sync::{mpsc, oneshot};

type News = mpsc::UnboundedSender<String>;

struct Parent<const STRATEGY: u8> {
    news: News,
    children: Vec<ActorRef<Child>>,
}

struct Child {
    name: usize,
    news: News,
    /// Whether its last hook panics when it is restarted with a sibling.
    panics: bool,
}

struct Children;
struct Fail;
struct Ping;

fn strategy(code: u8) -> ChildStrategy {
    match code {
        0 => ChildStrategy::OneForOne,
        1 | 3 => ChildStrategy::AllForOne,
        _ => ChildStrategy::RestForOne,
    }
}

impl<const STRATEGY: u8> Actor for Parent<STRATEGY> {
    const NAME: &'static str = "test.parent";

    fn options() -> ActorOptions {
        ActorOptions::default().children(strategy(STRATEGY))
    }

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.news.send("parent".into())?;
        for name in 0..3 {
            let news = self.news.clone();
            self.children.push(ctx.spawn(move |_| {
                let news = news.clone();
                async move { Ok(Child { name, news, panics: STRATEGY == 3 }) }
            }));
        }
        Ok(())
    }
}

impl<const STRATEGY: u8> Handler<Children> for Parent<STRATEGY> {
    type Reply = Vec<ActorRef<Child>>;

    async fn handle(&mut self, _: Children, _ctx: &mut Context<Self>) -> Vec<ActorRef<Child>> {
        self.children.clone()
    }
}

impl Actor for Child {
    const NAME: &'static str = "test.child";

    async fn started(&mut self, _ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.news.send(format!("child {}", self.name))?;
        Ok(())
    }

    async fn stopping(&mut self, _ctx: &mut Context<Self>, reason: StopReason) {
        assert!(!self.panics || reason != StopReason::Restarting, "on purpose");
    }
}

impl Handler<Fail> for Child {
    type Reply = ();

    async fn handle(&mut self, _: Fail, _ctx: &mut Context<Self>) {
        panic!("on purpose");
    }
}

impl Handler<Ping> for Child {
    type Reply = usize;

    async fn handle(&mut self, _: Ping, _ctx: &mut Context<Self>) -> usize {
        self.name
    }
}

/// Fails the middle child of three and returns who restarted.
async fn restarted_with<const STRATEGY: u8>() -> Vec<String> {
    let node = Node::builder("test").build();
    let (news, mut heard) = mpsc::unbounded_channel();
    let parent = node.spawn(Parent::<STRATEGY> { news, children: Vec::new() });
    let children = parent.send(Children).await.expect("the parent runs");
    for _ in 0..4 {
        heard.recv().await.expect("everybody starts");
    }
    assert_eq!(children[1].send(Fail).await, Err(AskError::HandlerPanicked(children[1].id())));
    for child in &children {
        child.send(Ping).await.expect("the child runs");
    }
    let mut names: Vec<_> = std::iter::from_fn(|| heard.try_recv().ok()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn one_for_one_restarts_the_child_that_failed() {
    assert_eq!(restarted_with::<0>().await, ["child 1"]);
}

#[tokio::test]
async fn all_for_one_restarts_every_child() {
    assert_eq!(restarted_with::<1>().await, ["child 0", "child 1", "child 2"]);
}

#[tokio::test]
async fn a_child_whose_last_hook_panics_restarts_with_its_siblings_all_the_same() {
    assert_eq!(restarted_with::<3>().await, ["child 0", "child 1", "child 2"]);
}

#[tokio::test]
async fn rest_for_one_restarts_the_later_children() {
    assert_eq!(restarted_with::<2>().await, ["child 1", "child 2"]);
}

struct Top {
    news: News,
}

struct Bottom;
struct Adopt;

impl Actor for Top {
    const NAME: &'static str = "test.top";

    async fn started(&mut self, _ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.news.send("top".into())?;
        Ok(())
    }
}

impl Handler<Adopt> for Top {
    type Reply = ActorRef<Bottom>;

    async fn handle(&mut self, _: Adopt, ctx: &mut Context<Self>) -> ActorRef<Bottom> {
        ctx.spawn(|_| async { Ok(Bottom) })
    }
}

impl Actor for Bottom {
    const NAME: &'static str = "test.bottom";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Escalate)
    }
}

impl Handler<Fail> for Bottom {
    type Reply = ();

    async fn handle(&mut self, _: Fail, _ctx: &mut Context<Self>) {
        panic!("on purpose");
    }
}

#[tokio::test]
async fn an_escalated_failure_is_the_parents_own() {
    let (news, mut heard) = mpsc::unbounded_channel();
    let top = Node::builder("test").build().spawn_with(move |_| {
        let news = news.clone();
        async move { Ok(Top { news }) }
    });
    let bottom = top.send(Adopt).await.unwrap();
    assert_eq!(heard.recv().await.unwrap(), "top");
    bottom.send(Fail).await.unwrap_err();
    bottom.stopped().await;
    assert_eq!(heard.recv().await.unwrap(), "top", "restarted");
    assert!(!top.is_stopped());
}

struct Log {
    ran: Vec<&'static str>,
    stopping: Option<oneshot::Sender<StopReason>>,
}

struct Hold(oneshot::Receiver<()>);
struct Note(&'static str);
struct Ran;
#[derive(Clone)]
struct Tick;
struct Arm;

impl Actor for Log {
    const NAME: &'static str = "test.log";

    async fn stopping(&mut self, _ctx: &mut Context<Self>, reason: StopReason) {
        if let Some(stopping) = self.stopping.take() {
            stopping.send(reason).ok();
        }
    }
}

impl Handler<Hold> for Log {
    type Reply = ();

    async fn handle(&mut self, Hold(release): Hold, _ctx: &mut Context<Self>) {
        release.await.ok();
    }
}

impl Handler<Note> for Log {
    type Reply = ();

    async fn handle(&mut self, Note(text): Note, _ctx: &mut Context<Self>) {
        self.ran.push(text);
    }
}

impl Handler<Ran> for Log {
    type Reply = Vec<&'static str>;

    async fn handle(&mut self, _: Ran, _ctx: &mut Context<Self>) -> Vec<&'static str> {
        self.ran.clone()
    }
}

impl Handler<Tick> for Log {
    type Reply = ();

    async fn handle(&mut self, _: Tick, _ctx: &mut Context<Self>) {
        self.ran.push("tick");
    }
}

impl Handler<Arm> for Log {
    type Reply = ();

    async fn handle(&mut self, _: Arm, ctx: &mut Context<Self>) {
        ctx.every(Duration::from_secs(10), Tick);
    }
}

fn log() -> Log {
    Log { ran: Vec::new(), stopping: None }
}

#[tokio::test]
async fn high_priority_overtakes_and_low_priority_waits() {
    let log = Node::builder("test").build().spawn(log());
    let (release, wait) = oneshot::channel();
    log.send(Hold(wait)).try_tell().unwrap();
    tokio::task::yield_now().await;
    log.send(Note("low")).priority(Priority::Low).try_tell().unwrap();
    log.send(Note("first")).try_tell().unwrap();
    log.send(Note("second")).try_tell().unwrap();
    log.send(Note("high")).priority(Priority::High).try_tell().unwrap();
    release.send(()).unwrap();
    let all = log.send(Ran).priority(Priority::Low).await;
    assert_eq!(all.unwrap(), ["high", "first", "second", "low"]);
}

#[tokio::test(start_paused = true)]
async fn ticks_that_find_their_predecessor_waiting_are_skipped() {
    let log = Node::builder("test").build().spawn(log());
    log.send(Arm).await.unwrap();
    let (release, wait) = oneshot::channel();
    log.send(Hold(wait)).try_tell().unwrap();
    tokio::time::sleep(Duration::from_secs(55)).await;
    release.send(()).unwrap();
    assert_eq!(log.send(Ran).await.unwrap(), ["tick"]);
}

#[tokio::test(start_paused = true)]
async fn timers_end_with_the_life_that_set_them() {
    let (news, mut heard) = mpsc::unbounded_channel();
    let node = Node::builder("test")
        .actor(move |_: althing::Start<Named>| {
            let news = news.clone();
            async move { Ok(Named { news }) }
        })
        .build();
    let named = node.get::<Named>("a");
    named.send(Arm).await.unwrap();
    named.stop().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(heard.try_recv().is_err());
    assert!(!named.is_active());
    named.send(Arm).await.unwrap();
    assert_eq!(heard.recv().await.unwrap(), "tick");
}

struct Named {
    news: News,
}

impl Actor for Named {
    const NAME: &'static str = "test.named";
}

impl Handler<Tick> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Tick, _ctx: &mut Context<Self>) {
        self.news.send("tick".into()).ok();
    }
}

impl Handler<Arm> for Named {
    type Reply = ();

    async fn handle(&mut self, _: Arm, ctx: &mut Context<Self>) {
        ctx.every(Duration::from_secs(10), Tick);
    }
}

struct Link(ActorRef<Log>);

impl Handler<Link> for Log {
    type Reply = ();

    async fn handle(&mut self, Link(other): Link, ctx: &mut Context<Self>) {
        ctx.link(&other);
    }
}

#[tokio::test]
async fn linked_actors_stop_together() {
    let node = Node::builder("test").build();
    let one = node.spawn(log());
    let (stopping, stopped) = oneshot::channel();
    let two = node.spawn(Log { ran: Vec::new(), stopping: Some(stopping) });
    one.send(Link(two.clone())).await.unwrap();
    one.stop().await;
    assert_eq!(stopped.await.unwrap(), StopReason::Linked(one.id()));
    two.stopped().await;
}

mod reads_of_an_actor_that_resumes {
    use althing::{Actor, ActorOptions, Context, Node, Read, ReadHandler, Receives, Supervision};
    use tokio::sync::oneshot;

    struct Reader;

    /// Waits for the word, whether to panic.
    struct Look(oneshot::Receiver<bool>);

    impl Actor for Reader {
        const NAME: &'static str = "test.reader";

        fn options() -> ActorOptions {
            ActorOptions::default().supervision(Supervision::Resume)
        }
    }

    impl Receives<Look> for Reader {
        type Reply = ();
        type Way = Read;
    }

    impl ReadHandler<Look> for Reader {
        type Reply = ();

        async fn read(&self, Look(panics): Look, _: &Context<Self>) {
            assert!(!panics.await.expect("the test says"), "on purpose");
        }
    }

    #[tokio::test]
    async fn go_on_beside_one_that_panics() {
        let reader = Node::builder("test").build().spawn(Reader);
        let look = |_| {
            let (say, said) = oneshot::channel();
            let reader = reader.clone();
            (say, tokio::spawn(async move { reader.send(Look(said)).await }))
        };
        let mut looks = (0..3).map(look);
        let ((first, one), (second, two), (third, three)) = (
            looks.next().expect("there are three"),
            looks.next().expect("there are three"),
            looks.next().expect("there are three"),
        );
        while reader.mailbox_depth() > 0 || !reader.is_active() {
            tokio::task::yield_now().await;
        }
        second.send(true).expect("it waits");
        two.await.expect("the task ends").expect_err("it panicked");
        for (say, look) in [(first, one), (third, three)] {
            say.send(false).expect("it waits still");
            assert_eq!(look.await.expect("the task ends"), Ok(()));
        }
    }
}
