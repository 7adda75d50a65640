use std::collections::BTreeMap;

use althing::Node;
use folkmoot_gateway::{Next, Outbox};
use folkmoot_protocol::Format;
use folkmoot_protocol::frame::SubscribeResult;
use futures_util::FutureExt;

use super::delta::Deltas;
use super::subscribers::Subscribers;
use super::*;
use crate::payload::Payload;
use crate::tags::Filter;

pub(super) const KEEP: Keep =
    Keep { len_max: 3, ttl_ms: 60_000, numbers_ttl_ms: 600_000, is_durable: false };

fn hub() -> (Node, Hub) {
    let node =
        Node::builder("test").actor(|_: althing::Start<Channels>| async { Ok(Channels::new()) });
    let node = node.build();
    let hub = Hub::new(&node);
    (node, hub)
}

fn post(text: &str, keep: Option<Keep>, key: Option<&str>) -> Post {
    let data = Bytes::from(format!("{text:?}"));
    let payload = Payload { data, tags: BTreeMap::new(), info: None, time: 0 };
    Post {
        payload: Arc::new(payload),
        keep,
        key: key.map(Arc::from),
        row: None,
        version: None,
        may_be_delta: false,
    }
}

pub(super) fn connection(id: &str) -> Arc<Connection> {
    let outbox = Arc::new(Outbox::new(1 << 20));
    let connection = Connection::new(id.into(), "42".into(), Bytes::new(), Format::Json, outbox);
    connection.go_live();
    Arc::new(connection)
}

/// What is on its way to a client.
pub(super) fn waiting(connection: &Connection) -> Vec<Bytes> {
    match connection.outbox.next().now_or_never() {
        Some(Next::Messages(messages)) => messages,
        Some(Next::Close(close)) => panic!("{close:?}"),
        None => Vec::new(),
    }
}

pub(super) fn join(connection: &Arc<Connection>, since: Option<(u64, String)>) -> Join {
    // It is given back when it is dropped before the subscription is made.
    std::mem::forget(connection.reserve(&"news".into(), 1));
    unreserved(connection, since)
}

fn unreserved(connection: &Arc<Connection>, since: Option<(u64, String)>) -> Join {
    Join {
        channel: "news".into(),
        connection: connection.clone(),
        info: Bytes::new(),
        has_presence: true,
        tells_coming: true,
        wants_comings: true,
        keep: Some(KEEP),
        since,
        recovery_limit: 10,
        recovers_newest: false,
        needs_all: false,
        filter: None,
        result: SubscribeResult { recoverable: true, ..SubscribeResult::default() },
        answer: Answer::Connect,
    }
}

/// The ids of those who are present.
async fn present(hub: &Hub) -> Vec<Arc<str>> {
    let mut ids = Vec::new();
    let channel: Arc<str> = "news".into();
    let told = hub.each_present(&channel, |one| match one {
        Someone::Here(one, _) => ids.push(one.id.clone()),
        Someone::There(one) => panic!("{one:?}"),
    });
    told.await.unwrap();
    ids
}

#[tokio::test]
async fn what_nobody_hears_and_nothing_keeps_takes_no_memory() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    assert_eq!(owner.publish("news".into(), post("a", None, None)).await, Ok(Position::default()));
    assert_eq!(owner.count().await.unwrap().channels, 0);
    let ada = connection("ada");
    owner.join(Join { keep: None, ..join(&ada, None) }).await.unwrap().unwrap();
    assert_eq!(owner.count().await.unwrap().channels, 1);
    assert_eq!(owner.part("news".into(), "ada".into()).await, Ok(true));
    assert_eq!(owner.count().await.unwrap().channels, 0);
}

#[tokio::test]
async fn a_key_publishes_once_and_is_answered_again() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let publish = |text, key| owner.publish("news".into(), post(text, Some(KEEP), key));
    let first = publish("a", Some("k")).await.unwrap();
    assert_eq!(publish("a", Some("k")).await.unwrap(), first);
    assert_eq!(publish("b", Some("other")).await.unwrap().offset, 2);
    assert_eq!(publish("c", None).await.unwrap().offset, 3);
}

