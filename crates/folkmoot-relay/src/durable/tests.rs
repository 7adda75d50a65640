use std::collections::BTreeMap;
use std::time::Duration;

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

/// What relays before the log have left, in a format of theirs.
fn leave_a_file(directory: &Path, format: u32) {
    let file = rusqlite::Connection::open(directory.join(former::FILE)).unwrap();
    let version = "version INTEGER, version_epoch TEXT NOT NULL DEFAULT '',";
    let version = if format == 1 { "" } else { version };
    let tables = format!(
        "CREATE TABLE streams (channel TEXT PRIMARY KEY, epoch INTEGER NOT NULL,
             top INTEGER NOT NULL, {version} at INTEGER NOT NULL);
         CREATE TABLE publications (channel TEXT NOT NULL, offset INTEGER NOT NULL,
             body BLOB NOT NULL, PRIMARY KEY (channel, offset));
         CREATE TABLE keys (channel TEXT NOT NULL, key TEXT NOT NULL, offset INTEGER NOT NULL,
             until INTEGER NOT NULL, PRIMARY KEY (channel, key));
         CREATE TABLE rows (source TEXT NOT NULL, id INTEGER NOT NULL, part INTEGER NOT NULL,
             channel TEXT NOT NULL, PRIMARY KEY (source, id, part, channel));
         CREATE TABLE progress (source TEXT PRIMARY KEY, at INTEGER NOT NULL);
         PRAGMA user_version = {format};"
    );
    file.execute_batch(&tables).unwrap();
    let now = crate::server::now_ms();
    let insert = "INSERT INTO streams (channel, epoch, top, at) VALUES ('news', 171, 7, ?1)";
    file.execute(insert, [now]).unwrap();
    if format > 1 {
        let version = "UPDATE streams SET version = 5, version_epoch = 'a'";
        file.execute(version, []).unwrap();
    }
    for offset in 5..=7_i64 {
        let body = post(&offset.to_string(), None, None).payload.at(0);
        let body = prost::Message::encode_to_vec(&body);
        let insert = "INSERT INTO publications VALUES ('news', ?1, ?2)";
        file.execute(insert, rusqlite::params![offset, body]).unwrap();
    }
    file.execute("INSERT INTO keys VALUES ('news', 'k', 6, ?1)", [now + 60_000]).unwrap();
    file.execute_batch(
        "INSERT INTO rows VALUES ('outbox/x', 9, 0, 'news');
         INSERT INTO progress VALUES ('cdc/x', 42);",
    )
    .unwrap();
    file.close().unwrap();
}

#[tokio::test]
async fn the_file_of_a_version_before_the_log_is_brought_over_and_goes() {
    for format in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        leave_a_file(directory.path(), format);
        let mut wanted = (5..=7).map(|one| (one, Bytes::from(one.to_string()))).collect::<Vec<_>>();
        for life in 0..2 {
            let life_of = Life::begin(directory.path(), Keep { len_max: 9, ..KEEP }).await;
            assert!(!directory.path().join(former::FILE).exists());
            assert_eq!(life_of.history().await, (wanted.clone(), "ab".to_owned()), "{format}");
            assert_eq!(life_of.publish("6", Some("k"), None).await.offset, 6);
            assert_eq!(life_of.publish("9", None, Some(9)).await, Position::default());
            assert_eq!(life_of.ledger.progress("cdc/x"), 42);
            let version = Some(Arc::new(Version { number: 5, epoch: "a".into() }));
            let known =
                life_of.hub.publish("news".into(), Post { version, ..post("", None, None) });
            // One of format 1 knows no versions, and takes it.
            let offset = if format == 1 { 8 } else { 7 };
            assert_eq!(known.await.unwrap().offset, offset);
            if format == 1 && life == 0 {
                wanted.push((8, Bytes::new()));
                wanted.drain(..wanted.len() - 3);
            }
            life_of.end().await;
        }
    }
}

#[tokio::test]
async fn a_log_that_was_made_smaller_says_all_that_it_said_before() {
    let directory = tempfile::tempdir().unwrap();
    let keep = Keep { len_max: 3, ..KEEP };
    let life = Life::begin(directory.path(), keep).await;
    life.ledger.disk.restored(crate::channels::SHARDS);
    life.publish("1", Some("k"), Some(8)).await;
    life.publish("2", None, Some(9)).await;
    life.ledger.confirm(std::iter::once(RowKey { source: "outbox/x".into(), id: 8, part: 0 }));
    life.ledger.advance(&"cdc/x".into(), 42);
    let version = Some(Arc::new(Version { number: 5, epoch: "a".into() }));
    life.hub.publish("news".into(), Post { version, ..post("3", None, None) }).await.unwrap();
    life.publish("4", None, None).await;
    let before = life.history().await;
    // A payload of a megabyte in other channels, again and again, until the log is made smaller.
    let large = Arc::new(Payload { data: vec![b'x'; 1 << 20].into(), ..Payload::default() });
    let sizes = || -> Vec<u64> {
        let files = std::fs::read_dir(directory.path()).unwrap();
        files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).collect()
    };
    let segment = |number: u64| directory.path().join(format!("{number:020}.histories")).exists();
    let mut published = 0_u64;
    while !segment(2) {
        let posts = ["a", "b", "c"].map(|name| {
            let data = [&large.data[..], &published.to_le_bytes()].concat();
            let payload = Arc::new(Payload { data: data.into(), ..Payload::default() });
            (Arc::from(name), Post { payload, ..post("", None, None) })
        });
        life.hub.publish_all(posts.into()).await;
        published += 1;
        assert!(published < 100, "{:?}", sizes());
    }
    while segment(1) {
        // Owners look every second whether they are asked.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(life.history().await, before);
    life.end().await;
    let left = sizes().iter().sum::<u64>();
    assert!(left < 64 << 20, "{left} bytes are left");
    let second = Life::begin(directory.path(), keep).await;
    assert_eq!(second.history().await, before);
    assert_eq!(second.publish("1", Some("k"), None).await.offset, 1);
    assert_eq!(second.publish("2", None, Some(9)).await, Position::default());
    assert_eq!(second.ledger.progress("cdc/x"), 42);
    let old = Some(Arc::new(Version { number: 5, epoch: "a".into() }));
    let old = second.hub.publish("news".into(), Post { version: old, ..post("", None, None) });
    assert_eq!(old.await.unwrap().offset, 4);
    assert_eq!(second.publish("5", None, Some(8)).await.offset, 5);
    let other = second.hub.of("a").history("a".into(), Query::default(), keep).await.unwrap();
    assert_eq!(other.offset, published);
    assert_eq!(other.publications.len(), 3);
    let newest = &other.publications[2].data;
    assert_eq!(newest[1 << 20..], (published - 1).to_le_bytes());
}

