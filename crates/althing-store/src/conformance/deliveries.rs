//! What turns leave to be delivered, and the replies that they keep.

use althing::remote::Letter;
use althing::{ActorId, Epoch, Timestamp};

use super::{Nobody, id, turn};
use crate::delivery::{Delivery, Mark, Posting, Reply, Settled};
use crate::store::{Store, StoreError, Turn};

/// Later than everything of this suite.
const END: Timestamp = Timestamp(1_000_000);

pub(super) async fn run(store: &dyn Store) {
    what_a_turn_leaves_is_due_in_its_order_and_in_pages(store).await;
    pages_of_any_length_find_each_once_around_full_minutes(store).await;
    a_later_one_of_the_same_name_takes_the_place_of_the_first(store).await;
    what_was_taken_is_gone_and_what_comes_again_is_due_later(store).await;
    what_was_taken_more_than_once_since_it_was_told_goes_on_from_the_last_time(store).await;
    what_was_replaced_after_it_was_sent_is_not_taken_away(store).await;
    what_some_have_left_is_found_by_name(store).await;
    a_refused_turn_leaves_nothing(store).await;
    replies_are_kept_until_they_are_forgotten(store).await;
    any_text_and_any_bytes_are_delivered(store).await;
    a_letter_to_somebody_without_a_key_is_refused(store).await;
}

fn delivery(key: &str, name: &str, due: u64) -> Delivery {
    let to = ActorId::named("conformance", "target");
    let letter = Letter { to, message: "ring".to_owned(), body: name.as_bytes().to_vec() };
    Delivery { owner: id(key), name: name.to_owned(), due: Timestamp(due), cron: None, letter }
}

pub(super) fn posted(key: &str, name: &str, due: u64) -> Posting {
    Posting::Put(delivery(key, name, due))
}

pub(super) fn reply(number: u64, request: &str) -> Reply {
    let bytes = format!("to {request}").into_bytes();
    Reply { number, request: request.to_owned(), at: Timestamp(number), bytes }
}

async fn leave(store: &dyn Store, key: &str, version: u64, postings: Vec<Posting>) {
    let turn = Turn { postings, ..Turn::new(id(key), Epoch(1), version) };
    store.commit(turn).await.expect("it follows");
}

/// Everything that is kept of one actor, in the order in which it is due.
pub(super) async fn kept_of(store: &dyn Store, key: &str) -> Vec<Posting> {
    let all = store.due(END, None, usize::MAX).await.expect("it reads");
    let own = all.into_iter().filter(|delivery| delivery.owner == id(key));
    own.map(Posting::Put).collect()
}

async fn settle(store: &dyn Store, mark: Mark, next: Option<u64>) {
    let next = next.map(Timestamp);
    store.settle(vec![Settled { mark, next }]).await.expect("it is taken down");
}

async fn what_a_turn_leaves_is_due_in_its_order_and_in_pages(store: &dyn Store) {
    let left = [("b", 30), ("a", 30), ("c", 10), ("d", 20), ("e", 5_000)];
    let later = posted("pages2", "z", 25);
    let posted = |(name, due)| posted("pages", name, due);
    leave(store, "pages", 1, left.into_iter().map(posted).collect()).await;
    leave(store, "pages2", 1, vec![later]).await;
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = store.due(Timestamp(30), after, 2).await.expect("it reads");
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(last.mark());
        names.extend(page.into_iter().map(|delivery| delivery.name));
    }
    assert_eq!(names, ["c", "d", "z", "a", "b"], "what is due later is not there yet");
}

async fn pages_of_any_length_find_each_once_around_full_minutes(store: &dyn Store) {
    const MINUTE: u64 = 60_000;
    let dues = [0, 1, MINUTE - 1, MINUTE, MINUTE, MINUTE + 1, 3 * MINUTE - 1, 3 * MINUTE];
    let names: Vec<_> = (0..dues.len()).map(|name| format!("{name}")).collect();
    let left = names.iter().zip(dues).map(|(name, due)| posted("border", name, due));
    leave(store, "border", 1, left.collect()).await;
    for limit in 1..=4 {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let until = Timestamp(3 * MINUTE - 1);
            let page = store.due(until, after, limit).await.expect("it reads");
            let Some(last) = page.last() else { break };
            after = Some(last.mark());
            found.extend(page.into_iter().filter(|it| it.owner == id("border")));
        }
        let found: Vec<_> = found.into_iter().map(|it| it.name).collect();
        assert_eq!(found, names[..dues.len() - 1], "by pages of {limit}");
    }
    leave(store, "border", 2, names.into_iter().map(Posting::Cancel).collect()).await;
}

