//! Letters between durable actors of a cluster, over real sockets: each has its effect once and in
//! order, though writer and reader move about and a node dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use althing::{ActorError, ActorRef, AskError, Context, Node, Start, Wire, actor};
use althing_cluster::{Authority, Member, MemberConfig, Tls};
use althing_store::{Courier, Memory, RequestId, Saved, State, Store};
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(60);

const LETTERS: u64 = 400;
const MOVES: usize = 60;

#[derive(Default, Wire)]
struct Page {
    lines: Vec<u64>,
}

impl State for Page {}

struct Scribe {
    saved: Saved<Page>,
}

#[actor(name = "test.scribe", wire, durable = saved)]
impl Scribe {
    /// Notes a line, and leaves it for another one.
    async fn write(&mut self, request: RequestId, line: u64, to: String, ctx: &mut Context<Self>) {
        let other = ctx.node().get::<Scribe>(to);
        self.saved.once(&request, |page| {
            page.lines.push(line);
            page.post().tell(|request| other.note(request, line)).expect("it can be written down");
        });
    }

    async fn note(&mut self, request: RequestId, line: u64) {
        self.saved.once(&request, |page| page.lines.push(line));
    }

    async fn lines(&self) -> Vec<u64> {
        self.saved.lines.clone()
    }
}

async fn node(authority: &Authority, name: &str, memory: &Arc<Memory>) -> (Member, Node) {
    let at = authority.address().to_string();
    let config = MemberConfig::new("test", name, at, Tls::insecure_plaintext());
    let member = Member::bind(config).expect("a port");
    let courier = Arc::new(Courier::new(memory.clone()));
    let store: Arc<dyn Store> = courier.clone();
    let open = move |start: Start<Scribe>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Scribe { saved: Saved::load(store, &start).await? }) }
    };
    let node = Node::builder(name).cluster(member.way()).actor(open).build();
    member.join().await.expect("the authority is there");
    courier.start(&node);
    (member, node)
}

/// Writes a line, again and again until it is answered.
async fn write(scribe: &ActorRef<Scribe>, line: u64) {
    let write = async {
        loop {
            let request = RequestId::new(format!("line {line}"));
            let asked = scribe.write(request, line, "reader".to_owned());
            match asked.timeout(PATIENCE).await {
                Ok(()) => return,
                Err(AskError::NodeLost(_) | AskError::NotCommitted(_) | AskError::Stopped(_)) => {}
                Err(why) => panic!("{why}"),
            }
        }
    };
    timeout(PATIENCE, write).await.expect("it is written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_have_their_effect_once_and_in_order_while_actors_move_and_a_node_dies() {
    let (_directory, authority) = crate::support::authority();
    let memory = Arc::new(Memory::new());
    let (one, first) = node(&authority, "one", &memory).await;
    let one = Arc::new(one);
    let _two = node(&authority, "two", &memory).await;
    let mut three = Some(node(&authority, "three", &memory).await);
    let (writer, reader) = (first.get::<Scribe>("writer"), first.get::<Scribe>("reader"));
    let (is_done, moves) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let moving = {
        let (is_done, moves, one) = (is_done.clone(), moves.clone(), one.clone());
        let ids = [writer.id(), reader.id()];
        tokio::spawn(async move {
            let mut places = ["two", "one", "three"].into_iter().cycle();
            while !is_done.load(Ordering::Relaxed) {
                let turn = moves.fetch_add(1, Ordering::Relaxed);
                let to = places.next().expect("they come again");
                // The third one dies amid this.
                let moved = one.move_to(&ids[turn % 3 % 2], to);
                _ = timeout(PATIENCE, moved).await.expect("it ends");
            }
        })
    };
    let mut lines = 0;
    while lines < LETTERS || moves.load(Ordering::Relaxed) < MOVES {
        if moves.load(Ordering::Relaxed) >= MOVES / 2 {
            // It says nothing any more, and does not know it; it is evicted.
            drop(three.take());
        }
        write(&writer, lines).await;
        lines += 1;
    }
    let read = async {
        while reader.lines().timeout(PATIENCE).await.map_or(0, |read| read.len() as u64) < lines {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, read).await.expect("all arrive");
    is_done.store(true, Ordering::Relaxed);
    moving.await.expect("no panic");
    let all: Vec<_> = (0..lines).collect();
    assert_eq!(writer.lines().timeout(PATIENCE).await, Ok(all.clone()));
    assert_eq!(reader.lines().timeout(PATIENCE).await, Ok(all));
}