#[tokio::test]
async fn who_comes_back_gets_what_was_missed_in_the_reply_and_the_rest_as_pushes() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let publish =
        async |text| owner.publish("news".into(), post(text, Some(KEEP), None)).await.unwrap();
    let seen = publish("a").await;
    publish("b").await;
    let ada = connection("ada");
    let since = Some((seen.offset, seen.epoch.to_string()));
    let join = Join { tells_coming: false, ..join(&ada, since) };
    let result = owner.join(join).await.unwrap().unwrap();
    assert!(result.recovered && result.was_recovering);
    assert_eq!(result.publications.iter().map(|one| one.offset).collect::<Vec<_>>(), [2]);
    publish("c").await;
    let pushed = waiting(&ada);
    assert_eq!(pushed, [r#"{"push":{"channel":"news","pub":{"data":"c","offset":3}}}"#]);
}

#[tokio::test]
async fn who_comes_is_told_to_all_and_who_goes_to_the_others() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let (ada, bo) = (connection("ada"), connection("bo"));
    owner.join(join(&ada, None)).await.unwrap().unwrap();
    owner.join(join(&bo, None)).await.unwrap().unwrap();
    assert_eq!(present(&hub).await.len(), 2);
    owner.part("news".into(), "bo".into()).await.unwrap();
    let told = |kind, client| {
        let info = format!(r#"{{"info":{{"user":"42","client":"{client}"}}}}"#);
        format!(r#"{{"push":{{"channel":"news","{kind}":{info}}}}}"#)
    };
    assert_eq!(waiting(&ada), [told("join", "ada"), told("join", "bo"), told("leave", "bo")]);
    assert_eq!(waiting(&bo), [told("join", "bo")]);
}

#[tokio::test]
async fn who_wants_all_or_nothing_is_not_subscribed_where_something_is_lost() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let publish =
        async |text| owner.publish("news".into(), post(text, Some(KEEP), None)).await.unwrap();
    let seen = publish("a").await;
    for text in ["b", "c", "d", "e"] {
        publish(text).await;
    }
    let ada = connection("ada");
    let from = |offset: u64| Some((offset, seen.epoch.to_string()));
    let all_or_nothing = |since| Join { needs_all: true, ..join(&ada, since) };
    let refused = owner.join(all_or_nothing(from(1))).await.unwrap();
    assert_eq!(refused.unwrap_err(), NotMade::Unrecoverable);
    assert!(!ada.has_place("news") && present(&hub).await.is_empty());
    publish("f").await;
    assert!(waiting(&ada).is_empty());
    let result = owner.join(all_or_nothing(from(3))).await.unwrap().unwrap();
    assert_eq!(result.publications.iter().map(|one| one.offset).collect::<Vec<_>>(), [4, 5, 6]);
    // Who wants the newest only has lost nothing that it wants.
    owner.part("news".into(), "ada".into()).await.unwrap();
    let (reply, removed) = tokio::sync::oneshot::channel();
    owner.remove_history("news".into(), reply).await.unwrap();
    assert_eq!(removed.await, Ok(true));
    let newest = Join { recovers_newest: true, ..all_or_nothing(from(1)) };
    assert!(!owner.join(newest).await.unwrap().unwrap().recovered);
}

#[tokio::test]
async fn a_broadcast_is_answered_in_the_order_of_its_channels() {
    let (_node, hub) = hub();
    for times in 0..3 {
        hub.of("c1").publish("c1".into(), post("x", Some(KEEP), None)).await.unwrap();
        let names = ["c0", "c1", "c2", "c3"];
        let posts = names.map(|name| (Arc::from(name), post("all", Some(KEEP), None)));
        let outcomes = hub.publish_all(posts.to_vec()).await;
        let offsets: Vec<u64> = outcomes.into_iter().map(|one| one.unwrap().offset).collect();
        assert_eq!(offsets, [times + 1, 2 * times + 2, times + 1, times + 1]);
    }
}

#[tokio::test]
async fn bytes_that_are_no_json_end_the_connection_that_asks_for_them_and_no_channel() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let payload = Payload { data: Bytes::from_static(b"\xff"), ..Payload::default() };
    let bytes = Post {
        payload: Arc::new(payload),
        keep: Some(KEEP),
        key: None,
        row: None,
        version: None,
        may_be_delta: false,
    };
    let seen = owner.publish("news".into(), post("a", Some(KEEP), None)).await.unwrap();
    owner.publish("news".into(), bytes).await.unwrap();
    let ada = connection("ada");
    let since = Some((seen.offset, seen.epoch.to_string()));
    owner.join(Join { answer: Answer::Reply(1), ..join(&ada, since) }).await.unwrap().unwrap();
    assert!(ada.outbox.is_closing());
    let next = owner.publish("news".into(), post("b", Some(KEEP), None)).await.unwrap();
    assert_eq!(next, Position { offset: 3, ..seen });
}

