//! What a store on a server promises while that server is killed, stopped and started again: one
//! body per promise, run by each adapter.

mod letters;
pub(crate) mod lost;

use std::sync::Arc;
use std::time::Duration;

use althing::remote::Letter;
use althing::{ActorId, Epoch, Timestamp};
use althing_store::{
    Delivery, Event, Posting, Settled, Snapshot, Store, StoreError, Turn, conformance,
};
use tokio::sync::watch;

const ACTORS: u64 = 8;
/// Commits that one actor has on their way at once.
const AT_ONCE: u64 = 8;
/// Calls that a hasty store lets in.
const HASTY_CALLS: usize = 5;
const HASTY_WAITS: Duration = Duration::from_millis(500);

/// How a store is to use its server, where that matters.
#[derive(Clone, Default)]
pub(crate) struct With {
    /// Where it is, if not at its own address.
    pub(crate) through: Option<String>,
    pub(crate) answer_within: Option<Duration>,
    pub(crate) wait_within: Option<Duration>,
    pub(crate) calls_max: Option<usize>,
    pub(crate) bytes_max: Option<usize>,
}

/// Why a store refused, in words that all of them have.
#[derive(Debug, PartialEq)]
pub(crate) enum Why {
    Waited(Duration),
    Full(usize),
    Ended,
    Other(String),
}

/// A server, and the store on it.
pub(crate) trait Served {
    type Store: Store;
    /// Bytes of kind and key, at most.
    const NAME_MAX: usize;
    /// What a client says last before a commit is up to the server; `None` if it says all at once.
    const LAST_WORD: Option<&'static [u8]>;

    async fn try_connect(&self, with: With) -> Result<Self::Store, String>;
    /// Host and port.
    fn address(&self) -> String;
    fn kill(&mut self);
    fn start_again(&mut self);
    fn pause(&self);
    fn resume(&self);
    fn why(error: &StoreError) -> Why;
    /// The version that the server has, whether or not its store has heard of it.
    async fn version_of(&self, id: &ActorId) -> Option<u64>;
    /// Makes its tables those of a later version.
    async fn pretend_later(&self);

    async fn connect(&self) -> Self::Store {
        self.try_connect(With::default()).await.expect("the server takes connections")
    }
}

pub(crate) fn id(kind: &str, key: u64) -> ActorId {
    ActorId::named(kind, key.to_string())
}

/// Each version is its own state and its own event, so that a hole or a mixture shows.
pub(crate) fn turn(id: &ActorId, epoch: u64, version: u64) -> Turn {
    let bytes = version.to_string().into_bytes();
    Turn {
        snapshot: Some(Snapshot { schema: 1, bytes: bytes.clone(), includes: version }),
        events: vec![Event { number: version, schema: 1, bytes }],
        ..Turn::new(id.clone(), Epoch(epoch), version)
    }
}

/// Whether what is kept is just the turns up to its version; returns that.
pub(crate) async fn whole(store: &dyn Store, id: &ActorId) -> u64 {
    let kept = store.open(id, Epoch(1)).await.expect("it opens");
    let bytes = kept.snapshot.map_or(vec![], |snapshot| snapshot.bytes);
    let expected = if kept.version == 0 { String::new() } else { kept.version.to_string() };
    assert_eq!(bytes, expected.as_bytes(), "a turn is there as a whole");
    assert_eq!(kept.last_event, kept.version);
    let events = store.events(id, 0, usize::MAX).await.expect("it reads");
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=kept.version).collect::<Vec<_>>(), "no event is missing or doubled");
    kept.version
}

pub(crate) async fn keeps_every_promise(server: &impl Served) {
    let store: Arc<dyn Store> = Arc::new(server.connect().await);
    conformance::run(store, async |store| {
        drop(store);
        let again: Arc<dyn Store> = Arc::new(server.connect().await);
        again
    })
    .await;
}

pub(crate) async fn a_former_owner_writes_nothing_once_it_is_fenced(
    server: &impl Served,
    epochs: u64,
) {
    let (former, owner) = (server.connect().await, server.connect().await);
    let id = id("fenced", 1);
    former.open(&id, Epoch(1)).await.expect("it opens");
    let mut version = 0;
    for epoch in 2..2 + epochs {
        // Commits of the former owner and the takeover meet in the server.
        let late: Vec<_> =
            (1..=AT_ONCE).map(|n| former.commit(turn(&id, epoch - 1, version + n))).collect();
        let kept = owner.open(&id, Epoch(epoch)).await.expect("a later epoch");
        let mut written = version;
        for late in late {
            match late.await {
                Ok(()) => written += 1,
                Err(refused) => assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}"),
            }
        }
        assert_eq!(kept.version, written, "nothing is written after the takeover was answered");
        owner.commit(turn(&id, epoch, written + 1)).await.expect("the owner goes on");
        version = written + 1;
    }
}

