//! Topics across the nodes of a cluster. The nodes are in one process and talk over TCP.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::cluster::{Cluster, joined};
use althing::wire::Depth;
use althing::{
    ActorRef, Epoch, Node, PublishError, Published, Sequence, Topic, TopicOptions, Wire, WireError,
    actor,
};
use althing_cluster::{Member, TopicError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is published.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
struct Said {
    text: String,
}

fn said(text: impl Into<String>) -> Said {
    Said { text: text.into() }
}

/// An event as a subscriber got it: previous number, number, text, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Heard {
    epoch: u64,
    previous: u64,
    sequence: u64,
    text: String,
    place: usize,
}

/// Passes on what it hears.
struct Ear(UnboundedSender<Heard>);

#[actor(name = "test.topic-ear")]
impl Ear {
    #[event]
    async fn on_said(&mut self, event: &Published<Said>) {
        let place = std::ptr::from_ref(event) as usize;
        let (epoch, text) = (event.epoch.0, event.payload.text.clone());
        let (previous, sequence) = (event.previous.0, event.sequence.0);
        // The test may have heard enough.
        _ = self.0.send(Heard { epoch, previous, sequence, text, place });
    }
}

/// A node that knows the event.
async fn node(cluster: &Cluster, name: &str) -> (Member, Node) {
    joined(cluster.config(name), |node| node.event::<Said>("test.said")).await
}

/// Waits until all of them know each other.
async fn acquainted(members: &[&Member]) {
    for member in members {
        let mut views = member.views();
        while member.view().members.len() < members.len() {
            views.changed().await.expect("it lives");
        }
    }
}

fn topic(node: &Node) -> Topic<Said> {
    node.topic("room", TopicOptions { replay: 64 })
}

fn ear(node: &Node) -> (ActorRef<Ear>, UnboundedReceiver<Heard>) {
    let (sender, heard) = unbounded_channel();
    (node.spawn(Ear(sender)), heard)
}