#[tokio::test]
async fn what_was_under_way_subscribes_nobody_who_has_ended_or_taken_it_back() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let (ada, bo, cy) = (connection("ada"), connection("bo"), connection("cy"));
    let (ada_joins, bo_joins) = (join(&ada, None), join(&bo, None));
    for channel in ada.end_all() {
        owner.part(channel, "ada".into()).await.unwrap();
    }
    bo.forget("news");
    owner.part("news".into(), "bo".into()).await.unwrap();
    // Whoever asked for it was dropped.
    drop(cy.reserve(&"news".into(), 1).unwrap());
    for late in [ada_joins, bo_joins, unreserved(&cy, None)] {
        assert_eq!(owner.join(late).await.unwrap().unwrap_err(), NotMade::Unwanted);
    }
    assert_eq!(present(&hub).await.len(), 0);
    assert!(cy.reserve(&"news".into(), 1).is_ok(), "the place was not given back");
}

#[test]
fn history_goes_in_its_time_though_its_numbers_stay_for_longer() {
    let (mut channels, name) = (Channels::new(), Arc::from("news"));
    for round in 0..3 {
        let now = round * (KEEP.ttl_ms + 1);
        channels.publish_one(&name, &post("a", Some(KEEP), Some("k")), now);
        channels.publish_one(&name, &post("b", Some(KEEP), None), now);
        let ends = now + KEEP.ttl_ms;
        assert_eq!(channels.channels["news"].due, Some(ends), "{round}");
        channels.forget_old(ends);
        // Nobody asked, and it is gone.
        let channel = channels.channels.get_mut("news").unwrap();
        assert_eq!(channel.due, Some((KEYS_KEPT_MS).min(ends + KEEP.numbers_ttl_ms)), "{round}");
        assert_eq!(channels.due.len(), 1);
    }
    channels.forget_old(u64::MAX);
    assert!(channels.channels.is_empty() && channels.due.is_empty());
}

#[tokio::test]
async fn channels_that_were_only_asked_for_take_no_memory_and_keep_their_epoch() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let history = async || owner.history("news".into(), Query::default(), KEEP).await.unwrap();
    let epoch = history().await.epoch;
    let ada = connection("ada");
    assert_eq!(owner.join(join(&ada, None)).await.unwrap().unwrap().epoch, epoch);
    owner.part("news".into(), "ada".into()).await.unwrap();
    assert_eq!(owner.count().await.unwrap().channels, 0);
    assert_eq!(history().await.epoch, epoch);
}

#[test]
fn numbers_go_on_for_as_long_as_somebody_hears_them() {
    let (mut channels, name) = (Channels::new(), Arc::from("news"));
    let ada = connection("ada");
    let asked = Join { tells_coming: false, ..join(&ada, None) };
    let epoch = channels.join_here(asked, 0).unwrap().epoch;
    for round in 0..3 {
        let now = round * 10 * KEEP.numbers_ttl_ms;
        let published = channels.publish_one(&name, &post("a", Some(KEEP), None), now);
        assert_eq!((published.offset, published.epoch.to_string()), (round + 1, epoch.clone()));
        channels.forget_old(now + 9 * KEEP.numbers_ttl_ms);
        let bo = connection(&round.to_string());
        let asked = join(&bo, Some((round + 1, epoch.clone())));
        let back = Join { tells_coming: false, ..asked };
        let back = channels.join_here(back, now + 9 * KEEP.numbers_ttl_ms).unwrap();
        assert!(back.recovered && back.epoch == epoch);
        channels.leave(&name, &bo.id, now + 9 * KEEP.numbers_ttl_ms);
    }
    assert_eq!(waiting(&ada).len(), 3);
    channels.leave(&name, &ada.id, u64::MAX);
    let published = channels.publish_one(&name, &post("a", Some(KEEP), None), u64::MAX);
    assert_eq!(published.offset, 1);
    assert_ne!(published.epoch.to_string(), epoch, "numbers are given twice in one epoch");
}