/// Commits until told to end; returns the last version that was acknowledged.
async fn commit_on(store: Arc<impl Store>, id: ActorId, mut end: watch::Receiver<bool>) -> u64 {
    let mut acknowledged = 0;
    while !*end.borrow_and_update() {
        // After a failure the store is asked what it has.
        let Ok(kept) = store.open(&id, Epoch(1)).await else { continue };
        assert!(kept.version >= acknowledged, "{id}: {acknowledged} was acknowledged, {kept:?}");
        let mut version = kept.version;
        while !*end.borrow_and_update() {
            let answers: Vec<_> =
                (1..=AT_ONCE).map(|more| store.commit(turn(&id, 1, version + more))).collect();
            let mut has_failed = false;
            for (next, answer) in (version + 1..).zip(answers) {
                match answer.await {
                    // Also behind one of which nobody knows: then that one was written.
                    Ok(()) => acknowledged = next,
                    Err(StoreError::Fenced { .. }) => panic!("nobody else has it"),
                    Err(_) => has_failed = true,
                }
            }
            if has_failed {
                break;
            }
            version += AT_ONCE;
        }
    }
    acknowledged
}

/// What a store with little patience and room answers while there is no server.
async fn is_refused_by_name<S: Served>(store: &S::Store) {
    let answers: Vec<_> =
        (1..=10).map(|version| store.commit(turn(&id("hasty", 1), 1, version))).collect();
    let (mut waited, mut full) = (0, 0);
    for answer in answers {
        let refused = answer.await.expect_err("there is no server");
        assert!(!refused.may_have_written(), "{refused}");
        match S::why(&refused) {
            Why::Waited(time) => {
                assert!(time >= HASTY_WAITS);
                waited += 1;
            }
            Why::Full(HASTY_CALLS) => full += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((waited, full), (HASTY_CALLS, 10 - HASTY_CALLS), "above the limit, at once");
}

pub(crate) async fn a_killed_server_loses_nothing_and_calls_wait_and_are_then_refused_by_name<S>(
    server: &mut S,
    kills: u64,
) where
    S: Served,
{
    let store = Arc::new(server.connect().await);
    let (wait_within, calls_max) = (Some(HASTY_WAITS), Some(HASTY_CALLS));
    let hasty = server.try_connect(With { wait_within, calls_max, ..With::default() }).await;
    let hasty = hasty.expect("the server takes connections");
    hasty.open(&id("hasty", 1), Epoch(1)).await.expect("it opens");
    let (end, ended) = watch::channel(false);
    let committing: Vec<_> = (0..ACTORS)
        .map(|key| tokio::spawn(commit_on(store.clone(), id("killed", key), ended.clone())))
        .collect();
    let letters = letters::Transfers::begin(store.clone());
    for round in 0..kills {
        // Amid commits: once some more of them have been made.
        let probe = id("killed", 1_000 + round);
        let last = 20 + round * 7;
        for version in 1..=last {
            store.commit(turn(&probe, 1, version)).await.expect("the server works");
        }
        tokio::task::block_in_place(|| server.kill());
        if round == 0 {
            is_refused_by_name::<S>(&hasty).await;
        }
        tokio::task::block_in_place(|| server.start_again());
        assert_eq!(whole(&*store, &probe).await, last, "it comes back by itself, with what it had");
        store.commit(turn(&probe, 1, last + 1)).await.expect("the server works");
    }
    end.send(true).expect("they listen");
    for (key, committing) in (0..).zip(committing) {
        let acknowledged = committing.await.expect("no promise is broken");
        assert!(acknowledged > 0, "it got somewhere");
        assert!(whole(&*store, &id("killed", key)).await >= acknowledged);
    }
    letters.check().await;
    while hasty.open(&id("hasty", 1), Epoch(1)).await.is_err() {}
    assert_eq!(whole(&hasty, &id("hasty", 1)).await, 0, "nothing that was refused was written");
}

pub(crate) async fn a_server_that_stands_still_is_waited_for(server: &impl Served, with: With) {
    let store = server.try_connect(with).await.expect("the server takes connections");
    let id = id("still", 1);
    store.open(&id, Epoch(1)).await.expect("it opens");
    server.pause();
    let waiting: Vec<_> = (1..=10).map(|version| store.commit(turn(&id, 1, version))).collect();
    let mut waiting = Box::pin(futures_util::future::join_all(waiting));
    let early = tokio::time::timeout(Duration::from_secs(2), &mut waiting).await;
    server.resume();
    assert!(early.is_err(), "nothing is acknowledged by a server that does not run");
    for answer in waiting.await {
        answer.expect("each is written once");
    }
    assert_eq!(whole(&store, &id).await, 10);
}

/// Longer than a call waits, amid commits of several actors.
pub(crate) async fn a_server_that_stands_still_for_long_loses_nothing(
    server: &impl Served,
    still: Duration,
) {
    let store = Arc::new(server.connect().await);
    let (end, ended) = watch::channel(false);
    let committing: Vec<_> = (0..ACTORS)
        .map(|key| tokio::spawn(commit_on(store.clone(), id("held", key), ended.clone())))
        .collect();
    let probe = id("held", 1_000);
    for version in 1..=20 {
        store.commit(turn(&probe, 1, version)).await.expect("the server works");
    }
    server.pause();
    tokio::time::sleep(still).await;
    server.resume();
    while store.open(&probe, Epoch(1)).await.is_err() {}
    for version in 21..=40 {
        store.commit(turn(&probe, 1, version)).await.expect("the server works again");
    }
    end.send(true).expect("they listen");
    for (key, committing) in (0..).zip(committing) {
        let acknowledged = committing.await.expect("no promise is broken");
        assert!(acknowledged > 0, "it got somewhere");
        assert!(whole(&*store, &id("held", key)).await >= acknowledged);
    }
    assert_eq!(whole(&*store, &probe).await, 40);
}

pub(crate) async fn what_does_not_fit_is_refused_by_name_and_the_largest_is_kept<S: Served>(
    server: &S,
    delivery_name_max: usize,
) {
    const TURN_MAX: usize = 8 << 20;
    let with = With { bytes_max: Some(TURN_MAX), ..With::default() };
    let store = server.try_connect(with).await.expect("the server takes connections");
    // Text that no index compresses.
    let text = |bytes: usize| -> String {
        (0..bytes as u64).map(|n| char::from(33 + (n * n % 89) as u8)).collect()
    };
    let long = ActorId::named("long", text(S::NAME_MAX - 3));
    let refused = store.open(&long, Epoch(1)).await.expect_err("it does not fit");
    let max = S::NAME_MAX;
    assert!(
        matches!(refused, StoreError::TooLarge { bytes, max: held, .. } if (bytes, held) == (max + 1, max)),
        "{refused}"
    );
    let longest = ActorId::named("long", text(S::NAME_MAX - 4));
    let left = |name: String| {
        let (owner, due) = (longest.clone(), Timestamp(7));
        let letter = Letter { to: owner.clone(), message: "ring".to_owned(), body: vec![1] };
        let posting = Posting::Put(Delivery { owner, name, due, cron: None, letter });
        let event = Event { number: 1, schema: 1, bytes: vec![1] };
        let turn = Turn::new(longest.clone(), Epoch(1), 1);
        Turn { postings: vec![posting], events: vec![event], ..turn }
    };
    let refused = store.commit(left(text(delivery_name_max + 1))).await.expect_err("too long");
    assert!(matches!(refused, StoreError::TooLarge { what: "delivery's name", .. }), "{refused}");
    store.commit(left(text(delivery_name_max))).await.expect("the longest one is kept");
    let due = store.due(Timestamp(7), None, 9).await.expect("it reads");
    assert_eq!(due.len(), 1);
    store.settle(vec![Settled { mark: due[0].mark(), next: None }]).await.expect("it is taken");
    assert_eq!(store.due(Timestamp(7), None, 9).await.expect("it reads"), []);
    let large = |bytes| Turn {
        snapshot: Some(Snapshot { schema: 1, bytes: vec![7; bytes], includes: 0 }),
        ..Turn::new(id("limits", 2), Epoch(1), 1)
    };
    let refused = store.commit(large(TURN_MAX + 1)).await.expect_err("it does not fit");
    assert!(matches!(refused, StoreError::TooLarge { what: "turn", .. }), "{refused}");
    store.commit(large(TURN_MAX)).await.expect("the largest one is written");
    let kept = store.open(&id("limits", 2), Epoch(1)).await.expect("it opens");
    assert_eq!(kept.snapshot.map(|snapshot| snapshot.bytes.len()), Some(TURN_MAX));
}

pub(crate) async fn tables_of_a_later_version_are_refused_by_name(server: &impl Served) {
    drop(server.connect().await);
    server.pretend_later().await;
    let Err(refused) = server.try_connect(With::default()).await else {
        panic!("the tables are of a later version")
    };
    assert!(refused.contains("format 99"), "{refused}");
}

pub(crate) fn a_store_whose_runtime_has_ended_refuses_by_name<S: Served>(
    connect: impl Future<Output = S::Store>,
) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = runtime.block_on(connect);
    drop(runtime);
    let answers = [1, 2].map(|key| store.commit(turn(&id("ended", key), 1, 1)));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for answer in answers {
        let refused = runtime.block_on(answer).expect_err("nobody is there");
        assert_eq!(S::why(&refused), Why::Ended);
    }
}
