//! Actors whose state is saved: what they acknowledged comes back, a former owner cannot overwrite
//! it, and old schemas are read.

use std::pin::Pin;
use std::sync::Arc;

use althing::{
    Actor, ActorError, ActorId, AskError, Commit, Context, Epoch, Handler, Node, Remote, Start,
    Turns, Wire, WireError,
};
use althing_store::{Embedded, Memory, Saved, Snapshot, State, Store, Turn};
use althing_testkit::{Bridge, World};

#[derive(Default, Wire)]
struct Balance {
    cents: u64,
    log: Vec<String>,
}

impl State for Balance {}

struct Account {
    saved: Saved<Balance>,
}

#[derive(Wire)]
struct Deposit(u64);

impl Actor for Account {
    const NAME: &'static str = "test.account";
    const CODECS: Option<fn(&mut althing::Codecs<Self>)> = Some(Self::codecs);
    const TURNS: Turns = Turns::Held;

    fn commit(&mut self, _: &mut Context<Self>) -> Commit {
        self.saved.commit()
    }
}

impl Handler<Deposit> for Account {
    type Reply = u64;
    async fn handle(&mut self, Deposit(cents): Deposit, _: &mut Context<Self>) -> u64 {
        self.saved.cents += cents;
        self.saved.log.push(format!("+{cents}"));
        self.saved.cents
    }
}

impl Remote for Account {
    fn codecs(codecs: &mut althing::Codecs<Self>) {
        codecs.message::<Deposit, althing::Write>("deposit");
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Account, ActorError>> + Send>>;

fn opening(store: &Arc<dyn Store>) -> impl Fn(Start<Account>) -> Opening + Send + Sync + use<> {
    let store = store.clone();
    move |start| {
        let store = store.clone();
        Box::pin(async move { Ok(Account { saved: Saved::load(store, &start).await? }) })
    }
}

#[tokio::test]
async fn an_actor_comes_back_as_its_last_acknowledged_turn_left_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut total = 0;
    for _ in 0..3 {
        let store: Arc<dyn Store> = Arc::new(Embedded::open(directory.path()).expect("it opens"));
        let node = Node::builder("bank").actor(opening(&store)).build();
        let alice = node.get::<Account>("alice");
        for n in 1..=50 {
            total += n;
            assert_eq!(alice.send(Deposit(n)).await, Ok(total));
        }
        // As a process that is killed.
        node.kill();
    }
}

#[tokio::test]
async fn a_durable_actor_wakes_with_its_state_after_it_was_unloaded() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let node = Node::builder("bank").actor(opening(&store)).build();
    let alice = node.get::<Account>("alice");
    assert_eq!(alice.send(Deposit(5)).await, Ok(5));
    alice.stop().await;
    assert!(!alice.is_active());
    assert_eq!(alice.send(Deposit(5)).await, Ok(10));
}

#[test]
fn a_former_owner_cannot_overwrite_what_its_successor_wrote() {
    let world = World::new(3);
    let (bridge, store) = (Bridge::new(), Arc::new(Memory::new()));
    let store: Arc<dyn Store> = store;
    let node = |name| world.node(name).cluster(bridge.end()).actor(opening(&store)).build();
    let one = node("one");
    world.run(async {
        let id = ActorId::named("test.account", "alice");
        let here = one.get::<Account>("alice");
        assert_eq!(here.send(Deposit(1)).await, Ok(1));
        // The cluster gives the actor to the other node, and the first one does not know: it goes
        // on in its epoch.
        let sealed = one.seal(&id).await.expect("it is in memory");
        let mut successor = Saved::<Balance>::open(store.clone(), id.clone(), Epoch(2))
            .await
            .expect("a later epoch");
        successor.cents += 100;
        successor.commit().await.expect("it owns the actor");
        drop(sealed);
        let late = here.send(Deposit(7)).await;
        assert_eq!(late, Err(AskError::NotCommitted(here.id())));
        let again = Saved::<Balance>::open(store.clone(), id, Epoch(2)).await.expect("it opens");
        assert_eq!((again.cents, again.version()), (101, 2));
    });
}

#[derive(Default, Wire)]
struct Renamed {
    euros: u64,
    cents: u64,
}

impl State for Renamed {
    const SCHEMA: u32 = 2;

    fn upgrade(schema: u32, bytes: &[u8]) -> Result<Self, WireError> {
        match schema {
            1 => Balance::decode(bytes)
                .map(|old| Self { euros: old.cents / 100, cents: old.cents % 100 }),
            _ => Err(WireError::new(format!("schema {schema}"))),
        }
    }
}

#[tokio::test]
async fn what_an_older_schema_wrote_is_read_by_its_upgrade_and_a_later_one_is_refused() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let id = ActorId::named("test.account", "alice");
    let mut old =
        Saved::<Balance>::open(store.clone(), id.clone(), Epoch(1)).await.expect("it opens");
    old.cents = 1_234;
    old.commit().await.expect("it follows");
    let mut new =
        Saved::<Renamed>::open(store.clone(), id.clone(), Epoch(1)).await.expect("it upgrades");
    assert_eq!((new.euros, new.cents), (12, 34));
    new.cents = 35;
    new.commit().await.expect("it follows");
    let refused = Saved::<Balance>::open(store, id, Epoch(1)).await.expect_err("a later schema");
    assert!(refused.to_string().contains("schema 2, where 1 is known"), "{refused}");
}

/// The bytes that schema 1 wrote, as they were when it was released.
const GOLDEN: &[u8] = &[0x08, 0xd2, 0x09, 0x12, 0x05, b'+', b'1', b'2', b'3', b'4'];

#[tokio::test]
async fn what_the_first_release_wrote_still_loads() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let id = ActorId::named("test.account", "golden");
    store.open(&id, Epoch(1)).await.expect("it opens");
    let snapshot = Some(Snapshot { schema: 1, bytes: GOLDEN.to_vec(), includes: 0 });
    let turn = Turn { snapshot, ..Turn::new(id.clone(), Epoch(1), 1) };
    store.commit(turn).await.expect("it follows");
    let saved = Saved::<Balance>::open(store, id, Epoch(1)).await.expect("it reads");
    assert_eq!((saved.cents, &saved.log[..]), (1_234, &["+1234".to_owned()][..]));
}