/// One that is tagged with its kind.
pub(super) fn tagged(kind: &str, text: &str) -> Post {
    let tags = BTreeMap::from([("kind".to_owned(), kind.to_owned())]);
    let data = Bytes::from(format!("{text:?}"));
    let payload = Arc::new(Payload { data, tags, ..Payload::default() });
    Post { payload, may_be_delta: true, ..post(text, Some(KEEP), None) }
}

/// Publications of this kind only.
pub(super) fn only(kind: &str) -> Option<Box<Filter>> {
    let node = serde_json::json!({ "key": "kind", "cmp": "eq", "val": kind });
    let node = serde_json::from_value(node).unwrap();
    Some(Box::new(Filter::new(node).unwrap()))
}

#[tokio::test]
async fn a_filter_holds_back_what_does_not_match_also_of_what_was_missed() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let publish =
        async |kind, text| owner.publish("news".into(), tagged(kind, text)).await.unwrap();
    let first = publish("a", "first").await;
    let since = Some((first.offset, first.epoch.to_string()));
    publish("a", "second").await;
    publish("b", "third").await;
    let (ada, bo, cy) = (connection("ada"), connection("bo"), connection("cy"));
    let offsets = |result: &SubscribeResult| -> Vec<u64> {
        result.publications.iter().map(|one| one.offset).collect()
    };
    let all = Join { filter: only("a"), tells_coming: false, ..join(&ada, since.clone()) };
    let all = owner.join(all).await.unwrap().unwrap();
    assert_eq!((offsets(&all), all.recovered, all.offset), (vec![2], true, 3));
    let newest = Join { filter: only("a"), tells_coming: false, ..join(&bo, since.clone()) };
    let newest = Join { recovers_newest: true, ..newest };
    let newest = owner.join(newest).await.unwrap().unwrap();
    assert_eq!((offsets(&newest), newest.recovered), (vec![2], true));
    let none = Join { filter: only("c"), tells_coming: false, ..join(&cy, since) };
    let none = owner.join(none).await.unwrap().unwrap();
    assert_eq!((offsets(&none), none.recovered), (vec![], true));
    publish("b", "fourth").await;
    publish("a", "fifth").await;
    let text = r#"{"data":"fifth","offset":5,"tags":{"kind":"a"}}"#;
    let fifth = format!(r#"{{"push":{{"channel":"news","pub":{text}}}}}"#);
    for (connection, wanted) in [(&ada, vec![fifth.clone()]), (&bo, vec![fifth]), (&cy, vec![])] {
        assert_eq!(waiting(connection), wanted);
    }
}

#[tokio::test]
async fn who_has_the_newest_that_its_filter_lets_through_does_not_get_it_again() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let newest = async |id: &str, offset: u64, epoch: String| {
        let asked = join(&connection(id), Some((offset, epoch)));
        let asked = Join { filter: only("a"), recovers_newest: true, ..asked };
        let result = owner.join(asked).await.unwrap().unwrap();
        let offsets: Vec<u64> = result.publications.iter().map(|one| one.offset).collect();
        (offsets, result.recovered)
    };
    let Position { epoch, .. } = owner.publish("news".into(), tagged("a", "1")).await.unwrap();
    owner.publish("news".into(), tagged("b", "2")).await.unwrap();
    assert_eq!(newest("ada", 1, epoch.to_string()).await, (vec![], true));
    assert_eq!(newest("bo", 0, epoch.to_string()).await, (vec![1], true));
    assert_eq!(newest("cy", 1, "another".to_owned()).await, (vec![1], true));
}