#[tokio::test]
async fn a_payload_is_on_disk_once_however_many_channels_it_goes_into() {
    let directory = tempfile::tempdir().unwrap();
    let life = Life::begin(directory.path(), KEEP).await;
    let payload = Arc::new(Payload { data: vec![b'x'; 10_000].into(), ..Payload::default() });
    let of = |number: u32| {
        let post = Post { payload: payload.clone(), ..post("", None, None) };
        (Arc::from(format!("user:{number}")), post)
    };
    life.hub.publish_all((0..1_000).map(of).collect()).await;
    life.end().await;
    let second = Life::begin(directory.path(), KEEP).await;
    let file = std::fs::metadata(directory.path().join(format!("{:020}.histories", 1))).unwrap();
    // What gathers while something is written shares a frame; alone, each would have ten megabytes.
    assert!(file.len() < 64 * 10_000 + 100_000, "{}", file.len());
    for number in 0..1_000 {
        let name: Arc<str> = format!("user:{number}").into();
        let page = second.hub.of(&name).history(name.clone(), Query::default(), KEEP).await;
        let page = page.unwrap();
        assert_eq!((page.offset, page.publications.len()), (1, 1), "{name}");
        assert_eq!(page.publications[0].data, payload.data);
    }
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
    // The thread lets go of the directory in its time.
    let (disk, _) = loop {
        match Disk::open(directory.path()) {
            Ok(opened) => break opened,
            Err(refused) => assert!(refused.to_string().contains("another process"), "{refused}"),
        }
    };
    futures_util::FutureExt::now_or_never(disk.close());
    drop(disk);
    let path = directory.path().join(former::FILE);
    let later = rusqlite::Connection::open(&path).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    let refused = loop {
        let refused = Disk::open(directory.path()).unwrap_err().to_string();
        if !refused.contains("another process") {
            break refused;
        }
    };
    assert!(refused.contains("format 99"), "{refused}");
    assert!(path.exists());
}

/// How much each sync of a segment has brought to the disk, at most.
fn synced_at_once(segment: &Path) -> u64 {
    let bytes = std::fs::read(segment).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut most) = (32, 0);
    while at + 16 <= bytes.len() && half(at) > 0 {
        // A frame says how much was synced before it was written.
        let end = at + 16 + half(at) as usize;
        most = most.max(end as u64 - word(at + 8));
        at = end;
    }
    most
}

#[tokio::test]
async fn what_is_published_waits_for_a_small_part_of_a_log_that_is_made_smaller() {
    let directory = tempfile::tempdir().unwrap();
    let life = Life::begin(directory.path(), KEEP).await;
    life.ledger.disk.restored(crate::channels::SHARDS);
    // All of one owner, and more than the log may grow by.
    let shard = Hub::shard("news");
    let names = (0..).map(|number: u32| Arc::from(format!("news:{number}")));
    let names: Vec<Arc<str>> = names.filter(|name| Hub::shard(name) == shard).take(96).collect();
    let large = vec![b'x'; 256 << 10];
    for number in 0..3_u8 {
        for name in &names {
            let data = [&large[..], name.as_bytes(), &[number]].concat();
            let payload = Arc::new(Payload { data: data.into(), ..Payload::default() });
            let one = Post { payload, ..post("", None, None) };
            life.hub.publish(name.clone(), one).await.unwrap();
        }
    }
    let segment = |number: u64| directory.path().join(format!("{number:020}.histories"));
    let mut published = 0;
    while segment(1).exists() {
        assert_eq!(life.publish("small", None, None).await.offset, published + 1);
        published += 1;
    }
    let most = synced_at_once(&segment(2));
    assert!(most < 4 << 20, "a publication waited until {most} bytes were written");
    life.end().await;
    let second = Life::begin(directory.path(), KEEP).await;
    assert_eq!(second.publish("small", None, None).await.offset, published + 1);
    for name in names {
        let page = second.hub.of(&name).history(name.clone(), Query::default(), KEEP).await;
        let publications = page.unwrap().publications;
        let ends = publications.iter().map(|one| one.data[large.len() + name.len()]);
        assert_eq!(ends.collect::<Vec<_>>(), [0, 1, 2], "{name}");
    }
}
