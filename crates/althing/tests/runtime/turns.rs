//! Turns that are held: what a handler lets out leaves with the commit of what it changed, and
//! never otherwise.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorRef, AskError, Commit, Context, Epoch, EventHandler, Handler, Node,
    PublishError, Published, Publisher, ReadHandler, Receives, Sequence, Topic, TopicOptions,
    Turns,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A disk that writes when the test says so: what was written, and what waits to be.
#[derive(Clone, Default)]
struct Disk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    written: Vec<u32>,
    waiting: VecDeque<(u32, oneshot::Sender<Result<(), &'static str>>)>,
}

impl Disk {
    fn write(&self, value: u32) -> Commit {
        let (sender, receiver) = oneshot::channel();
        self.inner.lock().waiting.push_back((value, sender));
        Commit::when(async {
            let outcome = receiver.await.unwrap_or(Err("the disk is gone"));
            outcome.map_err(ActorError::new)
        })
    }

    fn waiting(&self) -> Vec<u32> {
        self.inner.lock().waiting.iter().map(|(value, _)| *value).collect()
    }

    fn written(&self) -> Vec<u32> {
        self.inner.lock().written.clone()
    }

    fn sync_one(&self) {
        let mut inner = self.inner.lock();
        let (value, waiting) = inner.waiting.pop_front().expect("something waits");
        inner.written.push(value);
        drop(inner);
        _ = waiting.send(Ok(()));
    }

    fn fail_one(&self) {
        let waiting = self.inner.lock().waiting.pop_front();
        _ = waiting.expect("something waits").1.send(Err("no space left on the disk"));
    }