#[tokio::test]
async fn a_delta_is_made_from_what_its_subscriber_has_and_not_from_what_was_held_back() {
    let (_node, hub) = hub();
    let owner = hub.of("news");
    let ada = connection("ada");
    let result = SubscribeResult { delta: true, recoverable: true, ..SubscribeResult::default() };
    let asked = Join { filter: only("a"), tells_coming: false, result, ..join(&ada, None) };
    owner.join(asked).await.unwrap().unwrap();
    let document = |number: u32| format!("{}{number}", "a long text ".repeat(20));
    for (number, kind, is_delta) in
        [(1, "a", false), (2, "a", true), (3, "b", true), (4, "a", false), (5, "a", true)]
    {
        owner.publish("news".into(), tagged(kind, &document(number))).await.unwrap();
        let heard = waiting(&ada);
        assert_eq!(heard.len(), usize::from(kind == "a"), "{number}");
        for push in heard {
            let push: serde_json::Value = serde_json::from_slice(&push).unwrap();
            let publication = &push["push"]["pub"];
            assert_eq!(publication["delta"].as_bool().unwrap_or(false), is_delta, "{number}");
        }
    }
}

fn subscriber(id: &str) -> Subscriber {
    Subscriber {
        connection: connection(id),
        info: Bytes::new(),
        has_presence: true,
        tells_coming: false,
        wants_comings: false,
        deltas: Deltas::Unwanted,
        filter: None,
        is_positioned: false,
        is_by_server: false,
        since: 0,
    }
}

#[tokio::test]
async fn who_is_in_a_large_channel_is_told_in_parts_between_which_its_neighbours_publish() {
    const LEN: usize = 100_000;
    let crowd = || {
        let mut channels = Channels::new();
        let channel = channels.channels.entry("news".into()).or_default();
        (0..LEN).for_each(|id| channel.add(subscriber(&id.to_string())));
        channels
    };
    let node = Node::builder("test").actor(move |_: althing::Start<Channels>| {
        let channels = crowd();
        async { Ok(channels) }
    });
    let node = node.build();
    let hub = Hub::new(&node);
    let neighbour = ["a", "b", "c"].into_iter().find_map(|base| {
        let mut names = (0..1_000).map(|number| Arc::<str>::from(format!("{base}{number}")));
        names.find(|name| Hub::shard(name) == Hub::shard("news"))
    });
    let neighbour = neighbour.expect("one of three thousand");
    let (owner, news) = (hub.of("news"), Arc::<str>::from("news"));
    let (mut all, mut next, mut offset) = (0, Some(usize::MAX), 0);
    while let Some(before) = next {
        let part = owner.present(news.clone(), before).await.unwrap();
        assert!(part.who.len() <= channel::PRESENT_LEN_MAX);
        (all, next, offset) = (all + part.who.len(), part.next, offset + 1);
        let published = hub.publish(neighbour.clone(), post("a", Some(KEEP), None)).await;
        assert_eq!(published.unwrap().offset, offset);
    }
    assert_eq!(all, LEN);
    assert_eq!(present(&hub).await.len(), LEN);
}

#[test]
fn who_is_there_all_the_while_is_on_some_page_though_others_come_and_go() {
    let mut subscribers = Subscribers::default();
    (0..50).for_each(|id| subscribers.insert(subscriber(&id.to_string())));
    let (mut seen, mut next, mut round) = (BTreeSet::new(), Some(usize::MAX), 0);
    while let Some(before) = next {
        let (page, further) = subscribers.page(before, 7);
        seen.extend(page.iter().map(|one| one.connection.id.to_string()));
        next = further;
        // One of the first, one of the last, and one more.
        for gone in [round, 49 - round] {
            assert!(subscribers.remove(&gone.to_string()).is_some());
        }
        subscribers.insert(subscriber(&format!("new {round}")));
        round += 1;
    }
    let stayed: Vec<_> = (round..50 - round).map(|id| id.to_string()).collect();
    assert!(stayed.len() > 30 && stayed.iter().all(|id| seen.contains(id)), "{seen:?}");
    let left: Vec<_> = subscribers.iter().map(|one| one.connection.id.clone()).collect();
    left.iter().for_each(|id| drop(subscribers.remove(id).expect("it is found")));
    assert_eq!(subscribers.len(), 0);
}
