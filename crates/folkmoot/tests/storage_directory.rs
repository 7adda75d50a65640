//! Data directories that must be refused, and old ones that must keep loading.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod storage_support;

use std::path::Path;
use std::process::Command;

use folkmoot::storage::{
    AppendError, ControlError, OpenError, PageAnchor, ReadError, Restored, Role, RoomEvent, Seq,
    Store, StoreOptions, UnixMillis, UserId,
};
use storage_support::{
    ANA, BO, ROOM, TestDirectory, account, message, populated, room_event, small_options,
};

const DIRECTORY: &str = "FOLKMOOT_LOCKED_DIRECTORY";

fn open_error(path: &Path) -> OpenError {
    match Store::open(&StoreOptions::new(path)) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

#[tokio::test]
async fn another_format_is_refused_and_left_alone() {
    let directory = TestDirectory::new("format");
    populated(&directory).await.close().await;
    std::fs::write(directory.path().join("VERSION"), "2\n").unwrap();
    let before = std::fs::read_dir(directory.path()).unwrap().count();
    let error = open_error(&directory.path());
    assert!(matches!(&error, OpenError::OtherVersion { found, expected: 1, .. } if found == "2"));
    assert!(error.to_string().ends_with("has format 2, this program reads format 1"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), before);
}

#[test]
fn a_directory_of_other_things_is_refused() {
    let directory = TestDirectory::new("other");
    std::fs::create_dir_all(directory.path()).unwrap();
    std::fs::write(directory.path().join("thesis.tex"), "years of work").unwrap();
    assert!(matches!(open_error(&directory.path()), OpenError::NotADataDirectory { .. }));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_second_process_is_told_who_has_the_directory() {
    let directory = TestDirectory::new("lock");
    let store = populated(&directory).await;
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "locked_out_child", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("is in use by process {}", std::process::id());
    assert!(said.contains(&expected), "{said}");
    store.close().await;
    directory.open().close().await;
}

#[test]
#[ignore = "the child of the test above, which holds the lock"]
fn locked_out_child() {
    let directory = std::env::var_os(DIRECTORY).expect("run by the test above");
    println!("{}", open_error(Path::new(&directory)));
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let directory = TestDirectory::new("schema");
    populated(&directory).await.close().await;
    let database = rusqlite::Connection::open(directory.path().join("folkmoot.sqlite")).unwrap();
    database.pragma_update(None, "user_version", 900).unwrap();
    drop(database);
    assert!(matches!(open_error(&directory.path()), OpenError::NewerSchema { found: 900, .. }));
}

#[tokio::test]
async fn a_closed_store_refuses_everything_and_frees_the_directory() {
    let directory = TestDirectory::new("closed");
    let store = populated(&directory).await;
    store.close().await;
    store.close().await;
    let append = store.append(store.write_epoch(), &message(2, 1, "late"));
    assert_eq!(append.await, Err(AppendError::ShuttingDown));
    assert!(matches!(store.account(ANA).await, Err(ReadError::ShuttingDown)));
    let (new, device) = account(BO, "late");
    let refused = store.create_account(new, device).await;
    assert!(matches!(refused, Err(ControlError::ShuttingDown)));
    directory.open().close().await;
}

#[tokio::test]
async fn segments_do_not_pile_up_with_restarts() {
    let directory = TestDirectory::new("restarts");
    let store = populated(&directory).await;
    store.append(store.write_epoch(), &message(2, 1, "x")).await.unwrap();
    store.close().await;
    for _ in 0..3 {
        let store = directory.open();
        assert_eq!(store.stats().segments, 1);
        store.close().await;
    }
    assert_eq!(std::fs::read_dir(directory.path().join("log")).unwrap().count(), 1);
}

#[tokio::test]
async fn records_that_were_applied_already_are_not_applied_again() {
    let directory = TestDirectory::new("replay");
    let log = directory.path().join("log");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    for seq in 1..=50 {
        store.append(epoch, &message(seq + 1, seq, "x")).await.unwrap();
    }
    // The log as a crash leaves it that comes after SQLite's commit and before the segments are
    // deleted.
    let kept = TestDirectory::new("replay-kept");
    copy(&log, &kept.path());
    store.close().await;
    std::fs::remove_dir_all(&log).unwrap();
    copy(&kept.path(), &log);
    let store = directory.open();
    let room = store.load_room(ROOM, 100, UnixMillis::from_u64(1)).await.unwrap().unwrap();
    assert_eq!(room.tail.len(), 51);
    store.append(room.epoch, &message(52, 51, "x")).await.unwrap();
    let page = store.history(ROOM, PageAnchor::Latest, 100, ANA).await.unwrap();
    assert_eq!(page.messages.len(), 51);
    store.close().await;
}

#[tokio::test]
async fn dropping_a_store_acknowledges_and_keeps_what_was_queued() {
    let directory = TestDirectory::new("dropped");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    let appends: Vec<_> =
        (1..=100).map(|seq| store.append(epoch, &message(seq + 1, seq, "x"))).collect();
    drop(store);
    for append in appends {
        append.await.unwrap();
    }
    // The threads end by themselves; the lock tells when they have.
    let store = loop {
        match Store::open(&directory.options()) {
            Ok(store) => break store,
            Err(OpenError::Locked { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let page = store.history(ROOM, PageAnchor::Latest, 200, ANA).await.unwrap();
    assert_eq!(page.messages.len(), 100);
    store.close().await;
}

/// `fixtures/format-1` was written by the first program with this format: schema 1, twelve messages
/// in the database and eight more in the log alone. It is never written again.
#[tokio::test]
async fn the_first_format_keeps_loading() {
    let directory = TestDirectory::new("fixture");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1");
    copy(&fixture, &directory.path());
    for _ in 0..2 {
        let store = Store::open(&small_options(directory.path())).unwrap();
        let room = store.load_room(ROOM, 100, UnixMillis::from_u64(1)).await.unwrap().unwrap();
        assert_eq!(room.summary.last_seq.as_u64(), 20);
        assert_eq!(room.tail.len(), 21);
        assert_eq!((room.summary.member_count, room.owners), (1, 1));
        let page = store.history(ROOM, PageAnchor::Latest, 100, ANA).await.unwrap();
        let bodies: Vec<_> = page.messages.iter().map(|m| m.message.body.clone()).collect();
        assert_eq!(bodies, (1..=20).map(|seq| format!("message {seq}")).collect::<Vec<_>>());
        assert_eq!(store.credentials("ana".into()).await.unwrap().unwrap().0.id, ANA);
        store.close().await;
    }
    // What came with a later schema works on it too.
    let store = Store::open(&small_options(directory.path())).unwrap();
    let seq = Seq::from_u64(20);
    let reaction = RoomEvent::Reaction { seq, user: BO, emoji: "🌱".into(), on: true };
    store.append(store.write_epoch(), &room_event(22, reaction)).await.unwrap();
    let message = store.message(ROOM, seq, BO).await.unwrap().unwrap();
    assert!(message.reactions[0].is_mine);
    store.close().await;
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn data_restored_from_a_copy_begins_a_new_epoch() {
    let directory = TestDirectory::new("restored");
    let store = populated(&directory).await;
    let epoch = store.stream_epoch().to_owned();
    store.close().await;
    let backup = TestDirectory::new("restored-backup");
    copy(&directory.path(), &backup.path());
    let store = directory.open();
    assert_eq!(store.stream_epoch(), epoch, "a restart is no restore");
    store.close().await;

    // The older state comes back in place of the newer one.
    std::fs::remove_dir_all(directory.path()).unwrap();
    copy(&backup.path(), &directory.path());
    let store = directory.open();
    let restored = store.stream_epoch().to_owned();
    assert_ne!(restored, epoch, "offsets would be given out a second time");
    store.close().await;
    let store = directory.open();
    assert_eq!(store.stream_epoch(), restored);
    store.close().await;

    let options = StoreOptions { restored: Restored::Yes, ..directory.options() };
    let store = Store::open(&options).unwrap();
    assert_ne!(store.stream_epoch(), restored, "the operator said so");
    store.close().await;
}

#[tokio::test]
async fn who_joined_before_a_crash_has_not_to_catch_up() {
    let directory = TestDirectory::new("joined");
    let store = populated(&directory).await;
    let cy = UserId::from_u64(77);
    let (new, device) = account(cy, "cy");
    store.create_account(new, device).await.unwrap();
    let epoch = store.write_epoch();
    for seq in 1..=5 {
        store.append(epoch, &message(seq + 1, seq, "x")).await.unwrap();
    }
    // The room's record only: the process died before the user's own.
    let (name, display_name) = ("cy".to_owned(), "Cy".to_owned());
    let joined = RoomEvent::Joined { user: cy, name, display_name, role: Role::Member };
    store.append(epoch, &room_event(7, joined)).await.unwrap();
    let loaded = store.load_user(cy, 10).await.unwrap().unwrap();
    assert_eq!(loaded.rooms[0].read_seq, Seq::from_u64(5));
    store.close().await;
}
