//! Courses of events that the router once took the wrong way.

use std::sync::Arc;

use super::{Effect, Hop, Load, Router, Standing, Waited};
use crate::record::{Holding, Member, Record, Stage};

const BUCKET: u32 = 0;

fn record(
    view: u64,
    members: &[u64],
    owner: u64,
    epoch: u64,
    going_to: Option<u64>,
) -> Arc<Record> {
    let member = |incarnation: &u64| Member {
        incarnation: *incarnation,
        name: incarnation.to_string(),
        address: String::new(),
        stage: Stage::Active,
        since: 1,
        frame_len_max: 0,
        labels: crate::label::Labels::default(),
    };
    let members = members.iter().map(member).collect();
    let mut record = Record { view, members, ..Record::empty() };
    record.buckets[BUCKET as usize] =
        Holding { owner: Some(owner), epoch, arrived: epoch, going_to, ..Holding::default() };
    Arc::new(record)
}

/// What goes to other nodes.
fn transmitted(effects: Vec<Effect<char>>) -> Vec<(u64, Load<char>)> {
    let load = |effect| match effect {
        Effect::Transmit { to, load, .. } => Some((to, load)),
        _ => None,
    };
    effects.into_iter().filter_map(load).collect()
}

/// Of a node that knows the latest record.
fn knows(node: u64) -> Hop {
    Hop { node, view: u64::MAX }
}

fn marker(to: u64, token: u64, epoch: u64) -> (u64, Load<char>) {
    (to, Load::Marker { origin: 1, token, epoch })
}

#[test]
fn what_waited_for_an_actor_that_leaves_goes_before_what_came_later() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2], 1, 1, None));
    router.settle(BUCKET);
    assert_eq!(router.standing(BUCKET), Standing::Here(1));
    router.follow(record(2, &[1, 2], 1, 1, Some(2)));
    assert_eq!(router.send(BUCKET, 'd'), None);
    assert_eq!(router.receive(knows(2), BUCKET, Load::Parcel(1, 'c')), []);
    assert_eq!(router.send_on(BUCKET, 'b', Waited::Beside), None);
    assert_eq!(router.send_on(BUCKET, 'a', Waited::Inside), None);
    router.departed(&[(BUCKET, 1)]);
    let after = transmitted(router.follow(record(3, &[1, 2], 2, 2, None)));
    let expected = [('a', 1), ('b', 1), ('c', 1), ('d', 2)];
    assert_eq!(after, expected.map(|(parcel, epoch)| (2, Load::Parcel(epoch, parcel))));
}

#[test]
fn a_bucket_whose_move_came_to_nothing_settles_once_its_actors_have_stopped() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2], 1, 1, None));
    router.settle(BUCKET);
    router.follow(record(2, &[1, 2], 1, 1, Some(2)));
    router.follow(record(3, &[1], 1, 2, None));
    assert_eq!(router.standing(BUCKET), Standing::Elsewhere, "they still stop");
    assert_eq!(router.departed(&[(BUCKET, 1)]), [Effect::Settle { buckets: vec![BUCKET] }]);
    assert_eq!(router.settle(BUCKET), []);
    assert_eq!(router.standing(BUCKET), Standing::Here(2));
}

#[test]
fn a_bucket_settles_whose_move_came_to_nothing_after_its_actors_had_stopped() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2], 1, 1, None));
    router.settle(BUCKET);
    router.follow(record(2, &[1, 2], 1, 1, Some(2)));
    assert_eq!(router.departed(&[(BUCKET, 1)]), []);
    let effects = router.follow(record(3, &[1], 1, 2, None));
    assert!(effects.contains(&Effect::Settle { buckets: vec![BUCKET] }));
    assert_eq!(router.settle(BUCKET), []);
    assert_eq!(router.standing(BUCKET), Standing::Here(2));
}

#[test]
fn a_newer_owner_makes_older_markers_void() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2, 3], 2, 1, None));
    assert_eq!(router.send(BUCKET, 'a').into_iter().count(), 1);
    let first = transmitted(router.follow(record(2, &[1, 2, 3], 3, 2, None)));
    assert_eq!(first, [marker(2, 1, 1)]);
    router.send(BUCKET, 'b');
    // In between the bucket was with a node that came and died, and the marker with it.
    let second = transmitted(router.follow(record(9, &[1, 2, 3], 3, 4, None)));
    assert_eq!(second, [marker(2, 2, 1)]);
    assert_eq!(router.flushed(BUCKET, 1), []);
    assert_eq!(transmitted(router.flushed(BUCKET, 2)), [(3, Load::Parcel(4, 'b'))]);
}

#[test]
fn what_was_under_way_to_an_owner_that_died_goes_no_further() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2, 3], 2, 1, None));
    assert_eq!(router.send(BUCKET, 'a').into_iter().count(), 1);
    let mut died = (*record(2, &[1, 3], 3, 2, None)).clone();
    died.buckets[BUCKET as usize].lost_before = 2;
    assert_eq!(transmitted(router.follow(Arc::new(died))), [], "nobody waits");
    assert_eq!(
        router.receive(knows(2), BUCKET, Load::Parcel(1, 'b')),
        [Effect::Lose { parcel: 'b' }]
    );
    let later = router.receive(knows(2), BUCKET, Load::Parcel(2, 'c'));
    assert_eq!(transmitted(later), [(3, Load::Parcel(2, 'c'))]);
}