async fn a_later_one_of_the_same_name_takes_the_place_of_the_first(store: &dyn Store) {
    leave(store, "place", 1, vec![posted("place", "one", 10), posted("place", "two", 20)]).await;
    let moved = vec![posted("place", "one", 30), Posting::Cancel("two".to_owned())];
    leave(store, "place", 2, moved).await;
    assert_eq!(kept_of(store, "place").await, [posted("place", "one", 30)]);
    // Within one turn the last word counts, too, and to cancel what is not there is no mistake.
    let words = vec![
        posted("place", "three", 1),
        Posting::Cancel("three".to_owned()),
        Posting::Cancel("never".to_owned()),
        Posting::Cancel("one".to_owned()),
        posted("place", "one", 40),
    ];
    leave(store, "place", 3, words).await;
    assert_eq!(kept_of(store, "place").await, [posted("place", "one", 40)]);
}

async fn what_was_taken_is_gone_and_what_comes_again_is_due_later(store: &dyn Store) {
    let daily = Delivery { cron: Some("0 8 * * *".to_owned()), ..delivery("taken", "daily", 20) };
    let once = delivery("taken", "once", 10);
    let both = vec![Posting::Put(once.clone()), Posting::Put(daily.clone())];
    leave(store, "taken", 1, both).await;
    settle(store, once.mark(), None).await;
    settle(store, daily.mark(), Some(50)).await;
    let again = Delivery { due: Timestamp(50), ..daily.clone() };
    assert_eq!(kept_of(store, "taken").await, [Posting::Put(again.clone())]);
    // Said once more, after a failure.
    settle(store, once.mark(), None).await;
    settle(store, daily.mark(), Some(50)).await;
    assert_eq!(kept_of(store, "taken").await, [Posting::Put(again.clone())]);
    // Due at the same time again, and earlier: a clock was put back meanwhile.
    settle(store, again.mark(), Some(50)).await;
    assert_eq!(kept_of(store, "taken").await, [Posting::Put(again.clone())]);
    settle(store, again.mark(), Some(40)).await;
    let again = Delivery { due: Timestamp(40), ..again };
    assert_eq!(kept_of(store, "taken").await, [Posting::Put(again.clone())]);
    settle(store, again.mark(), None).await;
    assert_eq!(kept_of(store, "taken").await, []);
}

async fn what_was_taken_more_than_once_since_it_was_told_goes_on_from_the_last_time(
    store: &dyn Store,
) {
    let each = |name: &str, due| {
        let cron = Some("* * * * *".to_owned());
        Posting::Put(Delivery { cron, ..delivery("twice", name, due) })
    };
    let taken = |name: &str, due, next: Option<u64>| {
        let mark = delivery("twice", name, due).mark();
        Settled { mark, next: next.map(Timestamp) }
    };
    let first = vec![each("goes on", 10), each("ends", 10), posted("twice", "anew", 10)];
    leave(store, "twice", 1, first).await;
    leave(store, "twice", 2, vec![posted("twice", "anew", 15)]).await;
    // The store may know a part already.
    store.settle(vec![taken("goes on", 10, Some(20))]).await.expect("it is taken down");
    let settled = vec![
        taken("goes on", 10, Some(20)),
        taken("ends", 10, Some(20)),
        taken("anew", 10, None),
        taken("goes on", 20, Some(30)),
        taken("ends", 20, None),
        taken("anew", 15, None),
        taken("goes on", 30, Some(40)),
    ];
    store.settle(settled).await.expect("it is taken down");
    assert_eq!(kept_of(store, "twice").await, [each("goes on", 40)]);
    leave(store, "twice", 3, vec![Posting::Cancel("goes on".to_owned())]).await;
}

async fn what_was_replaced_after_it_was_sent_is_not_taken_away(store: &dyn Store) {
    let sent = delivery("sent", "name", 10);
    leave(store, "sent", 1, vec![Posting::Put(sent.clone())]).await;
    leave(store, "sent", 2, vec![posted("sent", "name", 70)]).await;
    settle(store, sent.mark(), None).await;
    settle(store, sent.mark(), Some(90)).await;
    assert_eq!(kept_of(store, "sent").await, [posted("sent", "name", 70)]);
}

