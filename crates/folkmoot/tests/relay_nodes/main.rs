//! Several `folkmoot relay` processes with one PostgreSQL: the nodes of one relay. A subscriber on
//! each hears all that any of them publishes, and what follows when one of them is killed.

mod cluster;
mod consumers;
mod stopping;

use serde_json::{Value, json};

use cluster::{CHANNELS, Cluster, Subscriber, names};

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_of_two_processes_hear_all_once_and_in_order_and_history_is_the_same() {
    let cluster = Cluster::start("both", 2).await;
    let channels = names("c");
    let mut subscribers = Vec::new();
    for node in &cluster.nodes {
        let mut subscriber = Subscriber::connect(node).await;
        for channel in &channels {
            subscriber.subscribe(channel).await;
        }
        subscribers.push(subscriber);
    }
    for number in 0..10 {
        for channel in &channels {
            cluster.call(number % 2, "publish", &json!({"channel": channel, "data": number})).await;
        }
    }
    for subscriber in &mut subscribers {
        let heard = subscriber.hear(&channels, 10).await;
        assert!(heard.iter().all(|heard| *heard == (0..10).collect::<Vec<_>>()), "{heard:?}");
    }
    for channel in &channels {
        let asked = json!({"channel": channel, "limit": -1});
        let kept = cluster.call(0, "history", &asked).await;
        assert_eq!(kept["publications"].as_array().map(Vec::len), Some(10));
        assert_eq!(cluster.call(1, "history", &asked).await, kept);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_node_is_killed_its_channels_begin_anew_and_subscribers_are_told() {
    let mut cluster = Cluster::start("kill", 3).await;
    let (channels, plain) = (names("c"), names("plain:p"));
    let mut subscriber = Subscriber::connect(&cluster.nodes[0]).await;
    let mut lost = Subscriber::connect(&cluster.nodes[2]).await;
    for channel in channels.iter().chain(&plain) {
        subscriber.subscribe(channel).await;
        lost.subscribe(channel).await;
    }
    let mut epochs = Vec::new();
    for channel in channels.iter().chain(&plain) {
        cluster.call(0, "publish", &json!({"channel": channel, "data": 0})).await;
    }
    for channel in &channels {
        let kept = cluster.call(0, "history", &json!({"channel": channel})).await;
        epochs.push(kept["epoch"].clone());
    }
    let all: Vec<_> = channels.iter().chain(&plain).cloned().collect();
    subscriber.hear(&all, 1).await;
    cluster.nodes[2].process.kill().await.expect("our own child can be killed");
    cluster.nodes.remove(2);

    // Nobody publishes yet, and who has a position is told that it is lost.
    let mut first = Some(subscriber.push().await);
    assert_eq!(first.as_ref().unwrap().1["unsubscribe"]["code"], 2500, "{first:?}");

    // Every channel is published into again, by whichever node, and no subscription is silent.
    for channel in &all {
        // What was asked of the node that was killed may be asked again.
        let again = json!({"channel": channel, "data": 1, "idempotency_key": "after"});
        cluster.call(1, "publish", &again).await;
    }
    let (mut told, mut kept) = (0, 0);
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < all.len() {
        let (channel, push) = match first.take() {
            Some(first) => first,
            None => subscriber.push().await,
        };
        assert!(seen.insert(channel.clone()), "{channel} is told once: {push}");
        match push["unsubscribe"]["code"].as_u64() {
            None => {
                assert_eq!(push["pub"]["data"], 1, "{channel}");
                kept += 1;
            }
            Some(code) => {
                assert_eq!((code, channel.starts_with("plain:")), (2500, false), "{channel}");
                let place = channels.iter().position(|name| *name == channel).expect("one of them");
                let since = json!({
                    "channel": channel, "recover": true, "offset": 1, "epoch": epochs[place],
                });
                let reply = subscriber.ask(json!({"id": 900_000 + place, "subscribe": since}));
                let reply = reply.await["subscribe"].clone();
                assert_ne!(reply["recovered"], true, "{reply}");
                assert_ne!(reply["epoch"], epochs[place]);
                told += 1;
            }
        }
    }
    // Some were owned by the node that was killed, others were not and went on.
    assert!(told > 0 && kept > CHANNELS, "{told} told, {kept} kept");
    // Nobody is present any more who was on the node that was killed.
    let stats = cluster.call(0, "presence_stats", &json!({"channel": plain[0]})).await;
    assert_eq!(stats["num_clients"], 1);
    cluster.end().await;
}

/// Where a subscriber is in a channel.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    epoch: String,
    offset: u64,
}

impl Place {
    fn of(told: &Value) -> Self {
        let epoch = told["epoch"].as_str().expect("an epoch").to_owned();
        Self { epoch, offset: told["offset"].as_u64().unwrap_or_default() }
    }

    fn hear(&mut self, publication: &Value) {
        let offset = publication["offset"].as_u64().expect("an offset");
        assert_eq!(offset, self.offset + 1, "missed, doubled or out of order: {publication}");
        self.offset = offset;
    }
}

/// Subscribes from a place on; where the subscriber is then.
async fn come_back(subscriber: &mut Subscriber, id: usize, channel: &str, was: &Place) -> Place {
    let Place { epoch, offset } = was;
    let since = json!({"channel": channel, "recover": true, "epoch": epoch, "offset": offset});
    let reply = subscriber.ask(json!({"id": id, "subscribe": since})).await["subscribe"].clone();
    let now = Place::of(&reply);
    if reply["recovered"] == true {
        let mut place = was.clone();
        let missed = reply["publications"].as_array().cloned().unwrap_or_default();
        missed.iter().for_each(|one| place.hear(one));
        assert_eq!(place, now, "a recovery that says it is whole");
    }
    now
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_node_is_killed_no_subscriber_misses_anything_without_being_told() {
    let mut cluster = Cluster::start("load", 3).await;
    let channels = names("c");
    let mut subscriber = Subscriber::connect(&cluster.nodes[0]).await;
    let mut places = Vec::new();
    for (id, channel) in (2..).zip(&channels) {
        let asked = json!({"id": id, "subscribe": {"channel": channel}});
        places.push(Place::of(&subscriber.ask(asked).await["subscribe"]));
    }
    let killed = cluster.nodes.pop().expect("three of them");
    let publishing = async {
        for number in 0..60 {
            for (place, channel) in channels.iter().enumerate() {
                let key = format!("{number}");
                let post = json!({"channel": channel, "data": number, "idempotency_key": key});
                cluster.call((number + place) % 2, "publish", &post).await;
            }
        }
        let mut tops = Vec::new();
        for channel in &channels {
            let asked = json!({"channel": channel, "limit": 0});
            tops.push(Place::of(&cluster.call(0, "history", &asked).await));
        }
        tops
    };
    let killing = async {
        let mut process = killed.process;
        // Some have been published by then, and most have not.
        cluster.call(1, "info", &json!({})).await;
        process.kill().await.expect("our own child can be killed");
    };
    let mut done = Box::pin(async { tokio::join!(publishing, killing).0 });
    let (mut tops, mut told) = (None, 0);
    while tops.as_ref() != Some(&places) {
        let (channel, push) = tokio::select! {
            all = &mut done, if tops.is_none() => {
                tops = Some(all);
                continue;
            }
            push = subscriber.push() => push,
        };
        let at = channels.iter().position(|name| *name == channel).expect("one of them");
        if push["pub"].is_object() {
            places[at].hear(&push["pub"]);
        } else {
            assert_eq!(push["unsubscribe"]["code"], 2500);
            told += 1;
            let id = 1_000 + told;
            places[at] = come_back(&mut subscriber, id, &channel, &places[at].clone()).await;
        }
    }
    assert!(told > 0, "the node that was killed owned some of the channels");
    drop(done);
    cluster.end().await;
}
