//! A deletion that is cut short at any step is completed by the next start, and leaves nothing.
//!
//! The data directory is copied before each step: what a process leaves that is killed just there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use folkmoot_protocol::rpc::{MessageSend, RoomCreate, RoomLeave};
use folkmoot_protocol::{DeviceId, RoomId, Seq, UserId};

use super::{Progress, Work, work};
use crate::attachment::Attachments;
use crate::chat::{Identity, members, messages, rooms};
use crate::config::{Config, Flags};
use crate::search::Search;
use crate::server::{Beginning, Server};
use crate::storage::{
    AccountDeletion, AccountDeletionBegun, DeletionTarget, NewAccount, NewDevice, PageAnchor,
    Store, StoreOptions,
};

const ANNA: UserId = UserId::from_u64(1);
const EVE: UserId = UserId::from_u64(2);
/// Stands in what Eve says and in her name to show, and nowhere else.
const SECRET: &str = "xylophagous";
const NAME: &str = "Quinceunx";

/// A directory that goes with its test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("folkmoot-deletion-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(directory: &Path) -> Arc<Server> {
    let store = Store::open(&StoreOptions::small(directory)).unwrap();
    let flags = Flags { data: Some(directory.to_owned()), ..Flags::default() };
    let config = Config::load(flags).unwrap();
    let index = Search::open(directory, &store, 16 << 20).unwrap();
    let attachments = Attachments::open(&config.attachments).unwrap();
    Server::new(config, store, Some(index), attachments, Beginning::default())
}

async fn person(server: &Arc<Server>, user: UserId, name: &str, shown: &str) -> Identity {
    let (device, at) = (DeviceId::from_u64(user.as_u64()), server.now());
    let (name, display_name) = (name.to_owned(), shown.to_owned());
    let account = NewAccount { id: user, name, display_name, password_hash: String::new(), at };
    let token_hash = [u8::try_from(user.as_u64()).unwrap(); 32];
    let new = NewDevice { id: device, user, label: "test".to_owned(), token_hash, at };
    server.embedded().create_account(account, new).await.unwrap();
    Identity::new(server.clone(), user, device)
}

async fn say(by: &Identity, room: RoomId, key: &str, body: &str, reply_to: Option<u64>) {
    let (key, body) = (key.to_owned(), body.to_owned());
    let reply_to = reply_to.map(Seq::from_u64);
    let message = MessageSend { room, key, body, reply_to, attachments: Vec::new() };
    messages::send(by, message).await.unwrap();
}

/// Eve's room with Anna in it, in which both have spoken.
async fn populated(directory: &Path) -> (Arc<Server>, Identity, RoomId) {
    let server = open(directory);
    let anna = person(&server, ANNA, "anna", "Anna").await;
    let eve = person(&server, EVE, "eve", NAME).await;
    let create = RoomCreate { name: "Tea".to_owned(), topic: None };
    let room = rooms::create(&eve, create).await.unwrap().id;
    members::admit(&anna, room).await.unwrap();
    say(&eve, room, "1", &format!("@anna {SECRET}"), None).await;
    say(&anna, room, "2", "what?", Some(1)).await;
    say(&eve, room, "3", &format!("{SECRET}!"), Some(2)).await;
    (server, eve, room)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &copied),
            // A file may have gone since the directory was read.
            false => drop(std::fs::copy(&path, copied)),
        }
    }
}

