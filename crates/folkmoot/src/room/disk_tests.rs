//! What a room promises when the disk under it fails: nothing acknowledged is lost, nothing
//! unacknowledged is shown, numbers have no gaps, and it goes on by itself. And when it stops:
//! nothing that it has taken in is refused.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::rpc::{HistoryGet, MessageSend, MessageSent, RoomCreate, RpcError};
use folkmoot_protocol::{DeviceId, ErrorCode, RoomId, UserId};
use futures_util::future::{join, join_all};

use crate::attachment::Attachments;
use crate::chat::Identity;
use crate::chat::{messages, rooms};
use crate::config::{Config, Flags};
use crate::room::Command;
use crate::room::view::Mention;
use crate::server::{Beginning, Server};
use crate::storage::log::disk::faulty::{Fault, FaultyDisk};
use crate::storage::record::{LeaveReason, Notify};
use crate::storage::{NewAccount, NewDevice, Seq, Store, StoreOptions};
use crate::user::UserCalls;

/// The store looks for room four times a second; this is far longer.
const PATIENCE: Duration = Duration::from_secs(30);

struct House {
    server: Arc<Server>,
    disk: FaultyDisk,
    anna: Identity,
    room: RoomId,
    directory: PathBuf,
}

impl House {
    async fn open(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("folkmoot-disk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let disk = FaultyDisk::default();
        let options = StoreOptions::small(&directory);
        let store = Store::open_on(&options, disk.clone()).unwrap();
        let data = Some(directory.clone());
        let flags = Flags { data, messages_per_second: Some(0), ..Flags::default() };
        let config = Config::load(flags).unwrap();
        let attachments = Attachments::open(&config.attachments).unwrap();
        let server = Server::new(config, store, None, attachments, Beginning::default());
        let anna = anna(&server).await;
        let create = RoomCreate { name: "Tea".to_owned(), topic: None };
        let room = rooms::create(&anna, create).await.unwrap().id;
        Self { server, disk, anna, room, directory }
    }

    async fn say(&self, key: &str) -> Result<MessageSent, RpcError> {
        let (key, body) = (key.to_owned(), format!("body of {key}"));
        let (room, attachments) = (self.room, Vec::new());
        messages::send(&self.anna, MessageSend { room, key, body, reply_to: None, attachments })
            .await
    }

    /// Keys and numbers of all messages, as history has them.
    async fn history(&self) -> Vec<(String, u64)> {
        let (before, after, around) = (None, None, None);
        let request = HistoryGet { room: self.room, before, after, around, limit: Some(100) };
        let page = messages::history(&self.anna, request).await.unwrap();
        let messages = page.messages.into_iter();
        messages.map(|one| (one.key.unwrap_or_default(), one.seq.as_u64())).collect()
    }

    /// Sends until the store takes writes again.
    async fn say_once_it_works(&self, key: &str) -> MessageSent {
        let healed = async {
            loop {
                match self.say(key).await {
                    Ok(sent) => return sent,
                    Err(error) => assert_eq!(error.code, ErrorCode::StoreUnavailable, "{error}"),
                }
                self.server.node().sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, healed).await.expect("the store recovers")
    }

    async fn close(self) {
        self.server.close().await;
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

async fn anna(server: &Arc<Server>) -> Identity {
    let (user, device, at) = (UserId::from_u64(1), DeviceId::from_u64(2), server.now());
    let text = || "anna".to_owned();
    let (name, display_name, password_hash) = (text(), text(), text());
    let account = NewAccount { id: user, name, display_name, password_hash, at };
    let device = NewDevice { id: device, user, label: text(), token_hash: [0; 32], at };
    let id = device.id;
    server.embedded().create_account(account, device).await.unwrap();
    Identity::new(server.clone(), user, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_by_name_and_loses_nothing() {
    let house = House::open("full").await;
    for n in 1..=5 {
        assert_eq!(house.say(&format!("before {n}")).await.unwrap().seq.as_u64(), n);
    }
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    let keys: Vec<String> = (1..=20).map(|n| format!("during {n}")).collect();
    for refused in join_all(keys.iter().map(|key| house.say(key))).await {
        let error = refused.expect_err("nothing can be stored");
        assert_eq!(error.code, ErrorCode::StoreUnavailable);
        assert!(error.message.contains("disk is full"), "{error}");
    }
    assert_eq!(house.history().await.len(), 5, "reading goes on");
    house.disk.set_broken(None);
    let sent = house.say_once_it_works("during 1").await;
    assert_eq!((sent.seq.as_u64(), sent.duplicate), (6, false));
    assert_eq!(house.say("after").await.unwrap().seq.as_u64(), 7);
    let seqs: Vec<u64> = house.history().await.into_iter().map(|(_, seq)| seq).collect();
    assert_eq!(seqs, (1..=7).collect::<Vec<_>>());
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_fails_amid_many_sends_acknowledges_exactly_what_is_kept() {
    let house = House::open("sync").await;
    house.say("first").await.unwrap();
    let failing = Fault::Fail { kind: ErrorKind::Other, kept: 0 };
    house.disk.plan_syncs([Fault::Pass, failing]);
    let keys: Vec<String> = (0..200).map(|n| format!("key {n}")).collect();
    let answers = join_all(keys.iter().map(|key| house.say(key))).await;
    let mut acknowledged: Vec<(String, u64)> = keys
        .iter()
        .zip(&answers)
        .filter_map(|(key, answer)| Some((key.clone(), answer.as_ref().ok()?.seq.as_u64())))
        .collect();
    for key in &keys {
        // Every send is repeated under its key until it is in: no doubles may come of it.
        let sent = house.say_once_it_works(key).await;
        if !acknowledged.iter().any(|(known, _)| known == key) {
            acknowledged.push((key.clone(), sent.seq.as_u64()));
        }
    }
    acknowledged.push(("first".to_owned(), 1));
    acknowledged.sort_by_key(|(_, seq)| *seq);
    let last: Vec<_> = acknowledged.split_off(acknowledged.len() - 100);
    assert_eq!(house.history().await, last);
    let numbers = acknowledged.iter().chain(&last).map(|(_, seq)| *seq);
    assert!(numbers.eq(1..=201), "a gap or a double");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_told_while_the_disk_is_full_reaches_the_user_once_there_is_room() {
    let house = House::open("mention").await;
    house.say("first").await.unwrap();
    let user = house.server.user(house.anna.user);
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    house.say("refused").await.expect_err("nothing can be stored");
    let mention = Mention {
        room: house.room,
        seq: Seq::from_u64(2),
        by: UserId::from_u64(9),
        name: "Bob".to_owned(),
        excerpt: "@anna".to_owned(),
        at: house.server.now(),
    };
    user.mentioned(mention).await.unwrap();
    assert_eq!(user.membership(house.room).await.unwrap().unwrap().mentions.len(), 0);
    house.disk.set_broken(None);
    let arrived = async {
        while user.membership(house.room).await.unwrap().unwrap().mentions.len() == 0 {
            house.server.node().sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, arrived).await.expect("it is taken again");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_while_their_departure_waits_for_the_disk_is_in_the_room() {
    let house = House::open("back").await;
    house.say("first").await.unwrap();
    let user = house.server.user(house.anna.user);
    let before = user.position().await.unwrap();
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    house.say("refused").await.expect_err("nothing can be stored");
    user.left(house.room, LeaveReason::Left).await.unwrap();
    house.disk.set_broken(None);
    house.say_once_it_works("again").await;
    user.joined(house.room, Seq::from_u64(1)).await.unwrap();
    let told = async {
        while user.position().await.unwrap() < before.next().next() {
            house.server.node().sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("both are in the stream");
    assert!(user.membership(house.room).await.unwrap().is_ok(), "the departure was first");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_that_waits_for_the_disk_is_dropped_with_its_message() {
    let house = House::open("withdrawn").await;
    house.say("first").await.unwrap();
    let user = house.server.user(house.anna.user);
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    house.say("refused").await.expect_err("nothing can be stored");
    let mention = |seq| Mention {
        room: house.room,
        seq: Seq::from_u64(seq),
        by: UserId::from_u64(9),
        name: "Bob".to_owned(),
        excerpt: "@anna".to_owned(),
        at: house.server.now(),
    };
    user.mentioned(mention(2)).await.unwrap();
    user.unmentioned(house.room, Seq::from_u64(2)).await.unwrap();
    user.mentioned(mention(3)).await.unwrap();
    house.disk.set_broken(None);
    let known = async || user.membership(house.room).await.unwrap().unwrap().mentions;
    let arrived = async {
        while !known().await.contains(Seq::from_u64(3)) {
            house.server.node().sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, arrived).await.expect("it is taken again");
    assert!(!known().await.contains(Seq::from_u64(2)), "its text is nobody's to see");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_meets_a_full_disk_is_saved_once_there_is_room() {
    let house = House::open("cursor").await;
    house.say("first").await.unwrap();
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    // Its time comes meanwhile.
    house.server.node().sleep(Duration::from_secs(7)).await;
    house.disk.set_broken(None);
    let user = house.server.user(house.anna.user);
    let healed = async {
        while user.set_notify(house.room, Notify::Mentions).await.unwrap().is_err() {
            house.server.node().sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, healed).await.expect("the store recovers");
    user.stop().await;
    let membership = user.membership(house.room).await.unwrap().unwrap();
    assert_eq!(membership.read_seq.as_u64(), 1, "whoever writes has read what stands above it");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_before_the_disk_leaves_the_room_as_it_is() {
    let house = House::open("refused").await;
    house.say("first").await.unwrap();
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    house.say("handed to the disk").await.expect_err("nothing can be stored");
    let refused = join_all((0..500).map(|_| house.say("refused"))).await;
    assert!(refused.iter().all(Result::is_err));
    house.disk.set_broken(None);
    let sent = house.say_once_it_works("after").await;
    assert_eq!(sent.seq.as_u64(), 2, "nothing that was refused took a number");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_stops_judges_and_answers_what_waits_there_in_order() {
    let house = House::open("stops").await;
    // Its next life has to ask who anna is.
    house.server.room(house.room).stop().await;
    let keys: Vec<String> = (0..20).map(|n| format!("key {n}")).collect();
    let said = async {
        let mut said = pin!(join_all(keys.iter().map(|key| house.say(key))));
        // With the first poll all are in the mailbox.
        assert!(futures_util::poll!(&mut said).is_pending());
        house.server.room(house.room).stop().await;
        said.await
    };
    let numbers = said.await.into_iter().map(|sent| sent.expect("it waited there").seq.as_u64());
    assert_eq!(numbers.collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
    house.close().await;
}

/// Two connections of one person ask for the same; what the first leads to does not get to the disk.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_for_the_same_meanwhile_is_not_told_that_it_is_done() {
    let house = House::open("same").await;
    house.say("first").await.unwrap();
    let seq = Seq::from_u64(1);
    let (name, topic) = (Some("Coffee".to_owned()), None);
    let commands = [
        Command::Pin { seq, on: true },
        Command::Update { name, topic },
        // The second one is refused: there is nothing left to delete.
        Command::Delete { seq },
    ];
    for (number, command) in commands.into_iter().enumerate() {
        let ask = || messages::apply(&house.anna, house.room, command.clone());
        house.disk.set_broken(Some(ErrorKind::StorageFull));
        for answer in join_all([ask(), ask()]).await {
            let error = answer.expect_err("nothing can be stored");
            assert_eq!(error.code, ErrorCode::StoreUnavailable, "{command:?}: {error}");
        }
        house.disk.set_broken(None);
        house.say_once_it_works(&format!("after {number}")).await;
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_that_is_not_stored_is_not_granted_to_who_repeats_it() {
    let house = House::open("wish").await;
    house.say("first").await.unwrap();
    let user = house.server.user(house.anna.user);
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    let ask = || async { user.set_notify(house.room, Notify::None).await.unwrap() };
    let answers = join_all([ask(), ask()]).await;
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
    house.disk.set_broken(None);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_room_is_called_is_shown_once_it_is_stored() {
    let house = House::open("shown").await;
    house.say("first").await.unwrap();
    house.disk.set_broken(Some(ErrorKind::StorageFull));
    let (name, topic) = (Some("Coffee".to_owned()), None);
    let update = messages::apply(&house.anna, house.room, Command::Update { name, topic });
    let room = house.server.asked(house.room);
    // In the room's mailbox right behind it.
    let (updated, seen) = join(update, room.summary(house.anna.user)).await;
    assert!(updated.is_err());
    assert_eq!(seen.unwrap().unwrap().name, "Tea");
    house.disk.set_broken(None);
    house.close().await;
}