#[test]
fn nobody_waits_for_a_bucket_that_it_never_sent_to() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2, 3], 2, 1, None));
    assert_eq!(transmitted(router.follow(record(2, &[1, 2, 3], 3, 2, None))), []);
    assert_eq!(
        transmitted(router.send(BUCKET, 'a').into_iter().collect()),
        [(3, Load::Parcel(2, 'a'))]
    );
}

#[test]
fn a_node_that_leaves_is_let_go_once_what_it_passed_on_has_arrived() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2, 3], 2, 1, None));
    assert_eq!(router.send(BUCKET, 'a').into_iter().count(), 1);
    let first = transmitted(router.follow(record(2, &[1, 2, 3], 3, 2, None)));
    assert_eq!(first, [marker(2, 1, 1)]);
    assert_eq!(router.closing(2), [], "what it passes on may wait with 3");
    assert_eq!(router.flushed(BUCKET, 1), [Effect::Closed { to: 2 }]);
    assert_eq!(router.closing(3), [Effect::Closed { to: 3 }]);
}

#[test]
fn a_marker_goes_to_the_next_owner_where_the_one_before_is_gone() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2, 3, 4], 2, 1, None));
    assert_eq!(router.send(BUCKET, 'a').into_iter().count(), 1);
    assert_eq!(transmitted(router.follow(record(2, &[1, 2, 3, 4], 3, 2, None))), [marker(2, 1, 1)]);
    router.send(BUCKET, 'b');
    // 2 has passed `a` on to 3 and died; 3 holds it for 4.
    assert_eq!(transmitted(router.follow(record(3, &[1, 3, 4], 4, 3, None))), [marker(3, 2, 2)]);
    assert_eq!(transmitted(router.flushed(BUCKET, 2)), [(4, Load::Parcel(3, 'b'))]);
}

/// An owner that has the bucket again from node 3, and had passed on what came by `hop` meanwhile.
fn owner_again(hop: Hop) -> Router<char> {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2, 3], 1, 1, None));
    router.settle(BUCKET);
    router.follow(record(2, &[1, 2, 3], 1, 1, Some(3)));
    router.departed(&[(BUCKET, 1)]);
    router.follow(record(3, &[1, 2, 3], 3, 2, None));
    let passed_on = transmitted(router.receive(hop, BUCKET, Load::Parcel(1, 'a')));
    assert_eq!(passed_on, [(3, Load::Parcel(1, 'a'))]);
    let back = router.follow(record(4, &[1, 2, 3], 1, 3, None));
    assert_eq!(transmitted(back), [marker(3, 1, 2)]);
    router
}

#[test]
fn an_owner_that_had_the_bucket_before_answers_once_what_it_sent_on_has_come_back() {
    let mut router = owner_again(knows(2));
    let asked = |token, epoch| Load::Marker { origin: 2, token, epoch };
    assert_eq!(router.receive(knows(2), BUCKET, asked(7, 1)), [], "`a` is not back");
    let flushed = |token| Effect::Flushed { to: 2, bucket: BUCKET, token };
    assert_eq!(router.receive(knows(3), BUCKET, asked(6, 1)), [flushed(6)], "3 has waited");
    assert_eq!(router.receive(knows(2), BUCKET, asked(8, 3)), [flushed(8)], "it is of this time");
    let effects = router.receive(knows(3), BUCKET, Load::Marker { origin: 1, token: 1, epoch: 2 });
    assert_eq!(effects, [flushed(7), Effect::Settle { buckets: vec![BUCKET] }]);
}

#[test]
fn nobody_waits_for_an_owner_whose_move_came_to_nothing() {
    let mut router = Router::<char>::new(1);
    router.follow(record(1, &[1, 2], 2, 1, None));
    assert_eq!(router.send(BUCKET, 'a').into_iter().count(), 1);
    let mut stays = (*record(2, &[1, 2], 2, 2, None)).clone();
    stays.buckets[BUCKET as usize].arrived = 1;
    assert_eq!(transmitted(router.follow(Arc::new(stays))), []);
    let sent = transmitted(router.send(BUCKET, 'b').into_iter().collect());
    assert_eq!(sent, [(2, Load::Parcel(2, 'b'))]);
}

#[test]
fn what_comes_from_a_node_that_knows_no_better_waits_for_what_comes_back() {
    // 2 was stopped before all this, and sends when it goes on.
    let stopped = Hop { node: 2, view: 1 };
    let mut router = owner_again(stopped);
    assert_eq!(router.receive(stopped, BUCKET, Load::Parcel(1, 'b')), [], "`a` is not back");
    let passed_by_it = Load::Marker { origin: 4, token: 9, epoch: 1 };
    assert_eq!(router.receive(stopped, BUCKET, passed_by_it), []);
    let back = router.receive(knows(3), BUCKET, Load::Parcel(1, 'a'));
    assert_eq!(back, [Effect::Deliver { parcel: 'a' }]);
    let effects = router.receive(knows(3), BUCKET, Load::Marker { origin: 1, token: 1, epoch: 2 });
    let in_order = [
        Effect::Deliver { parcel: 'b' },
        Effect::Flushed { to: 4, bucket: BUCKET, token: 9 },
        Effect::Settle { buckets: vec![BUCKET] },
    ];
    assert_eq!(effects, in_order);
}
