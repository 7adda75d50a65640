//! What each store has to promise to candidates, tried on the real one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::storage::{Claimant, Lead, Replaced, Storage};
use crate::record::{Member, Record, Stage};

/// etcd knows no shorter one.
const LEAD: Duration = Duration::from_secs(2);

/// Rounds of two who replace the same record at one time.
const RACES: u64 = 30;

/// Runs the suite. `open` makes a store for the cluster of that name, as another process would; it
/// makes none where one process at a time can have it.
pub(super) async fn run(open: impl Fn(&str) -> Option<Arc<dyn Storage>>) {
    let store = open("one").expect("nobody has it");
    a_record_is_replaced_by_who_knows_it(&*store).await;
    a_large_record_comes_back_whole(&*store).await;
    let elsewhere = open("two").expect("nobody has it");
    clusters_do_not_meet(&*store, &*elsewhere).await;
    if let Some(other) = open("one") {
        one_of_two_replaces_it(&store, &other).await;
        one_has_the_lead_until_it_gives_it_up(&*store, &*other).await;
        a_lead_that_is_not_renewed_ends_and_one_that_is_does_not(&*store, &*other).await;
    } else {
        let me = claimant(1);
        let lead = store.claim(&me, LEAD).await.expect("it answers");
        assert_eq!(lead.leader, me, "whoever has opened it leads");
    }
    let record = store.load().await.expect("it is there");
    drop(store);
    let again = open("one").expect("nobody has it");
    assert_eq!(again.load().await.expect("it is there"), record, "it outlives who wrote it");
}

fn claimant(id: u64) -> Claimant {
    // Ids are any 64 bits.
    Claimant { id: u64::MAX - id, address: format!("127.0.0.1:{id}") }
}

async fn a_record_is_replaced_by_who_knows_it(store: &dyn Storage) {
    assert_eq!(store.load().await.expect("it answers"), Record::empty());
    let first = Record { writes: 3, lease_ms: 1, ..Record::empty() };
    assert_eq!(store.replace(0, &first).await.expect("it answers"), Replaced::Done);
    assert_eq!(store.load().await.expect("it answers"), first);
    let other = Record { writes: 4, lease_ms: 2, ..Record::empty() };
    for stale in [0, 2, 4, u64::from(u32::MAX)] {
        let refused = store.replace(stale, &other).await.expect("it answers");
        assert_eq!(refused, Replaced::Refused, "it was stored 3 times, not {stale}");
    }
    assert_eq!(store.load().await.expect("it answers"), first, "nothing has changed");
    assert_eq!(store.replace(3, &other).await.expect("it answers"), Replaced::Done);
    assert_eq!(store.replace(3, &first).await.expect("it answers"), Replaced::Refused);
    assert_eq!(store.load().await.expect("it answers"), other);
}

async fn a_large_record_comes_back_whole(store: &dyn Storage) {
    let before = store.load().await.expect("it answers");
    let mut record = Record { writes: before.writes + 1, ..Record::empty() };
    for n in 0..2_000 {
        record.members.push(Member {
            incarnation: u64::MAX - n,
            name: format!("a-node-with-quite-a-name-{n}"),
            address: format!("[2001:db8::{n:x}]:7400"),
            stage: Stage::Active,
            since: n,
            frame_len_max: 4 << 20,
            labels: crate::label::Labels::default(),
        });
    }
    for (at, holding) in record.buckets.iter_mut().enumerate() {
        holding.owner = Some(u64::MAX - at as u64 % 2_000);
        (holding.epoch, holding.arrived) = (u64::MAX - at as u64, u64::MAX);
    }
    assert_eq!(store.replace(before.writes, &record).await.expect("it answers"), Replaced::Done);
    assert_eq!(store.load().await.expect("it answers"), record);
}

