use std::collections::BTreeMap;

use althing::{Node, Start};
use bytes::Bytes;

use super::*;
use crate::channels::{Channels, ChannelsCalls, Hub, Position};
use crate::stream::Query;
use crate::version::Version;

const KEEP: Keep = Keep { len_max: 3, ttl_ms: 60_000, numbers_ttl_ms: 600_000, is_durable: true };

/// Channels in a directory, as a relay has them from its start to its end.
struct Life {
    ledger: Ledger,
    hub: Hub,
    _node: Node,
}

impl Life {
    async fn begin(directory: &Path, keep: Keep) -> Self {
        let (ledger, found) = Ledger::open(Some(directory.to_owned())).await.unwrap();
        let ledger = ledger.unwrap();
        let (disk, rows) = (ledger.disk.clone(), ledger.rows.clone());
        let new = move |_: Start<Channels>| {
            std::future::ready(Ok(Channels::on_disk(disk.clone(), rows.clone())))
        };
        let node = Node::builder("test").actor(new).build();
        let hub = Hub::new(&node);
        let found = found.into_iter().map(|(name, restored)| (name, restored, keep));
        hub.restore(found.collect()).await.unwrap();
        Self { ledger, hub, _node: node }
    }

    async fn end(self) {
        self.ledger.disk.close().await;
    }

    async fn publish(&self, text: &str, key: Option<&str>, row: Option<u64>) -> Position {
        let channel = Arc::from("news");
        self.hub.publish(channel, post(text, key, row)).await.unwrap()
    }

    async fn history(&self) -> (Vec<(u64, Bytes)>, String) {
        let owner = self.hub.of("news");
        let page = owner.history("news".into(), Query::default(), KEEP).await.unwrap();
        let publications = page.publications.into_iter().map(|one| (one.offset, one.data));
        (publications.collect(), page.epoch)
    }
}

fn post(text: &str, key: Option<&str>, row: Option<u64>) -> Post {
    let tags = BTreeMap::from([("kind".to_owned(), "test".to_owned())]);
    let payload = Payload { data: text.to_owned().into(), tags, info: None, time: 7 };
    let row = row.map(|id| RowKey { source: "outbox/x".into(), id, part: 0 });
    Post {
        payload: Arc::new(payload),
        keep: Some(KEEP),
        key: key.map(Arc::from),
        row,
        version: None,
        may_be_delta: false,
    }
}

#[tokio::test]
async fn offsets_epoch_and_history_are_the_same_in_the_next_life() {
    let directory = tempfile::tempdir().unwrap();
    let first = Life::begin(directory.path(), KEEP).await;
    for text in ["1", "2", "3", "4"] {
        first.publish(text, None, None).await;
    }
    let before = first.history().await;
    assert_eq!(before.0.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), [2, 3, 4]);
    first.end().await;
    let second = Life::begin(directory.path(), KEEP).await;
    assert_eq!(second.history().await, before);
    assert_eq!(second.publish("5", None, None).await.offset, 5);
    second.end().await;
    // The namespace keeps less from now on.
    let third = Life::begin(directory.path(), Keep { len_max: 1, ..KEEP }).await;
    let (history, epoch) = third.history().await;
    assert_eq!((history, epoch), (vec![(5, Bytes::from("5"))], before.1));
}

#[tokio::test]
async fn a_key_and_a_row_publish_once_also_across_lives() {
    let directory = tempfile::tempdir().unwrap();
    let first = Life::begin(directory.path(), KEEP).await;
    let seen = first.publish("a", Some("k"), None).await;
    first.publish("b", None, Some(9)).await;
    first.end().await;
    let second = Life::begin(directory.path(), KEEP).await;
    assert_eq!(second.publish("a", Some("k"), None).await, seen);
    second.publish("b", None, Some(9)).await;
    assert_eq!(second.history().await.0.len(), 2);
    let row = RowKey { source: "outbox/x".into(), id: 9, part: 0 };
    second.ledger.confirm(std::iter::once(row));
    second.ledger.advance(&"cdc/x".into(), 42);
    second.end().await;
    let third = Life::begin(directory.path(), KEEP).await;
    assert_eq!(third.ledger.progress("cdc/x"), 42);
    // It is another row by now, as nobody would send a confirmed one again.
    assert_eq!(third.publish("c", None, Some(9)).await.offset, 3);
}

#[tokio::test]
async fn a_version_is_known_in_the_next_life_and_counts_within_one_batch() {
    let directory = tempfile::tempdir().unwrap();
    let versioned = |number| Post {
        version: Some(Arc::new(Version { number, epoch: "a".into() })),
        ..post(&number.to_string(), None, None)
    };
    let first = Life::begin(directory.path(), KEEP).await;
    // They are on their way together.
    let posts = [2, 3, 1, 3].map(|number| ("news".into(), versioned(number)));
    let published = first.hub.publish_all(posts.into()).await;
    let offsets: Vec<_> = published.into_iter().map(|one| one.unwrap().offset).collect();
    assert_eq!(offsets, [1, 2, 2, 2]);
    first.end().await;
    let second = Life::begin(directory.path(), KEEP).await;
    for (number, offset) in [(3, 2), (4, 3)] {
        let published = second.hub.publish("news".into(), versioned(number)).await;
        assert_eq!(published.unwrap().offset, offset, "{number}");
    }
    assert_eq!(second.history().await.0.len(), 3);
}

