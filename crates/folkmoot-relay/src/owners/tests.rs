use std::collections::BTreeMap;
use std::path::Path;

use althing::Node;
use bytes::Bytes;
use folkmoot_gateway::{Next, Outbox};
use folkmoot_protocol::Format;
use folkmoot_protocol::frame::SubscribeResult;
use futures_util::FutureExt;

use super::*;
use crate::channels::{Answer, ChannelsCalls, Join, Position, Post};
use crate::connection::Connection;
use crate::durable::{Ledger, RowKey};
use crate::payload::Payload;
use crate::settings::Settings;
use crate::stream::{Keep, Query};

const KEEP: Keep = Keep { len_max: 100, ttl_ms: 60_000, numbers_ttl_ms: 600_000, is_durable: true };

struct World {
    hub: Hub,
    people: Arc<People>,
    ledger: Ledger,
    _node: Node,
}

async fn world(directory: &Path) -> World {
    let settings = format!(
        "[channel]\nhistory_directory = '{}'\n[channel.without_namespace]\nhistory_size = 100\n\
         history_ttl = '60s'\nhistory_meta_ttl = '600s'\ndurable_history = true",
        directory.display()
    );
    let rules = Rules::new(&Settings::from_toml(&settings).unwrap().channel).unwrap();
    let (ledger, _) = Ledger::open(Some(directory.to_owned())).await.unwrap();
    let ledger = ledger.unwrap();
    let disk = (ledger.disk.clone(), ledger.rows.clone());
    let people = Arc::new(People::default());
    let owners = Arc::new(Owners::new(people.clone(), Arc::new(rules), Some(disk)));
    let begin = move |start| {
        let owners = owners.clone();
        async move { owners.begin(start).await }
    };
    let node = Node::builder("test").actor(begin).build();
    World { hub: Hub::new(&node), people, ledger, _node: node }
}

impl World {
    /// Somebody who is subscribed to a channel.
    async fn subscriber(&self, id: &str, channel: &str) -> Arc<Connection> {
        let outbox = Arc::new(Outbox::new(1 << 20));
        let connection =
            Connection::new(id.into(), "42".into(), Bytes::new(), Format::Json, outbox);
        connection.go_live();
        let connection = Arc::new(connection);
        self.people.enter(&connection, 0);
        let channel: Arc<str> = channel.into();
        let reserved = connection.reserve(&channel, 1).unwrap();
        let join = Join {
            channel: channel.clone(),
            connection: connection.clone(),
            info: Bytes::new(),
            has_presence: true,
            tells_coming: false,
            wants_comings: false,
            keep: Some(KEEP),
            since: None,
            recovery_limit: 10,
            recovers_newest: false,
            needs_all: false,
            filter: None,
            result: SubscribeResult::default(),
            answer: Answer::Connect,
        };
        self.hub.of(&channel).join(join).await.unwrap().unwrap();
        drop(reserved);
        connection
    }

    async fn publish(&self, channel: &str, key: &str, row: u64) -> Option<Position> {
        let data = Bytes::from(format!("{key:?}"));
        let payload = Payload { data, tags: BTreeMap::new(), info: None, time: 0 };
        let post = Post {
            payload: Arc::new(payload),
            keep: Some(KEEP),
            key: (!key.is_empty()).then(|| key.into()),
            row: (row > 0).then(|| RowKey { source: "outbox/x".into(), id: row, part: 0 }),
            version: None,
            may_be_delta: false,
        };
        self.hub.publish(channel.into(), post).await.ok()
    }

    async fn history(&self, channel: &str) -> (Vec<(u64, Bytes)>, String) {
        let page = self.hub.of(channel).history(channel.into(), Query::default(), KEEP).await;
        let page = page.unwrap();
        let publications = page.publications.into_iter().map(|one| (one.offset, one.data));
        (publications.collect(), page.epoch)
    }
}

/// Two channels of different owners.
fn two_owners() -> (&'static str, &'static str) {
    let other = ["a", "b", "c", "d"].into_iter().find(|one| Hub::shard(one) != Hub::shard("news"));
    ("news", other.unwrap())
}

#[tokio::test]
async fn durable_channels_are_the_same_after_their_owner_panicked() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path()).await;
    let first = world.publish("news", "k", 0).await.unwrap();
    world.publish("news", "", 9).await.unwrap();
    let before = world.history("news").await;
    assert!(world.hub.of("news").fail_by_panic().await.is_err());
    assert_eq!(world.history("news").await, before);
    assert_eq!(world.publish("news", "k", 0).await, Some(first), "its key is forgotten");
    assert_eq!(world.publish("news", "", 9).await, Some(Position::default()), "its row is");
    assert_eq!(world.publish("news", "l", 0).await.unwrap(), Position { offset: 3, ..first });
    world.ledger.disk.close().await;
}

#[tokio::test]
async fn what_was_on_its_way_to_the_disk_when_an_owner_panicked_is_there_once_after_it_is_repeated()
{
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path()).await;
    for round in 1..=5 {
        let (key, row) = (round.to_string(), 100 + round);
        let panics = async { world.hub.of("news").fail_by_panic().await };
        // Both are on their way at once.
        let both =
            async { tokio::join!(world.publish("news", &key, 0), world.publish("news", "", row)) };
        tokio::join!(both, panics).1.unwrap_err();
        while world.publish("news", &key, 0).await.is_none() {}
        while world.publish("news", "", row).await.is_none() {}
        let (history, _) = world.history("news").await;
        let offsets: Vec<u64> = history.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, (1..=2 * round).collect::<Vec<_>>(), "{history:?}");
    }
    world.ledger.disk.close().await;
}

#[tokio::test]
async fn who_was_subscribed_where_an_owner_panicked_is_told_to_come_back_and_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path()).await;
    let (news, other) = two_owners();
    let (ada, bo) = (world.subscriber("ada", news).await, world.subscriber("bo", other).await);
    assert!(world.hub.of(news).fail_by_panic().await.is_err());
    world.publish(news, "", 0).await.unwrap();
    world.publish(other, "", 0).await.unwrap();
    match ada.outbox.next().now_or_never() {
        Some(Next::Close(close)) => assert_eq!(close.code, 3010),
        next => panic!("{next:?}"),
    }
    assert!(matches!(bo.outbox.next().now_or_never(), Some(Next::Messages(_))));
    world.ledger.disk.close().await;
}