fn database_has(directory: &Path, text: &str) -> bool {
    let bytes = std::fs::read(directory.join("folkmoot.sqlite")).unwrap();
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Does what is to be done step by step, and copies the directory before each; returns the copies.
async fn images(server: &Arc<Server>, scratch: &Path, data: &Path) -> Vec<PathBuf> {
    let mut images = Vec::new();
    while let Some(deletion) = server.embedded().deletions().await.unwrap().first().copied() {
        let mut work = Work::new(deletion);
        loop {
            server.embedded().barrier().await.unwrap();
            let image = scratch.join(images.len().to_string());
            copy(data, &image);
            images.push(image);
            if work.step(server).await.unwrap() == Progress::Done {
                break;
            }
        }
    }
    images
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rooms_deletion_that_is_cut_short_at_any_step_is_completed_by_the_next_start() {
    let scratch = Scratch::new("room");
    let data = scratch.0.join("data");
    let (server, eve, room) = populated(&data).await;
    rooms::delete(&eve, room).await.unwrap();
    let images = images(&server, &scratch.0, &data).await;
    server.close().await;
    assert!(images.len() >= 6, "{} steps", images.len());
    for image in images {
        let server = open(&image);
        let gone = Identity::new(server.clone(), ANNA, DeviceId::from_u64(1));
        assert!(rooms::get(&gone, room).await.is_err(), "{image:?}: it was decided");
        assert!(work(&server).await, "{image:?}");
        assert!(rooms::get(&gone, room).await.is_err());
        assert!(server.embedded().room(room).await.unwrap().is_none());
        let list = rooms::list(&gone, folkmoot_protocol::rpc::RoomsList::default()).await.unwrap();
        assert!(list.rooms.is_empty());
        server.close().await;
        for text in [SECRET, "what?", "Tea"] {
            assert!(!database_has(&image, text), "{image:?} has {text}");
        }
    }
}

async fn an_account_goes(name: &str, erase: bool) {
    let scratch = Scratch::new(name);
    let data = scratch.0.join("data");
    let (server, eve, room) = populated(&data).await;
    let create = RoomCreate { name: "Alone".to_owned(), topic: None };
    let alone = rooms::create(&eve, create).await.unwrap().id;
    say(&eve, alone, "1", "to myself", None).await;
    let at = server.now();
    let deletion = AccountDeletion {
        user: EVE,
        by: EVE,
        verified_hash: Some(String::new()),
        erase,
        hand_over: true,
        at,
    };
    let begun = server.embedded().begin_account_deletion(deletion).await.unwrap();
    assert_eq!(begun, AccountDeletionBegun::Yes);
    let images = images(&server, &scratch.0, &data).await;
    server.close().await;
    assert!(images.len() >= 12, "{} steps", images.len());
    for image in images {
        let server = open(&image);
        assert!(work(&server).await, "{image:?}");
        assert!(server.embedded().deletions().await.unwrap().is_empty());
        assert!(
            server.embedded().room(alone).await.unwrap().is_none(),
            "{image:?}: nobody was in it"
        );
        let anna = Identity::new(server.clone(), ANNA, DeviceId::from_u64(1));
        let view = rooms::get(&anna, room).await.unwrap();
        assert_eq!(
            (view.members, view.role),
            (1, folkmoot_protocol::chat::Role::Owner),
            "{image:?}"
        );
        let page = server.embedded().history(room, PageAnchor::Latest, 10, ANNA).await.unwrap();
        let names: Vec<_> = page.messages.iter().map(|stored| &*stored.message.name).collect();
        assert_eq!(names, ["", "Anna", ""], "{image:?}");
        let is_deleted = page.messages.iter().map(|stored| stored.deleted.is_some());
        assert_eq!(is_deleted.collect::<Vec<_>>(), [erase, false, erase], "{image:?}");
        server.close().await;
        assert!(!database_has(&image, NAME), "{image:?}");
        assert_eq!(database_has(&image, SECRET), !erase, "{image:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounts_deletion_that_is_cut_short_at_any_step_is_completed_by_the_next_start() {
    an_account_goes("keep", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_is_one_that_erases_what_was_said() {
    an_account_goes("erase", true).await;
}

async fn no_cursor_is_left(server: &Arc<Server>, room: RoomId) {
    // Saves what has moved, as a few seconds would.
    for user in [ANNA, EVE] {
        server.user(user).stop().await;
    }
    server.embedded().barrier().await.unwrap();
    assert_eq!(server.embedded().users_with_traces_of(room).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_moved_just_before_its_room_was_deleted_leaves_no_trace() {
    let scratch = Scratch::new("cursor");
    let (server, eve, room) = populated(&scratch.0).await;
    rooms::delete(&eve, room).await.unwrap();
    assert!(work(&server).await);
    no_cursor_is_left(&server, room).await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_that_of_somebody_who_has_just_left() {
    let scratch = Scratch::new("left");
    let (server, eve, room) = populated(&scratch.0).await;
    let anna = Identity::new(server.clone(), ANNA, DeviceId::from_u64(ANNA.as_u64()));
    say(&anna, room, "4", "bye", None).await;
    members::leave(&anna, RoomLeave { room }).await.unwrap();
    rooms::delete(&eve, room).await.unwrap();
    assert!(work(&server).await);
    no_cursor_is_left(&server, room).await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_decided_twice_is_done_once() {
    let scratch = Scratch::new("twice");
    let (server, eve, room) = populated(&scratch.0.join("data")).await;
    rooms::delete(&eve, room).await.unwrap();
    assert!(rooms::delete(&eve, room).await.is_err());
    let deletions = server.embedded().deletions().await.unwrap();
    assert_eq!(deletions.len(), 1);
    assert_eq!(deletions[0].target, DeletionTarget::Room(room));
    assert!(work(&server).await);
    server.close().await;
}
