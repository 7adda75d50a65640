//! What is longer than a frame between nodes: letters of durable actors, and tells to an actor that
//! moves.

use std::sync::Arc;
use std::time::Duration;

use althing::{
    ActorError, ActorRef, AskError, Context, Node, SendError, Start, Timestamp, Wire, actor,
};
use althing_cluster::{Authority, Member, MemberConfig, Tls};
use althing_store::{Courier, Memory, PostError, RequestId, Saved, State, Store};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The frame of a node that reads little, and letters on both sides of it.
const SMALL_FRAME: usize = 20_000;
const SHORT: usize = 15_000;
const LONG: usize = 25_000;

#[derive(Default, Wire)]
struct Page {
    lens: Vec<u64>,
}

impl State for Page {}

struct Scribe {
    saved: Saved<Page>,
}

#[actor(name = "test.scribe", wire, durable = saved)]
impl Scribe {
    /// Leaves letters of these lengths for another one; returns why one was refused.
    #[wire(skip)]
    async fn leave(
        &mut self,
        to: String,
        lens: Vec<usize>,
        ctx: &mut Context<Self>,
    ) -> Result<(), PostError> {
        let other = ctx.node().get::<Scribe>(to);
        let post = self.saved.post();
        lens.into_iter()
            .try_for_each(|len| post.tell(|request| other.note(request, "x".repeat(len))))
    }

    /// Leaves a letter for another one, whose reply has that length.
    #[wire(skip)]
    async fn leave_swell(&mut self, to: String, len: u64, ctx: &mut Context<Self>) {
        let other = ctx.node().get::<Scribe>(to);
        let left = self.saved.post().tell(|request| other.swell(request, len));
        left.expect("the letter itself is short");
    }

    async fn swell(&mut self, request: RequestId, len: u64) -> String {
        self.saved.once(&request, |page| page.lens.push(len));
        "x".repeat(len as usize)
    }

    async fn note(&mut self, request: RequestId, text: String) {
        self.saved.once(&request, |page| page.lens.push(text.len() as u64));
    }

    async fn lens(&self) -> Vec<u64> {
        self.saved.lens.clone()
    }
}

/// Holds up its move until it may go.
struct Porter {
    stops: Arc<Notify>,
    may_go: Arc<Notify>,
}

#[actor(name = "test.porter", wire)]
impl Porter {
    async fn carry(&mut self, load: String) -> u64 {
        load.len() as u64
    }

    async fn stopping(&mut self) {
        self.stops.notify_one();
        self.may_go.notified().await;
    }
}

fn config(authority: &Authority, name: &str, frame_len_max: Option<usize>) -> MemberConfig {
    let at = authority.address().to_string();
    let config = MemberConfig::new("test", name, at, Tls::insecure_plaintext());
    match frame_len_max {
        Some(len) => config.frame_len_max(len),
        None => config,
    }
}

/// A member with a courier that is not started yet.
async fn node(
    authority: &Authority,
    name: &str,
    frame_len_max: Option<usize>,
    memory: &Arc<Memory>,
) -> (Member, Node, Arc<Courier>) {
    let member = Member::bind(config(authority, name, frame_len_max)).expect("a port");
    let courier = Arc::new(Courier::new(memory.clone()));
    let store: Arc<dyn Store> = courier.clone();
    let open = move |start: Start<Scribe>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Scribe { saved: Saved::load(store, &start).await? }) }
    };
    let node = Node::builder(name).cluster(member.way()).actor(open).build();
    member.join().await.expect("the authority is there");
    (member, node, courier)
}

/// Waits until the scribe has noted texts of these lengths.
async fn noted(scribe: &ActorRef<Scribe>, lens: &[usize]) {
    let lens: Vec<_> = lens.iter().map(|len| *len as u64).collect();
    let all_come = async {
        while scribe.lens().await.as_ref() != Ok(&lens) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, all_come).await.expect("they arrive");
}

