//! A real file system that is full: writes are refused, acknowledged ones stay, and room brings it back.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod storage_support;

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use folkmoot::storage::{AppendError, PageAnchor, Store};
use storage_support::{ANA, ROOM, TestDirectory, message, populate, small_options};

const DIRECTORY: &str = "FOLKMOOT_TINY_DISK";
/// A few thousand long messages, in the log and in the database.
const DISK: &str = "size=40m";
/// What is freed in the end: twice what was written fits, once in SQLite's WAL and once in the database.
const BALLAST_LEN: usize = 24 << 20;
/// The store looks for room four times a second.
const LOOKS_MAX: usize = 400;

/// Says so where everybody sees it.
#[expect(
    clippy::explicit_write,
    reason = "what the print macros write is kept back when a test passes"
)]
fn skipped(why: &str) {
    writeln!(std::io::stderr(), "SKIPPED a_full_file_system_loses_nothing_and_recovers: {why}")
        .unwrap();
}

#[test]
fn a_full_file_system_loses_nothing_and_recovers() {
    let directory = TestDirectory::new("tiny");
    let script = r#"mount -t tmpfs -o "$1" tmpfs "$2" || exit 77; exec "$3" --ignored --exact writing_child --nocapture"#;
    let mount = directory.path();
    std::fs::create_dir_all(&mount).unwrap();
    // A mount namespace of its own: the tmpfs goes away with the child.
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", DISK])
        .arg(&mount)
        .arg(std::env::current_exe().unwrap())
        .env(DIRECTORY, &mount)
        .output();
    let Ok(output) = output else {
        skipped("`unshare` is not installed (Debian: util-linux)");
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || text.contains("unshare:") {
        skipped(&format!("this system does not let a test mount a tmpfs: {text}"));
        return;
    }
    assert!(output.status.success(), "{}{text}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
#[ignore = "the child of the test above, which gives it a tiny disk"]
async fn writing_child() {
    let disk = PathBuf::from(std::env::var_os(DIRECTORY).expect("run by the test above"));
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1; BALLAST_LEN]).unwrap();
    let options = small_options(disk.join("data"));
    let store = Store::open(&options).unwrap();
    populate(&store).await;

    let mut acknowledged = 0;
    let error = loop {
        let next = acknowledged + 1;
        let record = message(next + 1, next, &"x".repeat(8_000));
        match store.append(store.write_epoch(), &record).await {
            Ok(_) => acknowledged = next,
            Err(error) => break error,
        }
        assert!(acknowledged < 100_000, "a disk of {DISK} never filled up");
    };
    assert_eq!(error, AppendError::DiskFull);

    std::fs::remove_file(&ballast).unwrap();
    let mut looks = 0;
    while store.ready().await.is_err() {
        looks += 1;
        assert!(looks < LOOKS_MAX, "the store did not find the room that was made");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let next = acknowledged + 1;
    store.append(store.write_epoch(), &message(next + 1, next, "after")).await.unwrap();
    store.close().await;

    let store = Store::open(&options).unwrap();
    let page = store.history(ROOM, PageAnchor::Latest, 1_000_000, ANA).await.unwrap();
    let seqs: Vec<_> = page.messages.iter().map(|stored| stored.message.seq.as_u64()).collect();
    assert_eq!(seqs, (1..=next).collect::<Vec<_>>());
    assert_eq!(page.messages.last().unwrap().message.body, "after");
    store.close().await;
}
