//! A chunk's bookkeeping, step by step.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    Chunk, Delivered, Delivery, Ended, Listed, QUEUE_LEN_MAX, QUEUE_LONG, Role, Time, Wants,
};

#[derive(Clone, Debug, PartialEq)]
struct Id(u64);

impl Listed for Id {
    fn id(&self) -> u64 {
        self.0
    }
}

fn chunk(ids: &[u64]) -> Chunk<Id, u32> {
    let chunk = Chunk::new();
    ids.iter().for_each(|&id| chunk.add(Id(id)));
    chunk
}

/// Delivers with time for `visits`; what the subscribers got.
fn deliver(chunk: &Chunk<Id, u32>, role: Role, mut visits: usize) -> (Vec<(u64, u32)>, Ended) {
    let mut got = Vec::new();
    let ended = chunk.deliver(role, |Delivery { event, subscribers, .. }| {
        let seen = subscribers.len().min(visits);
        visits -= seen;
        got.extend(subscribers[..seen].iter().map(|id| (id.0, *event)));
        (Delivered { seen, gone: Vec::new() }, if visits > 0 { Time::Left } else { Time::Up })
    });
    (got, ended)
}

#[test]
fn a_subscriber_that_is_gone_twice_counts_once() {
    let chunk = chunk(&[1, 2]);
    chunk.push(7);
    chunk.deliver(Role::Publisher, |delivery| {
        (Delivered { seen: delivery.subscribers.len(), gone: vec![1] }, Time::Left)
    });
    chunk.push(8);
    let ended = chunk.deliver(Role::Publisher, |delivery| {
        assert_eq!(delivery.subscribers, [Id(2)]);
        assert_eq!(chunk.remove(1), None);
        (Delivered { seen: 1, gone: vec![1] }, Time::Left)
    });
    assert_eq!((chunk.len(), ended.is_empty), (1, false));
}

#[test]
fn a_delivery_that_was_broken_off_goes_on_where_it_was() {
    let chunk = chunk(&[1, 2, 3, 4]);
    chunk.push(7);
    chunk.push(8);
    let (got, ended) = deliver(&chunk, Role::Publisher, 2);
    assert_eq!(got, [(1, 7), (2, 7)]);
    assert!(ended.wants_worker);
    // Meanwhile one that got it leaves, one that did not leaves, and one comes.
    chunk.remove(2);
    chunk.remove(3);
    chunk.add(Id(5));
    let (got, ended) = deliver(&chunk, Role::Worker, 100);
    assert_eq!(got, [(4, 7), (5, 7), (1, 8), (4, 8), (5, 8)]);
    assert_eq!(ended, Ended::default());
}

#[test]
fn a_publisher_takes_over_from_a_worker_that_has_not_begun_and_no_second_one_is_started() {
    let chunk = chunk(&[1, 2]);
    chunk.push(7);
    assert!(deliver(&chunk, Role::Publisher, 1).1.wants_worker);
    chunk.push(8);
    let (got, ended) = deliver(&chunk, Role::Publisher, 2);
    assert_eq!(got, [(2, 7), (1, 8)]);
    assert_eq!((ended.wants_worker, chunk.claim_worker()), (false, Wants::Nothing));
    assert_eq!(deliver(&chunk, Role::Worker, 9).0, [(2, 8)]);
    chunk.push(9);
    assert_eq!(chunk.claim_worker(), Wants::Worker);
}

#[test]
fn what_is_too_much_goes_oldest_first_and_is_counted() {
    let chunk = chunk(&[1]);
    let events = QUEUE_LEN_MAX as u32 + 3;
    let gone: Vec<_> = (0..events).filter_map(|event| chunk.push(event)).collect();
    assert_eq!(gone, [0, 1, 2]);
    assert_eq!((chunk.claim_worker(), chunk.is_far_behind()), (Wants::Help, true));
    let (mut skipped, mut first) = (0, None);
    chunk.deliver(Role::Publisher, |delivery| {
        skipped += delivery.skipped;
        first.get_or_insert(*delivery.event);
        (Delivered { seen: 1, gone: Vec::new() }, Time::Left)
    });
    assert_eq!((skipped, first, chunk.pending()), (3, Some(3), 0));
    const { assert!(QUEUE_LONG < QUEUE_LEN_MAX) }
}

#[test]
fn a_panic_gives_the_turn_back() {
    let chunk = chunk(&[1]);
    chunk.push(7);
    chunk.push(8);
    let panics = || chunk.deliver(Role::Publisher, |_| panic!("on purpose"));
    catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    assert_eq!(deliver(&chunk, Role::Publisher, 9).0, [(1, 8)]);
}