async fn move_to(member: &Member, scribe: &ActorRef<Scribe>, node: &str) {
    timeout(PATIENCE, member.move_to(&scribe.id(), node))
        .await
        .expect("it ends")
        .expect("it moves");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_that_some_node_cannot_read_is_refused_wherever_its_actor_lives() {
    let (_directory, authority) = crate::support::authority();
    let memory = Arc::new(Memory::new());
    let (one, first, courier) = node(&authority, "one", None, &memory).await;
    let (_two, _second, _) = node(&authority, "two", Some(SMALL_FRAME), &memory).await;
    courier.start(&first);
    let (writer, reader) = (first.get::<Scribe>("writer"), first.get::<Scribe>("reader"));
    move_to(&one, &writer, "one").await;
    let mut expected = Vec::new();
    for place in ["one", "two"] {
        move_to(&one, &reader, place).await;
        let refused = writer.leave("reader".to_owned(), vec![LONG]).await.expect("it runs");
        let Err(PostError::TooLong { from, to, len, len_max }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((from, to), (writer.id(), reader.id()));
        assert!(len >= LONG && len_max <= SMALL_FRAME, "{len} {len_max}");
        writer.leave("reader".to_owned(), vec![SHORT]).await.expect("it runs").expect("it fits");
        expected.push(SHORT);
        noted(&reader, &expected).await;
    }
    assert_eq!(courier.set_aside_total(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_that_the_node_of_its_actor_cannot_read_is_set_aside_and_those_behind_it_arrive() {
    let (_directory, authority) = crate::support::authority();
    let memory = Arc::new(Memory::new());
    let (one, first, courier) = node(&authority, "one", None, &memory).await;
    let (writer, reader) = (first.get::<Scribe>("writer"), first.get::<Scribe>("reader"));
    // All nodes that there are could read it.
    let left = writer.leave("reader".to_owned(), vec![LONG, SHORT]).await;
    left.expect("it runs").expect("they fit");
    let (_two, _second, _) = node(&authority, "two", Some(SMALL_FRAME), &memory).await;
    move_to(&one, &writer, "one").await;
    move_to(&one, &reader, "two").await;
    courier.start(&first);
    noted(&reader, &[SHORT]).await;
    assert_eq!(courier.set_aside_total(), 1);
    assert!(courier.prometheus_text().contains("\nalthing_courier_set_aside_total 1\n"));
    let kept = memory.due(Timestamp(u64::MAX), None, 9).await.expect("it reads");
    assert!(kept.iter().any(|delivery| delivery.letter.body.len() > LONG), "it is kept");
    // Where there is room for it, it comes the next time that the store is read: every half minute,
    // and when a courier begins.
    move_to(&one, &reader, "one").await;
    Courier::new(memory.clone()).start(&first);
    noted(&reader, &[SHORT, LONG]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_whose_reply_is_longer_than_a_frame_was_taken_and_comes_once() {
    let (_directory, authority) = crate::support::authority();
    let memory = Arc::new(Memory::new());
    let (one, first, courier) = node(&authority, "one", None, &memory).await;
    let (_two, _second, _) = node(&authority, "two", Some(SMALL_FRAME), &memory).await;
    courier.start(&first);
    let (writer, reader) = (first.get::<Scribe>("writer"), first.get::<Scribe>("reader"));
    move_to(&one, &writer, "one").await;
    move_to(&one, &reader, "two").await;
    writer.leave_swell("reader".to_owned(), LONG as u64).await.expect("it runs");
    noted(&reader, &[LONG]).await;
    let is_settled = async {
        while !memory.due(Timestamp(u64::MAX), None, 9).await.expect("it reads").is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, is_settled).await.expect("it is not tried for ever");
    // Whoever asks hears that it ran.
    let request = RequestId::new("asked");
    let refused = reader.swell(request, LONG as u64).timeout(PATIENCE).await;
    assert!(matches!(&refused, Err(error @ AskError::ReplyTooLong(id, _))
        if *id == reader.id() && error.may_have_run()));
    noted(&reader, &[LONG, LONG]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tell_to_an_actor_that_moves_to_a_node_that_cannot_read_it_comes_back() {
    let (_directory, authority) = crate::support::authority();
    let (stops, may_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut nodes = Vec::new();
    for (name, frame_len_max) in [("one", None), ("two", Some(SMALL_FRAME)), ("three", None)] {
        let member = Member::bind(config(&authority, name, frame_len_max)).expect("a port");
        let (stops, may_go) = (stops.clone(), may_go.clone());
        let open = move |_: Start<Porter>| {
            let porter = Porter { stops: stops.clone(), may_go: may_go.clone() };
            async move { Ok::<_, ActorError>(porter) }
        };
        let node = Node::builder(name).cluster(member.way()).actor(open).build();
        member.join().await.expect("the authority is there");
        nodes.push((member, node));
    }
    let porters: Vec<_> = nodes.iter().map(|(_, node)| node.get::<Porter>("ada")).collect();
    let id = porters[0].id();
    let move_to = |node| timeout(PATIENCE, nodes[0].0.move_to(&id, node));
    // Nobody has woken it yet, so nothing holds it up.
    move_to("one").await.expect("it ends").expect("it moves");
    let is_known = async {
        while nodes[2].0.owner_of(&id) != Some(nodes[0].1.incarnation()) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, is_known).await.expect("the third node hears of it");
    for porter in [&porters[0], &porters[2]] {
        porter.carry("x".repeat(LONG)).tell().await.expect("it fits");
        assert_eq!(porter.carry("x".repeat(LONG)).await, Ok(LONG as u64));
    }
    let moving = async {
        timeout(PATIENCE, stops.notified()).await.expect("it stops");
        // What the first node tells it waits in its mailbox and leaves with it; the third one sends
        // to the first, and knows a little later that it goes on from there.
        let comes_back = async {
            let told = || porters[2].carry("x".repeat(LONG)).tell();
            while !matches!(told().await, Err(SendError::TooLong(_))) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, comes_back).await.expect("it comes back");
        may_go.notify_one();
    };
    let (moved, ()) = tokio::join!(move_to("two"), moving);
    moved.expect("it ends").expect("it moves");
    assert_eq!(porters[0].carry("x".repeat(SHORT)).timeout(PATIENCE).await, Ok(SHORT as u64));
    may_go.notify_one();
}