    async fn until_waiting(&self, count: usize) {
        while self.waiting().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

/// A counter whose value is on the disk.
struct Account {
    disk: Disk,
    value: u32,
    is_changed: bool,
    friend: Option<ActorRef<Friend>>,
    topic: Option<Topic<u32>>,
}

struct Add(u32);
struct Get;
struct AddSlowly(u32, oneshot::Receiver<()>);
struct AskFriend;
struct Detach(oneshot::Sender<()>);
struct PublishAlone;

impl Actor for Account {
    const NAME: &'static str = "test.account";
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, _: &mut Context<Self>) -> Commit {
        if !std::mem::take(&mut self.is_changed) {
            return Commit::unchanged();
        }
        self.disk.write(self.value)
    }
}

impl Account {
    fn add(&mut self, n: u32, ctx: &mut Context<Self>) -> u32 {
        self.value += n;
        self.is_changed = true;
        if let Some(friend) = &self.friend {
            friend.send(News(self.value)).try_tell().expect("there is room");
        }
        if let Some(topic) = self.topic.clone() {
            ctx.publish(&topic, self.value);
        }
        self.value
    }
}

impl Handler<Add> for Account {
    type Reply = u32;
    async fn handle(&mut self, Add(n): Add, ctx: &mut Context<Self>) -> u32 {
        self.add(n, ctx)
    }
}

impl Handler<AddSlowly> for Account {
    type Reply = u32;
    async fn handle(&mut self, AddSlowly(n, go): AddSlowly, ctx: &mut Context<Self>) -> u32 {
        self.add(n, ctx);
        go.await.expect("the test says when");
        self.add(0, ctx)
    }
}

impl ReadHandler<Get> for Account {
    type Reply = u32;
    async fn read(&self, _: Get, _: &Context<Self>) -> u32 {
        self.value
    }
}

impl Receives<Get> for Account {
    type Reply = u32;
    type Way = althing::Read;
}

impl Handler<AskFriend> for Account {
    type Reply = Vec<u32>;
    async fn handle(&mut self, _: AskFriend, ctx: &mut Context<Self>) -> Vec<u32> {
        self.add(1, ctx);
        let friend = self.friend.clone().expect("there is one");
        friend.send(Heard).await.expect("it answers")
    }
}

impl Handler<Detach> for Account {
    type Reply = ();
    async fn handle(&mut self, Detach(done): Detach, ctx: &mut Context<Self>) {
        self.add(1, ctx);
        ctx.detach(async move { _ = done.send(()) });
    }
}

impl Handler<PublishAlone> for Account {
    type Reply = bool;
    async fn handle(&mut self, _: PublishAlone, _: &mut Context<Self>) -> bool {
        let topic = self.topic.clone().expect("there is one");
        matches!(topic.publish(1), Err(PublishError::InTurn { payload: 1, .. }))
    }
}

/// Hears what accounts tell and publish.
#[derive(Default)]
struct Friend(Vec<u32>);

struct News(u32);
struct Heard;

impl Actor for Friend {
    const NAME: &'static str = "test.friend";
}

impl Handler<News> for Friend {
    type Reply = ();
    async fn handle(&mut self, News(value): News, _: &mut Context<Self>) {
        self.0.push(value);
    }
}

impl Handler<Heard> for Friend {
    type Reply = Vec<u32>;
    async fn handle(&mut self, _: Heard, _: &mut Context<Self>) -> Vec<u32> {
        self.0.clone()
    }
}

impl EventHandler<u32> for Friend {
    async fn event(&mut self, event: &Published<u32>, _: &mut Context<Self>) {
        self.0.push(event.payload);
    }
}

/// An account by name, which starts from what the disk has.
fn account(
    disk: &Disk,
    friend: Option<ActorRef<Friend>>,
    topic: Option<Topic<u32>>,
) -> ActorRef<Account> {
    let disk = disk.clone();
    let node = Node::builder("bank")
        .actor(move |_| {
            let value = disk.written().last().copied().unwrap_or(0);
            let account = Account {
                disk: disk.clone(),
                value,
                is_changed: false,
                friend: friend.clone(),
                topic: topic.clone(),
            };
            async move { Ok(account) }
        })
        .build();
    node.get::<Account>("alice")
}

fn ask(account: &ActorRef<Account>, n: u32) -> tokio::task::JoinHandle<Result<u32, AskError>> {
    let account = account.clone();
    tokio::spawn(async move { account.send(Add(n)).await })
}

#[tokio::test]
async fn a_reply_leaves_with_the_commit_and_not_before() {
    let disk = Disk::default();
    let alice = account(&disk, None, None);
    let asked = ask(&alice, 3);
    disk.until_waiting(1).await;
    assert!(!asked.is_finished() && disk.written().is_empty());
    disk.sync_one();
    assert_eq!(asked.await.unwrap(), Ok(3));
    assert_eq!(disk.written(), [3]);
}

#[tokio::test]
async fn turns_go_on_while_others_are_written_and_leave_in_order() {
    let disk = Disk::default();
    let alice = account(&disk, None, None);
    let asked: Vec<_> = (0..3).map(|_| ask(&alice, 1)).collect();
    disk.until_waiting(3).await;
    assert_eq!(disk.waiting(), [1, 2, 3]);
    // A read sees what is not durable yet, and so it waits for it.
    let reader = alice.clone();
    let read = tokio::spawn(async move { reader.send(Get).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!read.is_finished());
    (0..3).for_each(|_| disk.sync_one());
    let mut replies = Vec::new();
    for asked in asked {
        replies.push(asked.await.unwrap().unwrap());
    }
    replies.sort_unstable();
    assert_eq!(replies, [1, 2, 3]);
    assert_eq!(read.await.unwrap(), Ok(3));
    assert_eq!(alice.send(Get).await, Ok(3), "nothing to write, nothing to wait for");
}

#[tokio::test]
async fn tells_and_events_leave_with_the_commit_in_the_order_in_which_they_were_made() {
    let disk = Disk::default();
    let node = Node::builder("friends").build();
    let friend = node.spawn(Friend::default());
    let topic = node.topic::<u32>("balance", TopicOptions::default());
    let _subscription = topic.subscribe(&friend);
    let alice = account(&disk, Some(friend.clone()), Some(topic));
    let asked = ask(&alice, 5);
    disk.until_waiting(1).await;
    assert_eq!(friend.send(Heard).await, Ok(vec![]));
    disk.sync_one();
    assert_eq!(asked.await.unwrap(), Ok(5));
    assert_eq!(friend.send(Heard).await, Ok(vec![5, 5]), "told, then published, before the reply");
    assert_eq!(alice.send(PublishAlone).await, Ok(true));
}

#[tokio::test]
async fn a_turn_whose_handler_waits_keeps_what_it_let_out_before() {
    let disk = Disk::default();
    let friend = Node::builder("friends").build().spawn(Friend::default());
    let alice = account(&disk, Some(friend.clone()), None);
    let (go, wait) = oneshot::channel();
    let slow = alice.clone();
    let slow = tokio::spawn(async move { slow.send(AddSlowly(2, wait)).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(friend.send(Heard).await, Ok(vec![]));
    go.send(()).unwrap();
    disk.until_waiting(1).await;
    assert_eq!(friend.send(Heard).await, Ok(vec![]));
    disk.sync_one();
    assert_eq!(slow.await.unwrap(), Ok(2));
    assert_eq!(friend.send(Heard).await, Ok(vec![2, 2]));
}

#[tokio::test]
async fn an_ask_in_a_turn_does_not_wait_for_its_commit() {
    let disk = Disk::default();
    let friend = Node::builder("friends").build().spawn(Friend::default());
    let alice = account(&disk, Some(friend.clone()), None);
    let asker = alice.clone();
    let asked = tokio::spawn(async move { asker.send(AskFriend).await });
    disk.until_waiting(1).await;
    disk.sync_one();
    assert_eq!(asked.await.unwrap(), Ok(vec![]), "the friend had not been told yet");
    assert_eq!(friend.send(Heard).await, Ok(vec![1]));
}

#[tokio::test]
async fn a_commit_that_fails_lets_nothing_out_and_the_state_is_loaded_again() {
    let disk = Disk::default();
    let friend = Node::builder("friends").build().spawn(Friend::default());
    let alice = account(&disk, Some(friend.clone()), None);
    let first = ask(&alice, 10);
    disk.until_waiting(1).await;
    disk.sync_one();
    assert_eq!(first.await.unwrap(), Ok(10));
    let (second, third) = (ask(&alice, 1), ask(&alice, 1));
    disk.until_waiting(2).await;
    disk.fail_one();
    let not_committed = AskError::NotCommitted(alice.id());
    assert!(not_committed.may_have_run());
    assert_eq!(second.await.unwrap(), Err(not_committed.clone()));
    assert_eq!(third.await.unwrap(), Err(not_committed), "it was built on the second");
    assert_eq!(friend.send(Heard).await, Ok(vec![10]));
    assert_eq!(alice.send(Get).await, Ok(10), "as it was on the disk");
}

#[tokio::test]
async fn a_kill_aborts_what_is_not_durable() {
    let disk = Disk::default();
    let friend = Node::builder("friends").build().spawn(Friend::default());
    let alice = account(&disk, Some(friend.clone()), None);
    let asked = ask(&alice, 1);
    disk.until_waiting(1).await;
    alice.kill();
    assert_eq!(asked.await.unwrap(), Err(AskError::NotCommitted(alice.id())));
    assert_eq!(friend.send(Heard).await, Ok(vec![]));
}

#[tokio::test]
async fn a_stop_waits_for_what_is_on_its_way_to_the_disk() {
    let disk = Disk::default();
    let alice = account(&disk, None, None);
    let asked = ask(&alice, 1);
    disk.until_waiting(1).await;
    let stopped = alice.stop();
    tokio::pin!(stopped);
    let early = tokio::time::timeout(Duration::from_millis(20), &mut stopped).await;
    assert!(early.is_err(), "the commit is on its way");
    disk.sync_one();
    stopped.await;
    assert_eq!(asked.await.unwrap(), Ok(1));
    assert!(!matches!(alice.send(Get).await, Err(AskError::Stopped(_))));
}

#[tokio::test]
async fn a_task_of_a_turn_starts_with_the_commit() {
    let disk = Disk::default();
    let alice = account(&disk, None, None);
    let (done, mut is_done) = oneshot::channel();
    let asker = alice.clone();
    let asked = tokio::spawn(async move { asker.send(Detach(done)).await });
    disk.until_waiting(1).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(is_done.try_recv().is_err());
    disk.sync_one();
    asked.await.unwrap().unwrap();
    is_done.await.expect("it runs now");
}

/// Holds its turns and hears events.
struct Listener {
    disk: Disk,
    friend: ActorRef<Friend>,
    heard: u32,
    is_written: bool,
}

struct Begin;

impl Actor for Listener {
    const NAME: &'static str = "test.listener";
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, _: &mut Context<Self>) -> Commit {
        if std::mem::replace(&mut self.is_written, true) {
            return Commit::unchanged();
        }
        self.disk.write(self.heard)
    }
}

impl Handler<Begin> for Listener {
    type Reply = ();
    async fn handle(&mut self, _: Begin, _: &mut Context<Self>) {}
}

impl EventHandler<u32> for Listener {
    async fn event(&mut self, event: &Published<u32>, _: &mut Context<Self>) {
        self.heard = event.payload;
        self.is_written = false;
        self.friend.send(News(self.heard)).try_tell().expect("there is room");
    }
}

/// An idle subscriber is run on its publisher's thread, unless its turns are held.
#[tokio::test]
async fn an_event_is_a_turn_also_of_a_subscriber_that_is_idle() {
    let disk = Disk::default();
    let node = Node::builder("radio").build();
    let friend = node.spawn(Friend::default());
    let (heard, written) = (friend.clone(), disk.clone());
    let listener = node.spawn(Listener { disk: written, friend, heard: 0, is_written: true });
    listener.send(Begin).await.expect("it runs");
    let topic = node.topic::<u32>("numbers", TopicOptions::default());
    let subscription = topic.subscribe(&listener);
    topic.publish(7).expect("nobody owns it");
    tokio::time::timeout(Duration::from_secs(5), disk.until_waiting(1)).await.expect("it commits");
    assert_eq!(heard.send(Heard).await, Ok(vec![]));
    disk.sync_one();
    while heard.send(Heard).await != Ok(vec![7]) {
        tokio::task::yield_now().await;
    }
    drop(subscription);
}

/// Holds its turns and owns a topic.
struct Owner {
    disk: Disk,
    publisher: Publisher<u32>,
    is_written: bool,
}

impl Actor for Owner {
    const NAME: &'static str = "test.owner";
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, _: &mut Context<Self>) -> Commit {
        if std::mem::replace(&mut self.is_written, true) {
            return Commit::unchanged();
        }
        self.disk.write(1)
    }
}

impl Handler<Begin> for Owner {
    type Reply = ();
    async fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        self.is_written = false;
        ctx.publish(&self.publisher, 7);
    }
}

#[tokio::test]
async fn the_owner_of_a_topic_publishes_with_its_turn() {
    let disk = Disk::default();
    let node = Node::builder("log").build();
    let topic = node.topic::<u32>("numbers", TopicOptions::default());
    let publisher = topic.publisher(Epoch(1)).expect("nobody owns it");
    let owner = node.spawn(Owner { disk: disk.clone(), publisher, is_written: true });
    let asked = tokio::spawn(async move { owner.send(Begin).await });
    disk.until_waiting(1).await;
    assert_eq!(topic.last(), Sequence(0));
    disk.sync_one();
    asked.await.expect("the task ends").expect("it is durable");
    assert_eq!(topic.kept().first().map(|event| (event.epoch, event.payload)), Some((Epoch(1), 7)));
}
