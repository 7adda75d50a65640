//! Actors that move and have themselves moved, over real sockets.

use std::sync::Arc;
use std::time::Duration;

use crate::support::cluster::{Cluster, joined};
use althing::remote::NotMoved;
use althing::{ActorRef, Context, Node, actor};
use althing_cluster::{Authority, Member, MemberConfig, MoveError, Role, Tls};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Goes where it is sent.
struct Wanderer;

#[actor(name = "test.wanderer", wire)]
impl Wanderer {
    async fn go(&mut self, node: String, ctx: &mut Context<Self>) -> String {
        format!("{:?}", ctx.move_to(&node))
    }

    async fn home(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }
}

async fn node(authority: &Authority, name: &str) -> (Member, Node) {
    node_of(authority, name, Role::Host).await
}

async fn node_of(authority: &Authority, name: &str, role: Role) -> (Member, Node) {
    let at = authority.address().to_string();
    let config = MemberConfig::new("test", name, at, Tls::insecure_plaintext()).role(role);
    joined(config, |node| node.actor(async |_| Ok(Wanderer))).await
}

async fn go(wanderer: &ActorRef<Wanderer>, node: &str) -> String {
    wanderer.go(node.to_owned()).timeout(PATIENCE).await.expect("no ask fails")
}

/// Until it lives there; no ask fails meanwhile.
async fn lives_on(wanderer: &ActorRef<Wanderer>, node: &str) {
    let lives = async {
        while wanderer.home().timeout(PATIENCE).await.expect("no ask fails") != node {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, lives).await.expect("it comes there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_has_itself_moved_and_is_refused_where_nobody_takes_it() {
    let (_directory, authority) = crate::support::authority();
    let (one, first) = node(&authority, "one").await;
    let (_two, second) = node(&authority, "two").await;
    let wanderer = first.get::<Wanderer>("ada");
    for there in ["two", "one", "two", "one"] {
        // The second node may not be known everywhere yet.
        let asked = async {
            while go(&wanderer, there).await != "Ok(())" {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, asked).await.expect("it is known");
        lives_on(&wanderer, there).await;
        lives_on(&second.get::<Wanderer>("ada"), there).await;
    }
    // No actor lives on a guest, which is a member all the same.
    let (_guest, gateway) = node_of(&authority, "gateway", Role::Guest).await;
    let from_there = gateway.get::<Wanderer>("ada").home().timeout(PATIENCE).await;
    assert_eq!(from_there.as_deref(), Ok("one"));
    let mut views = one.views();
    while one.view().members.len() < 3 {
        timeout(PATIENCE, views.changed()).await.expect("it is known").expect("it lives");
    }
    for nowhere in ["nine", "gateway"] {
        let unknown = NotMoved::UnknownNode(nowhere.to_owned());
        assert_eq!(go(&wanderer, nowhere).await, format!("{:?}", Err::<(), _>(unknown)));
    }
    let nobody = first.spawn(Wanderer);
    let stays = NotMoved::Stays(nobody.id());
    assert_eq!(go(&nobody, "two").await, format!("{:?}", Err::<(), _>(stays)));
    let anonymous = one.move_to(&nobody.id(), "two").await;
    assert_eq!(anonymous, Err(MoveError::Anonymous(nobody.id())));
    let alone = Node::builder("alone").actor(async |_| Ok(Wanderer)).build();
    assert!(go(&alone.get::<Wanderer>("ada"), "one").await.contains("Stays"));
    assert_eq!(wanderer.home().timeout(PATIENCE).await.as_deref(), Ok("one"));
}

/// Two who want it in two places: both hear what came of it, and it lives in one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_moves_of_one_actor_at_once_both_end() {
    let (_directory, authority) = crate::support::authority();
    let (one, first) = node(&authority, "one").await;
    let (two, _second) = node(&authority, "two").await;
    let (three, _third) = node(&authority, "three").await;
    let wanderer = first.get::<Wanderer>("ada");
    let known = async {
        for member in [&one, &two, &three] {
            let mut views = member.views();
            while member.view().members.len() < 3 {
                views.changed().await.expect("it lives");
            }
        }
    };
    timeout(PATIENCE, known).await.expect("they know each other");
    for _ in 0..20 {
        let id = wanderer.id();
        let moves = async {
            tokio::join!(
                two.move_to(&id, "three"),
                three.move_to(&id, "two"),
                one.move_to(&id, "one")
            )
        };
        let (by_two, by_three, by_one) = timeout(PATIENCE, moves).await.expect("all end");
        let ends = [by_one, by_two, by_three];
        let fine = |end: &Result<(), MoveError>| matches!(end, Ok(()) | Err(MoveError::Overridden));
        assert!(ends.iter().all(fine), "{ends:?}");
        wanderer.home().timeout(PATIENCE).await.expect("no ask fails");
    }
}

/// Says that somebody is at work, and lets nobody end before it is told to.
struct Gate {
    begun: Semaphore,
    open: Semaphore,
}

struct Porter(Arc<Gate>);

#[actor(name = "test.porter", wire)]
impl Porter {
    async fn carry(&mut self) {
        self.0.begun.add_permits(1);
        _ = self.0.open.acquire().await;
    }

    async fn home(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }
}

async fn porters(authority: &Authority, name: &str, gate: &Arc<Gate>) -> (Member, Node) {
    let at = authority.address().to_string();
    let config = MemberConfig::new("test", name, at, Tls::insecure_plaintext());
    let (member, gate) = (Member::bind(config).expect("a port"), gate.clone());
    let factory = move |_| {
        let porter = Porter(gate.clone());
        async { Ok(porter) }
    };
    let node = Node::builder(name).cluster(member.way()).actor(factory).build();
    member.join().await.expect("the authority is there");
    (member, node)
}

/// Buckets leave a node by the hundred; each is given away as soon as its own actors have stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_that_takes_long_holds_up_no_others_move() {
    let (_directory, authority) = crate::support::authority();
    let gate = Arc::new(Gate { begun: Semaphore::new(0), open: Semaphore::new(0) });
    let (one, first) = porters(&authority, "one", &gate).await;
    let (two, second) = porters(&authority, "two", &gate).await;
    let mut views = one.views();
    while one.view().members.iter().any(|member| member.buckets < 1_500) {
        timeout(PATIENCE, views.changed()).await.expect("they share").expect("it lives");
    }
    let all = (0..800).map(|n| first.get::<Porter>(format!("porter-{n}")));
    let mut on_two = all.filter(|porter| one.owner_of(&porter.id()) == Some(second.incarnation()));
    let slow = on_two.next().expect("half of them are there");
    let others: Vec<_> = on_two.collect();
    for porter in &others {
        assert_eq!(porter.home().timeout(PATIENCE).await.as_deref(), Ok("two"));
    }
    let carries = tokio::spawn({
        let slow = slow.clone();
        async move { slow.carry().timeout(PATIENCE * 3).await }
    });
    gate.begun.acquire().await.expect("it is open").forget();
    let leaves = tokio::spawn(async move { two.leave(PATIENCE * 3).await });
    let moved = async {
        for porter in &others {
            while porter.home().timeout(PATIENCE).await.as_deref() != Ok("one") {
                sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let moved = timeout(PATIENCE / 2, moved).await;
    assert!(moved.is_ok(), "some wait for an actor that is none of their business");
    assert!(!carries.is_finished() && !leaves.is_finished());
    gate.open.add_permits(1);
    carries.await.expect("no panic").expect("it is answered before it moves");
    leaves.await.expect("no panic");
    assert_eq!(slow.home().timeout(PATIENCE).await.as_deref(), Ok("one"));
}

/// Adds up what it is told, and takes long to stop.
struct Lingerer {
    gate: Arc<Gate>,
    sum: u64,
}

#[actor(name = "test.lingerer", wire)]
impl Lingerer {
    async fn add(&mut self, number: u64) {
        self.sum += number;
    }

    async fn sum(&mut self) -> u64 {
        self.sum
    }

    async fn pause(&mut self) {
        self.stopping().await;
    }

    async fn stopping(&mut self) {
        self.gate.begun.add_permits(1);
        _ = self.gate.open.acquire().await;
    }
}

impl Gate {
    /// Waits until somebody is at work, tells until it has to wait, and lets that go on; returns how
    /// often it told.
    async fn tell_until_slowed(&self, lingerer: &ActorRef<Lingerer>) -> u64 {
        self.begun.acquire().await.expect("it is open").forget();
        let mut told = 0;
        while lingerer.add(1).timeout(Duration::from_millis(500)).tell().await.is_ok() {
            told += 1;
            assert!(told < 50_000, "nobody is slowed");
        }
        self.open.add_permits(1);
        told
    }
}

/// Two nodes, and a lingerer that lives on the second one.
async fn lingering(
    cluster: &Cluster,
    gate: &Arc<Gate>,
) -> ([(Member, Node); 2], ActorRef<Lingerer>) {
    let node = async |name: &str| {
        let gate = gate.clone();
        let factory = move |_| {
            let lingerer = Lingerer { gate: gate.clone(), sum: 0 };
            async { Ok(lingerer) }
        };
        joined(cluster.config(name), |node| node.actor(factory)).await
    };
    let nodes = [node("one").await, node("two").await];
    let lingerer = nodes[0].1.get::<Lingerer>("ada");
    let away = async {
        // The node may not be known yet.
        while nodes[0].0.move_to(&lingerer.id(), "two").await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, away).await.expect("it moves");
    (nodes, lingerer)
}

/// Others send on meanwhile: they wait, and the node that holds it does not fill its memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_for_an_actor_whose_mailbox_stays_full_is_bounded_and_arrives() {
    let cluster = Cluster::new();
    let gate = Arc::new(Gate { begun: Semaphore::new(0), open: Semaphore::new(0) });
    let (_nodes, lingerer) = lingering(&cluster, &gate).await;
    lingerer.pause().tell().await.expect("there is room");
    let told = timeout(PATIENCE * 2, gate.tell_until_slowed(&lingerer)).await.expect("in time");
    assert_eq!(lingerer.sum().timeout(PATIENCE).await, Ok(told));
}

/// Others send on meanwhile: they wait, and the node that holds it does not fill its memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_for_an_actor_whose_move_takes_long_is_bounded_and_arrives() {
    let cluster = Cluster::new();
    let gate = Arc::new(Gate { begun: Semaphore::new(0), open: Semaphore::new(0) });
    let ([(one, _first), _second], lingerer) = lingering(&cluster, &gate).await;
    let id = lingerer.id();
    lingerer.add(1).timeout(PATIENCE).await.expect("it runs");
    let tells = gate.tell_until_slowed(&lingerer);
    let both = async { tokio::join!(one.move_to(&id, "one"), tells) };
    let (moved, told) = timeout(PATIENCE * 2, both).await.expect("in time");
    moved.expect("it is there");
    assert_eq!(lingerer.sum().timeout(PATIENCE).await, Ok(told));
}