async fn next(heard: &mut UnboundedReceiver<Heard>) -> Heard {
    timeout(PATIENCE, heard.recv()).await.expect("it comes").expect("the ear lives")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_hears_what_other_nodes_publish() {
    let cluster = Cluster::new();
    let (one, first) = node(&cluster, "one").await;
    let (two, second) = node(&cluster, "two").await;
    acquainted(&[&one, &two]).await;
    let (here, there) = (topic(&first), topic(&second));
    let (ear, mut heard) = ear(&second);
    let _subscription = there.subscribe(&ear);
    two.subscribed(&there).await.expect("both know the event");
    for n in 0..100 {
        here.publish(said(n.to_string())).expect("nobody owns it");
    }
    for n in 0..100 {
        let event = next(&mut heard).await;
        assert_eq!((event.previous, event.sequence, event.text), (n, n + 1, n.to_string()));
    }
}

static ENCODED: AtomicUsize = AtomicUsize::new(0);
static DECODED: AtomicUsize = AtomicUsize::new(0);

/// An event that is counted.
struct Counted(Said);

impl Wire for Counted {
    fn encode(&self, out: &mut Vec<u8>) {
        ENCODED.fetch_add(1, Ordering::Relaxed);
        self.0.encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        Said::decode_within(bytes, depth).map(Self)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_encoded_once_and_goes_once_to_each_node_that_listens() {
    let cluster = Cluster::new();
    let mut nodes = Vec::new();
    for name in ["one", "two", "three", "deaf"] {
        let member = Member::bind(cluster.config(name)).expect("any port");
        let builder = Node::builder(name).cluster(member.way());
        let node = builder.event::<Counted>("test.counted").build();
        member.join().await.expect("nobody has the name");
        nodes.push((member, node));
    }
    acquainted(&nodes.iter().map(|(member, _)| member).collect::<Vec<_>>()).await;
    let topics: Vec<Topic<Counted>> =
        nodes.iter().map(|(_, node)| node.topic("counted", TopicOptions::default())).collect();
    // Three on each of two nodes.
    let mut streams: Vec<_> = (0..6).map(|n| topics[1 + n % 2].stream(Sequence(0))).collect();
    for n in 1..=2 {
        nodes[n].0.subscribed(&topics[n]).await.expect("all know the event");
    }
    topics[0].publish(Counted(said("once"))).expect("nobody owns it");
    let (mut places, mut kept) = (Vec::new(), Vec::new());
    for stream in &mut streams {
        let event = timeout(PATIENCE, stream.next()).await.expect("it comes");
        let event = event.expect("the node lives").expect("there is no gap");
        places.push(std::ptr::from_ref(&event.payload) as usize);
        assert_eq!(event.payload.0.text, "once");
        // Kept, so that no other event lies where it did.
        kept.push(event);
    }
    assert_eq!(ENCODED.load(Ordering::Relaxed), 1);
    assert_eq!(DECODED.load(Ordering::Relaxed), 2, "once on each node with subscribers");
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 2, "subscribers of a node share it");
    // The last subscriber of a node ends the copies.
    drop(streams);
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let before = ENCODED.load(Ordering::Relaxed);
        topics[0].publish(Counted(said("to nobody"))).expect("nobody owns it");
        if ENCODED.load(Ordering::Relaxed) == before {
            break;
        }
        assert!(tokio::time::Instant::now() < until, "it is still sent to somebody");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owners_epochs_and_numbers_are_the_same_on_all_nodes() {
    let cluster = Cluster::new();
    let (one, first) = node(&cluster, "one").await;
    let (two, second) = node(&cluster, "two").await;
    acquainted(&[&one, &two]).await;
    let (here, there) = (topic(&first), topic(&second));
    let (ear, mut heard) = ear(&second);
    let subscription = there.subscribe(&ear);
    two.subscribed(&there).await.expect("both know the event");
    let owner = here.publisher(Epoch(3)).expect("nobody owns it");
    owner.publish_at(Sequence(40), said("a")).expect("it is the owner");
    owner.publish_at(Sequence(50), said("b")).expect("it is the owner");
    let numbers = |event: &Heard| (event.epoch, event.previous, event.sequence);
    // Nobody there knows whether something was before the first one.
    assert_eq!(numbers(&next(&mut heard).await), (3, 39, 40));
    assert_eq!(numbers(&next(&mut heard).await), (3, 40, 50));
    assert!(matches!(there.publish(said("c")), Err(PublishError::Owned { epoch: Epoch(3), .. })));
    // Another owner, on the other node: the first one's subscribers hear it.
    let (ear, mut heard) = self::ear(&first);
    let _subscription = here.subscribe(&ear);
    one.subscribed(&here).await.expect("both know the event");
    let next_owner = there.publisher(Epoch(4)).expect("its epoch is higher");
    let number = next_owner.publish(said("d")).expect("it is the owner");
    assert_eq!(number, Sequence((4 << 32) + 1), "above all numbers of former owners");
    let event = next(&mut heard).await;
    assert_eq!((event.epoch, event.sequence, &*event.text), (4, number.0, "d"));
    assert!(matches!(owner.publish(said("e")), Err(PublishError::Fenced { .. })));
    drop(subscription);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_heard_elsewhere_is_refused_with_its_reason() {
    let cluster = Cluster::new();
    let member = Member::bind(cluster.config("one").frame_len_max(10_000)).expect("any port");
    let first = Node::builder("one").cluster(member.way()).event::<Said>("test.said").build();
    member.join().await.expect("nobody has the name");
    let (two, second) = node(&cluster, "two").await;
    acquainted(&[&member, &two]).await;
    let (here, there) = (topic(&first), topic(&second));
    assert_eq!(member.subscribed(&here).await, Err(TopicError::NoSubscriber(here.name().clone())));
    let _stream = here.stream(Sequence(0));
    member.subscribed(&here).await.expect("both know the event");
    let refused = there.publish(said("x".repeat(20_000))).expect_err("one reads shorter frames");
    let PublishError::TooLong { len, len_max, payload, .. } = refused else { panic!("{refused}") };
    assert!(len > 20_000 && len_max < 10_000 && payload.text.len() == 20_000);
    there.publish(said("x".repeat(9_000))).expect("that is short enough");
    let local = first.topic::<u64>("numbers", TopicOptions::default());
    let refused = member.subscribed(&local).await;
    assert!(matches!(refused, Err(TopicError::StaysHere { event: "u64", .. })), "{refused:?}");
    let long = first.topic::<Said>("n".repeat(1_025), TopicOptions::default());
    let refused = member.subscribed(&long).await;
    assert_eq!(refused, Err(TopicError::NameTooLong { len: 1_025, len_max: 1_024 }));
    // One that does not know the event.
    let stranger = Member::bind(cluster.config("three")).expect("any port");
    let _third = Node::builder("three").cluster(stranger.way()).build();
    stranger.join().await.expect("nobody has the name");
    acquainted(&[&member, &two, &stranger]).await;
    let (node, event) = ("three".to_owned(), "test.said".to_owned());
    assert_eq!(member.subscribed(&here).await, Err(TopicError::Unregistered { node, event }));
    let twice = Node::builder("x").event::<Said>("a").event::<Counted>("a").try_build();
    assert!(twice.is_err_and(|why| why.to_string().contains("registered twice")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_outlive_the_node_of_the_owner_and_tell_a_gap() {
    let cluster = Cluster::new();
    let (one, first) = node(&cluster, "one").await;
    let (two, second) = node(&cluster, "two").await;
    let (three, third) = node(&cluster, "three").await;
    acquainted(&[&one, &two, &three]).await;
    let here = topic(&first);
    let (ear, mut heard) = ear(&first);
    let _subscription = here.subscribe(&ear);
    one.subscribed(&here).await.expect("all know the event");
    let owner = topic(&second).publisher(Epoch(1)).expect("nobody owns it");
    owner.publish_at(Sequence(1), said("a")).expect("it is the owner");
    assert_eq!(next(&mut heard).await.text, "a");
    // It says nothing any more, as if it had crashed.
    drop(two);
    let mut views = one.views();
    while one.view().members.len() > 2 {
        views.changed().await.expect("it lives");
    }
    let next_owner = topic(&third).publisher(Epoch(2)).expect("its epoch is higher");
    next_owner.publish_at(Sequence(10), said("b")).expect("it is the owner");
    let event = next(&mut heard).await;
    assert_eq!((event.epoch, event.previous, event.sequence), (2, 9, 10), "nobody has seen 9");
}
