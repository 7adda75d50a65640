//! What is longer than a frame between nodes: letters of durable actors.

mod support;

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorRef, Context, Node, Start, Timestamp, Wire, actor};
use althing_cluster::{Authority, Member, MemberConfig, Tls};
use althing_store::{Courier, Memory, PostError, RequestId, Saved, State, Store};
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

    async fn note(&mut self, request: RequestId, text: String) {
        self.saved.once(&request, |page| page.lens.push(text.len() as u64));
    }

    async fn lens(&self) -> Vec<u64> {
        self.saved.lens.clone()
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
    let (_directory, authority) = support::authority();
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
    let (_directory, authority) = support::authority();
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