async fn clusters_do_not_meet(store: &dyn Storage, elsewhere: &dyn Storage) {
    assert_eq!(elsewhere.load().await.expect("it answers"), Record::empty());
    let record = Record { writes: 1, lease_ms: 77, ..Record::empty() };
    assert_eq!(elsewhere.replace(0, &record).await.expect("it answers"), Replaced::Done);
    assert_ne!(store.load().await.expect("it answers").lease_ms, 77);
    let (here, there) = (claimant(1), claimant(2));
    assert_eq!(store.claim(&here, LEAD).await.expect("it answers").leader, here);
    assert_eq!(elsewhere.claim(&there, LEAD).await.expect("it answers").leader, there);
    store.resign(&here).await.expect("it answers");
    elsewhere.resign(&there).await.expect("it answers");
}

async fn one_of_two_replaces_it(store: &Arc<dyn Storage>, other: &Arc<dyn Storage>) {
    for round in 0..RACES {
        let writes = store.load().await.expect("it answers").writes;
        let race = |store: &Arc<dyn Storage>, who| {
            let store = store.clone();
            let record = Record { writes: writes + 1, lease_ms: who, ..Record::empty() };
            tokio::spawn(async move { store.replace(writes, &record).await })
        };
        let (one, two) = (race(store, round * 2), race(other, round * 2 + 1));
        let [one, two] =
            [one, two].map(async |it| it.await.expect("no panic").expect("it answers"));
        let (one, two) = (one.await, two.await);
        assert_ne!(one, two, "one of them, and not both");
        let winner = round * 2 + u64::from(two == Replaced::Done);
        assert_eq!(store.load().await.expect("it answers").lease_ms, winner);
    }
}

async fn one_has_the_lead_until_it_gives_it_up(store: &dyn Storage, other: &dyn Storage) {
    let (one, two) = (claimant(1), claimant(2));
    let first = store.claim(&one, LEAD).await.expect("it answers");
    assert_eq!(first.leader, one);
    assert_eq!(other.claim(&two, LEAD).await.expect("it answers"), first, "it is taken");
    assert_eq!(store.claim(&one, LEAD).await.expect("it answers"), first, "renewed");
    other.resign(&two).await.expect("it answers");
    assert_eq!(store.claim(&one, LEAD).await.expect("it answers"), first, "it was not theirs");
    store.resign(&one).await.expect("it answers");
    let Lead { leader, term } = other.claim(&two, LEAD).await.expect("it answers");
    assert_eq!(leader, two);
    assert!(term > first.term, "the term rises: {term}");
    // The same process in another life.
    let again = claimant(3);
    assert_eq!(store.claim(&again, LEAD).await.expect("it answers").leader, two);
    other.resign(&two).await.expect("it answers");
    let last = store.claim(&again, LEAD).await.expect("it answers");
    assert!(last.leader == again && last.term > term, "{last:?}");
    store.resign(&again).await.expect("it answers");
}

async fn a_lead_that_is_not_renewed_ends_and_one_that_is_does_not(
    store: &dyn Storage,
    other: &dyn Storage,
) {
    let (one, two) = (claimant(1), claimant(2));
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let first = store.claim(&one, LEAD).await.expect("it answers");
    let until = Instant::now() + LEAD * 2;
    while Instant::now() < until {
        looks.tick().await;
        assert_eq!(store.claim(&one, LEAD).await.expect("it answers"), first);
        assert_eq!(other.claim(&two, LEAD).await.expect("it answers"), first);
    }
    let renewed = Instant::now();
    assert_eq!(store.claim(&one, LEAD).await.expect("it answers"), first);
    loop {
        looks.tick().await;
        let lead = other.claim(&two, LEAD).await.expect("it answers");
        if lead.leader == two {
            assert!(lead.term > first.term);
            break;
        }
        assert!(renewed.elapsed() < LEAD * 4, "it does not end");
    }
    let lasted = renewed.elapsed();
    assert!(lasted > LEAD * 95 / 100, "it ended after {lasted:?}");
    assert_eq!(store.claim(&one, LEAD).await.expect("it answers").leader, two, "it is gone");
    other.resign(&two).await.expect("it answers");
}