#[tokio::test]
async fn a_transaction_that_begins_where_the_confirmed_one_ends_is_still_known() {
    let directory = tempfile::tempdir().unwrap();
    let first = Life::begin(directory.path(), KEEP).await;
    for id in [8, 9] {
        first.publish("a", None, Some(id)).await;
    }
    first.ledger.advance(&"outbox/x".into(), 9);
    assert_eq!(first.publish("a", None, Some(9)).await, Position::default());
    first.end().await;
    let second = Life::begin(directory.path(), KEEP).await;
    assert_eq!(second.publish("a", None, Some(9)).await, Position::default());
    assert_eq!(second.history().await.0.len(), 2);
}

#[tokio::test]
async fn a_row_that_comes_again_after_its_channel_was_forgotten_takes_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let short = Keep { ttl_ms: 1, numbers_ttl_ms: 1, ..KEEP };
    let life = Life::begin(directory.path(), short).await;
    let row = || Post { keep: Some(short), ..post("a", None, Some(9)) };
    assert_eq!(life.hub.publish("news".into(), row()).await.unwrap().offset, 1);
    while life.hub.count().await.unwrap().channels > 0 {
        // Whoever asks makes it look what has expired.
        life.history().await;
    }
    assert_eq!(life.hub.publish("news".into(), row()).await.unwrap(), Position::default());
    assert_eq!(life.hub.count().await.unwrap().channels, 0);
}

#[tokio::test]
async fn the_same_key_or_row_twice_in_one_request_publishes_once() {
    let directory = tempfile::tempdir().unwrap();
    let life = Life::begin(directory.path(), KEEP).await;
    let posts = [
        post("a", Some("k"), None),
        post("a", Some("k"), None),
        post("b", None, Some(1)),
        post("b", None, Some(1)),
        post("c", None, None),
    ];
    let posts = posts.map(|post| (Arc::from("news"), post)).to_vec();
    let outcomes = life.hub.publish_all(posts).await;
    let offsets: Vec<u64> = outcomes.into_iter().map(|one| one.unwrap().offset).collect();
    assert_eq!(offsets, [1, 1, 2, 2, 3]);
}

#[tokio::test]
async fn a_file_of_the_format_before_is_read_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let first = Life::begin(directory.path(), KEEP).await;
    first.publish("1", Some("k"), None).await;
    let before = first.history().await;
    first.end().await;
    let file = rusqlite::Connection::open(directory.path().join(tables::FILE)).unwrap();
    let older = "ALTER TABLE streams DROP COLUMN version;
        ALTER TABLE streams DROP COLUMN version_epoch;
        PRAGMA user_version = 1;";
    file.execute_batch(older).unwrap();
    file.close().unwrap();
    let second = Life::begin(directory.path(), KEEP).await;
    assert_eq!(second.history().await, before);
    assert_eq!(second.publish("1", Some("k"), None).await.offset, 1);
    assert_eq!(second.publish("2", None, None).await.offset, 2);
}

#[tokio::test]
async fn history_that_was_removed_stays_removed() {
    let directory = tempfile::tempdir().unwrap();
    let first = Life::begin(directory.path(), KEEP).await;
    first.publish("1", None, None).await;
    first.hub.remove_history("news".into()).await.unwrap();
    first.end().await;
    let second = Life::begin(directory.path(), KEEP).await;
    assert_eq!(second.history().await.0, []);
    assert_eq!(second.publish("2", None, None).await.offset, 2);
}

#[tokio::test]
async fn a_disk_that_takes_nothing_refuses_and_gives_no_numbers_away() {
    let directory = tempfile::tempdir().unwrap();
    let life = Life::begin(directory.path(), KEEP).await;
    life.publish("1", None, None).await;
    let before = life.history().await;
    life.ledger.disk.close().await;
    let refused = life.hub.publish("news".into(), post("2", Some("k"), None)).await;
    assert!(matches!(refused, Err(crate::channels::Refused::Disk)), "{refused:?}");
    assert_eq!(life.history().await, before);
}

#[test]
fn a_second_process_is_refused_and_so_is_a_file_of_a_later_version() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = Disk::open(directory.path()).unwrap();
    let refused = Disk::open(directory.path()).unwrap_err().to_string();
    assert!(refused.contains("another process"), "{refused}");
    futures_util::FutureExt::now_or_never(disk.close());
    drop(disk);
    let path = directory.path().join(tables::FILE);
    let later = loop {
        // The thread lets go of the file in its time.
        if let Ok(connection) = rusqlite::Connection::open(&path)
            && connection.pragma_update(None, "user_version", 99).is_ok()
        {
            break connection;
        }
    };
    drop(later);
    let refused = Disk::open(directory.path()).unwrap_err().to_string();
    assert!(refused.contains("format 99"), "{refused}");
}
