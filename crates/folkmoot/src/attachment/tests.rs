//! What is promised about files on the disk: they go when nobody keeps them, and not before.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::chat::Attachment;
use folkmoot_protocol::rpc::{MessageDelete, MessageSend, RoomCreate, RpcError};
use folkmoot_protocol::{AttachmentId, DeviceId, ErrorCode, PictureId, RoomId, Seq, UserId};
use futures_util::stream;

use super::pieces::Place;
use super::{Attachments, Kept, Object, of_user, sweep, unshown, upload};
use crate::chat::Identity;
use crate::chat::{messages, rooms};
use crate::config::{Config, Flags};
use crate::server::{Beginning, Server};
use crate::storage::{NewAccount, NewDevice, Store, StoreOptions};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// Anna with a room of her own, on a directory that is removed in the end.
struct House {
    server: Arc<Server>,
    anna: Identity,
    room: RoomId,
    directory: PathBuf,
}

impl House {
    async fn open(name: &str, settings: &str) -> Self {
        Self::patient_for(LONG, name, settings).await
    }

    /// A piece of a file is waited for that long.
    async fn patient_for(piece_silence: Duration, name: &str, settings: &str) -> Self {
        let name = format!("folkmoot-files-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        let server = start(&directory, settings, piece_silence);
        let anna = anna(&server).await;
        let create = RoomCreate { name: "Tea".to_owned(), topic: None };
        let room = rooms::create(&anna, create).await.unwrap().id;
        Self { server, anna, room, directory }
    }

    /// Ends everything and begins again with other settings.
    async fn reopen(&mut self, settings: &str) {
        self.server.close().await;
        self.server = start(&self.directory, settings, LONG);
        self.anna.server = self.server.clone();
        self.server.embedded().cancel_unfinished_uploads().await.unwrap();
    }

    async fn upload(&self, text: &'static str) -> Attachment {
        let name = "a.txt".to_owned();
        let announced = upload::Announced { room: self.room, name, size: None };
        let body = stream::iter([Ok::<_, Infallible>(Bytes::from_static(text.as_bytes()))]);
        upload::receive(&self.anna, announced, body).await.unwrap()
    }

    /// Begins a file of ten bytes and sends five of them.
    async fn half(&self) -> AttachmentId {
        let announced =
            upload::Announced { room: self.room, name: "a.txt".to_owned(), size: Some(10) };
        let id = of_user::begin(&self.anna, announced).await.unwrap().id;
        let piece = async { Ok(Bytes::from_static(b"half ")) };
        let place = Place { offset: 0, is_ahead: false };
        assert_eq!(of_user::append(&self.anna, id, place, piece).await.unwrap().offset, 5);
        id
    }

    async fn bytes(&self) -> u64 {
        self.server.embedded().attachment_bytes(self.anna.user).await.unwrap()
    }

    async fn send(&self, file: &Attachment) -> Result<Seq, RpcError> {
        let (key, body) = (file.id.to_string(), String::new());
        let (room, attachments) = (self.room, vec![file.id]);
        let message = MessageSend { room, key, body, reply_to: None, attachments };
        messages::send(&self.anna, message).await.map(|sent| sent.seq)
    }

    /// Names of the files in the attachment store.
    fn files(&self) -> Vec<String> {
        self.names("files")
    }

    /// Names of the pictures that people show, or have shown.
    fn portraits(&self) -> Vec<String> {
        self.names("portraits")
    }

    fn names(&self, part: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.join("attachments").join(part)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn start(directory: &PathBuf, settings: &str, piece_silence: Duration) -> Arc<Server> {
    let store = Store::open(&StoreOptions::small(directory)).unwrap();
    let file = directory.with_extension("toml");
    std::fs::write(&file, format!("[attachments]\n{settings}")).unwrap();
    let flags = Flags {
        data: Some(directory.clone()),
        config: Some(file.clone()),
        messages_per_second: Some(0),
        ..Flags::default()
    };
    let mut config = Config::load(flags).unwrap();
    config.attachments.piece_silence = piece_silence;
    let _ = std::fs::remove_file(file);
    let attachments = Attachments::open(&config.attachments).unwrap();
    Server::new(config, store, None, attachments, Beginning::default())
}

async fn anna(server: &Arc<Server>) -> Identity {
    let (user, device, at) = (UserId::from_u64(1), DeviceId::from_u64(1), server.now());
    let (name, display_name) = ("anna".to_owned(), "Anna".to_owned());
    let account = NewAccount { id: user, name, display_name, password_hash: String::new(), at };
    let label = "test".to_owned();
    let new = NewDevice { id: device, user, label, token_hash: [1; 32], at };
    server.embedded().create_account(account, new).await.unwrap();
    Identity::new(server.clone(), user, device)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_no_message_names_in_time_is_removed_also_after_a_restart() {
    let mut house = House::open("expiry", "").await;
    let (sent, waiting) = (house.upload("sent").await, house.upload("waiting").await);
    house.send(&sent).await.unwrap();
    sweep::sweep(&house.server).await;
    assert_eq!(house.files().len(), 2, "a day is not over");
    house.reopen("unsent_s = 0").await;
    let late = house.upload("never in time").await;
    assert_eq!(house.send(&late).await.unwrap_err().code, ErrorCode::NotFound);
    sweep::sweep(&house.server).await;
    let mut kept = vec![sent.id.to_string(), waiting.id.to_string()];
    kept.sort();
    assert_eq!(house.files(), kept, "what waited before has the time it was given");
    assert_eq!(house.server.embedded().attachment_bytes(house.anna.user).await.unwrap(), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_message_removes_its_files_and_gives_their_bytes_back() {
    let house = House::open("deletion", "").await;
    let (file, other) = (house.upload("gone").await, house.upload("stays").await);
    let seq = house.send(&file).await.unwrap();
    house.send(&other).await.unwrap();
    messages::delete(&house.anna, MessageDelete { room: house.room, seq }).await.unwrap();
    sweep::sweep(&house.server).await;
    assert_eq!(house.files(), [other.id.to_string()]);
    assert_eq!(house.server.embedded().attachment_bytes(house.anna.user).await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_stay_while_a_backup_copies_them_and_go_with_the_next_sweep() {
    let house = House::open("kept", "").await;
    let file = house.upload("wanted").await;
    let seq = house.send(&file).await.unwrap();
    let kept = Kept::hold(&house.directory.join("attachments")).unwrap();
    messages::delete(&house.anna, MessageDelete { room: house.room, seq }).await.unwrap();
    sweep::sweep(&house.server).await;
    assert_eq!(house.files(), [file.id.to_string()]);
    drop(kept);
    sweep::sweep(&house.server).await;
    assert!(house.files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_half_written_is_gone_after_the_next_start() {
    let mut house = House::open("crash", "").await;
    let kept = house.upload("kept").await;
    // As a crash leaves it: announced, begun, never finished.
    let half = house.directory.join("attachments/files/0000000000001#1");
    std::fs::write(&half, "half").unwrap();
    let new = crate::storage::NewUpload {
        id: crate::storage::AttachmentId::from_u64(1),
        room: house.room,
        by: house.anna.user,
        size_max: 1_000,
        expires_at: crate::storage::UnixMillis::from_u64(u64::MAX >> 1),
        user_bytes_max: 1_000_000,
        unsent_max: 10,
    };
    house.server.embedded().begin_upload(new).await.unwrap();
    house.reopen("").await;
    sweep::sweep(&house.server).await;
    assert_eq!(house.files(), [kept.id.to_string()]);
    assert_eq!(house.server.embedded().attachment_bytes(house.anna.user).await.unwrap(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_a_kill_left_to_nobody_goes_and_those_that_are_shown_stay() {
    let house = House::open("portraits", "").await;
    let (user, objects) = (house.anna.user, &house.server.attachments.objects);
    let [lost, late, shown] = [1, 2, 3].map(PictureId::from_u64);
    for picture in [lost, late, shown] {
        objects.put(Object::Portrait(picture), b"a face".to_vec()).await.unwrap();
    }
    house.server.embedded().set_picture(user, Some(shown)).await.unwrap();
    let unshown = unshown::look(&house.server, &HashSet::new()).await;
    assert_eq!(unshown, HashSet::from([lost, late]));
    assert_eq!(house.portraits().len(), 3, "each may be on its way to somebody");
    house.server.embedded().set_picture(user, Some(late)).await.unwrap();
    assert_eq!(unshown::look(&house.server, &unshown).await, HashSet::from([shown]));
    assert_eq!(house.portraits(), [late.to_string(), shown.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upload_leaves_nothing_behind() {
    let house = House::open("refused", "file_bytes_max = 20000").await;
    let announced = upload::Announced { room: house.room, name: "a.txt".to_owned(), size: None };
    let pieces = (0..5).map(|_| Ok::<_, Infallible>(Bytes::from(vec![b'a'; 5_000])));
    let pieces: Vec<_> = pieces.collect();
    let refused = upload::receive(&house.anna, announced, stream::iter(pieces)).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::TooLarge);
    sweep::sweep(&house.server).await;
    assert_eq!(house.server.embedded().attachment_bytes(house.anna.user).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_wait_in_bounded_number() {
    let house = House::open("bounded", "").await;
    for _ in 0..folkmoot_protocol::limits::UNSENT_FILES_MAX {
        house.upload("one more").await;
    }
    let announced = upload::Announced { room: house.room, name: "a.txt".to_owned(), size: Some(3) };
    let body = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"too"))]);
    let refused = upload::receive(&house.anna, announced, body).await.unwrap_err();
    assert_eq!(refused.limit, Some(50));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_pieces_stop_coming_is_given_up_and_its_bytes_are_given_back() {
    let house = House::patient_for(Duration::from_millis(200), "silence", "").await;
    let id = house.half().await;
    let within = tokio::time::Instant::now() + Duration::from_secs(30);
    while house.bytes().await > 0 {
        assert!(tokio::time::Instant::now() < within, "its bytes are still taken");
        sweep::sweep(&house.server).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = of_user::progress(&house.anna, id).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound, "it is begun anew");
    assert!(house.files().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_pieces_that_a_crash_cut_off_leaves_nothing() {
    let mut house = House::open("pieces-crash", "").await;
    let id = house.half().await;
    assert_eq!(house.bytes().await, 10);
    house.reopen("").await;
    sweep::sweep(&house.server).await;
    assert_eq!(house.bytes().await, 0);
    let refused = of_user::progress(&house.anna, id).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound);
    house.upload("it can be sent again").await;
    assert_eq!(house.files().len(), 1);
}
