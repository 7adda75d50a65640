//! All that may happen to living nodes at one time: actors are moved by hand, nodes come and leave,
//! links break and hang, and the authority is away for less and for more than a lease. Nothing that
//! was accepted is lost, doubled or out of order. The nodes are in one process and talk over TCP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::proxy::Proxy;
use crate::support::{LEASE, any_port};
use althing::stable_hash::mix;
use althing::{Context, Node, actor};
use althing_cluster::{Authority, Member, MemberConfig, Tls};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(60);

const ACTORS: u64 = 12;
const NODES: usize = 3;

/// What each actor has heard of each sender, in order.
type Book = Arc<Mutex<BTreeMap<(String, u64), Vec<u64>>>>;

/// Writes down what it hears.
struct Clerk(Book);

#[actor(name = "test.clerk", wire)]
impl Clerk {
    async fn hear(&mut self, sender: u64, n: u64, ctx: &mut Context<Self>) {
        let key = ctx.key().to_owned();
        self.0.lock().entry((key, sender)).or_default().push(n);
    }

    async fn add(&mut self, n: u64) -> u64 {
        n + 1
    }
}

/// Draws numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        usize::try_from(mix(self.0) % below as u64).expect("it is below")
    }
}

/// A node, and who talks on it.
struct Place {
    name: String,
    member: Member,
    node: Node,
    proxy: Proxy,
    ends: Arc<AtomicBool>,
    sender: JoinHandle<BTreeMap<String, u64>>,
    number: u64,
}

struct Scene {
    directory: tempfile::TempDir,
    authority: Option<Authority>,
    at: std::net::SocketAddr,
    book: Book,
    senders: u64,
    /// How many each sender was told are accepted, by actor.
    sent: BTreeMap<(String, u64), u64>,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (book, sent) = (Book::default(), BTreeMap::new());
        let mut scene = Self { directory, authority: None, at: any_port(), book, senders: 0, sent };
        scene.begin_authority();
        scene
    }

    fn begin_authority(&mut self) {
        let tls = Tls::insecure_plaintext();
        let record = self.directory.path().join("record");
        let authority = Authority::start("test", &record, self.at, LEASE, tls).expect("it starts");
        self.at = authority.address();
        self.authority = Some(authority);
    }

    async fn place(&mut self, name: String) -> Place {
        let proxy = Proxy::new().await;
        let tls = Tls::insecure_plaintext();
        let config = MemberConfig::new("test", name.clone(), self.at.to_string(), tls);
        let member = Member::bind(config.advertised(proxy.address.to_string())).expect("a port");
        proxy.target.set(member.address()).expect("once");
        let book = self.book.clone();
        let factory = move |_| {
            let clerk = Clerk(book.clone());
            async { Ok(clerk) }
        };
        let node = Node::builder(&name).cluster(member.way()).actor(factory).build();
        member.join().await.expect("the authority is there");
        self.senders += 1;
        let (ends, number) = (Arc::new(AtomicBool::new(false)), self.senders);
        let sender = tokio::spawn(talk(node.clone(), number, ends.clone()));
        Place { name, member, node, proxy, ends, sender, number }
    }

    /// Has a node's sender stop, then the node leave.
    async fn close(&mut self, place: Place) {
        place.ends.store(true, Ordering::Release);
        for (actor, count) in place.sender.await.expect("no panic") {
            self.sent.insert((actor, place.number), count);
        }
        timeout(PATIENCE * 2, place.member.leave(PATIENCE)).await.expect("it leaves");
        drop(place.node);
    }
}

/// Tells and asks until it is told to end; returns how many tells each actor was sent.
async fn talk(node: Node, sender: u64, ends: Arc<AtomicBool>) -> BTreeMap<String, u64> {
    let (mut dice, mut sent) = (Dice(sender << 32), BTreeMap::new());
    while !ends.load(Ordering::Acquire) {
        let key = format!("clerk-{}", dice.roll(ACTORS as usize));
        let clerk = node.get::<Clerk>(&*key);
        // Now and then a burst, and now and then one to somebody else in between.
        for _ in 0..=dice.roll(20) {
            let next = sent.entry(key.clone()).or_insert(0);
            clerk.hear(sender, *next).timeout(PATIENCE).tell().await.expect("there is room");
            *next += 1;
        }
        if dice.roll(4) == 0 {
            assert_eq!(clerk.add(7).timeout(PATIENCE).await, Ok(8), "no ask fails");
        }
        tokio::task::yield_now().await;
    }
    sent
}

async fn storm(seed: u64, lasts: Duration) {
    let (mut dice, mut scene) = (Dice(seed << 20), Scene::new());
    let mut places = Vec::new();
    for n in 0..NODES {
        places.push(scene.place(format!("node-{n}")).await);
    }
    let (until, mut come) = (Instant::now() + lasts, NODES);
    while Instant::now() < until {
        let at = dice.roll(places.len());
        match dice.roll(20) {
            0..=9 => {
                let clerk = places[0].node.get::<Clerk>(format!("clerk-{}", dice.roll(12)));
                let (by, to) = (&places[at].member, &places[dice.roll(places.len())].name);
                // Another one may want it elsewhere meanwhile, and the node may not be known yet.
                _ = timeout(Duration::from_millis(30), by.move_to(&clerk.id(), to)).await;
            }
            10..=12 => places[at].proxy.cut(),
            13 => {
                _ = timeout(LEASE, places[at].proxy.hang()).await;
                places[at].proxy.go_on();
            }
            14 => {
                scene.authority = None;
                sleep(LEASE / 4).await;
                scene.begin_authority();
            }
            15 if dice.roll(3) == 0 => {
                scene.authority = None;
                sleep(LEASE * 5 / 4).await;
                scene.begin_authority();
            }
            16 | 17 => {
                let place = places.swap_remove(at);
                scene.close(place).await;
                places.push(scene.place(format!("node-{come}")).await);
                come += 1;
            }
            _ => sleep(Duration::from_millis(dice.roll(50) as u64)).await,
        }
    }
    // A last one stays, so that everything has an owner.
    let last = scene.place("last".to_owned()).await;
    for place in places {
        scene.close(place).await;
    }
    last.ends.store(true, Ordering::Release);
    let number = last.number;
    for (actor, count) in last.sender.await.expect("no panic") {
        scene.sent.insert((actor, number), count);
    }
    for n in 0..ACTORS {
        let clerk = last.node.get::<Clerk>(format!("clerk-{n}"));
        assert_eq!(clerk.add(1).timeout(PATIENCE).await, Ok(2));
    }
    let book = std::mem::take(&mut *scene.book.lock());
    for ((actor, sender), count) in scene.sent.iter().filter(|(_, count)| **count > 0) {
        let heard = book.get(&(actor.clone(), *sender)).cloned().unwrap_or_default();
        let wanted: Vec<u64> = (0..*count).collect();
        let differs = wanted.iter().zip(&heard).position(|(a, b)| a != b);
        assert!(
            heard == wanted,
            "seed {seed}: {actor} heard {} of {count} of {sender}, the first that differs: {:?}",
            heard.len(),
            differs.map(|at| &heard[at.saturating_sub(2)..(at + 3).min(heard.len())]),
        );
    }
    timeout(PATIENCE, last.member.leave(Duration::from_secs(1))).await.expect("it leaves");
}

/// `STORM_SEED` and `STORM_SECONDS` have it be another one, and longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_reordered_whatever_happens_to_nodes_that_live() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("STORM_SEED").unwrap_or(1);
    let lasts = Duration::from_secs(number("STORM_SECONDS").unwrap_or(6));
    storm(seed, lasts).await;
}