async fn what_some_have_left_is_found_by_name(store: &dyn Store) {
    for key in ["left1", "left2", "left3"] {
        let names = [("b", 5), ("d", 1), ("a", u64::MAX / 2), ("c", 3)];
        leave(store, key, 1, names.map(|(name, due)| posted(key, name, due)).into()).await;
    }
    settle(store, delivery("left2", "c", 3).mark(), None).await;
    let keyless = althing::Node::builder("conformance").build().spawn(Nobody).id();
    let left = async |limit| {
        let names = [("left3", "c"), ("left1", "c"), ("nobody", "z"), ("left2", "zz")];
        let mut names = names.map(|(key, name)| (id(key), name.to_owned())).to_vec();
        names.push((keyless.clone(), "z".to_owned()));
        let left = store.left_before(names, limit).await.expect("it reads");
        let left = left.into_iter().map(|it| (it.owner.to_string(), it.name));
        left.map(|(owner, name)| format!("{owner} {name}")).collect::<Vec<_>>()
    };
    let all = ["1 a", "1 b", "2 a", "2 b", "2 d", "3 a", "3 b"];
    let all = all.map(|it| format!("conformance/left{it}"));
    for limit in [1, 2, 3, 5, 7, 1_000] {
        assert_eq!(left(limit).await, all[..limit.min(7)], "{limit} of them");
    }
    let found = store.left_before(vec![(id("left1"), "b".to_owned())], 9).await.expect("it reads");
    assert_eq!(found, [delivery("left1", "a", u64::MAX / 2)]);
    for key in ["left1", "left2", "left3"] {
        let names = ["a", "b", "c", "d"].map(|name| Posting::Cancel(name.to_owned()));
        leave(store, key, 2, names.into()).await;
    }
}

async fn a_refused_turn_leaves_nothing(store: &dyn Store) {
    leave(store, "refused", 1, vec![]).await;
    store.open(&id("refused"), Epoch(5)).await.expect("a later epoch");
    let postings = vec![posted("refused", "late", 10)];
    let replies = vec![reply(1, "late")];
    let fenced = Turn {
        postings: postings.clone(),
        replies: replies.clone(),
        ..Turn::new(id("refused"), Epoch(1), 2)
    };
    let refused = store.commit(fenced).await.expect_err("it is fenced");
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    let early = Turn { postings, replies, ..Turn::new(id("refused"), Epoch(5), 9) };
    let refused = store.commit(early).await.expect_err("it does not follow");
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    assert_eq!(kept_of(store, "refused").await, []);
    let kept = store.open(&id("refused"), Epoch(5)).await.expect("it opens");
    assert_eq!(kept.replies, []);
}

async fn replies_are_kept_until_they_are_forgotten(store: &dyn Store) {
    let turns = [
        (vec![reply(1, "a"), reply(2, "b")], 0),
        (vec![reply(3, "c")], 1),
        (vec![], 0),
        (vec![reply(4, "a")], 2),
    ];
    let answers: Vec<_> = (1..)
        .zip(turns)
        .map(|(version, (replies, forget_replies))| {
            let turn = Turn::new(id("replies"), Epoch(1), version);
            store.commit(Turn { replies, forget_replies, ..turn })
        })
        .collect();
    let opened = store.open(&id("replies"), Epoch(1));
    for answer in answers {
        answer.await.expect("each follows");
    }
    let expected = [reply(3, "c"), reply(4, "a")];
    assert_eq!(opened.await.expect("it opens").replies, expected);
    let kept = store.open(&id("replies"), Epoch(1)).await.expect("it opens");
    assert_eq!(kept.replies, expected);
}

async fn any_text_and_any_bytes_are_delivered(store: &dyn Store) {
    let letter = Letter {
        to: ActorId::named("ключ", "a\u{1f600}b"),
        message: "'; DROP TABLE deliveries; --".to_owned(),
        body: b"\0\xff".to_vec(),
    };
    let (name, cron) = ("line\nbreak".to_owned(), Some("*/5 * * * *".to_owned()));
    let strange = Delivery { owner: id("strange"), name, due: Timestamp(3), cron, letter };
    let strange = Posting::Put(strange);
    leave(store, "strange", 1, vec![strange.clone()]).await;
    assert_eq!(kept_of(store, "strange").await, [strange]);
    // So late that it never comes.
    leave(store, "strange", 2, vec![posted("strange", "late", u64::MAX)]).await;
    assert_eq!(kept_of(store, "strange").await.len(), 1);
    leave(store, "strange", 3, vec![Posting::Cancel("late".to_owned())]).await;
}

async fn a_letter_to_somebody_without_a_key_is_refused(store: &dyn Store) {
    let anonymous = althing::Node::builder("conformance").build().spawn(Nobody).id();
    let mut left = delivery("keyless", "letter", 1);
    left.letter.to = anonymous;
    let postings = vec![Posting::Put(left)];
    let turn = Turn { postings, ..turn("keyless", 1, 1, b"state") };
    let refused = store.commit(turn).await.expect_err("nobody could find it later");
    assert!(matches!(refused, StoreError::NoKey(_)), "{refused}");
    let kept = store.open(&id("keyless"), Epoch(1)).await.expect("it opens");
    assert_eq!(kept.version, 0, "nothing of the turn was written");
}
