//! A store that fails when it is told to, what is asked of read states under load, and the files that a
//! crash leaves.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

pub(crate) mod errors;
pub(crate) mod load;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use folkmoot_read_states::{Answer, Change, Row, RowStore, StoreError};
use tokio::sync::watch;

pub(crate) fn acknowledge(message: u64, mentions_left: u32) -> Change {
    Change::Acknowledge { message, mentions_left }
}

pub(crate) fn mention(message: u64) -> Change {
    Change::Mention { message }
}

pub(crate) struct Faulty {
    rows: Box<dyn RowStore>,
    loads: AtomicUsize,
    fails_saves: AtomicBool,
    refused: Mutex<BTreeSet<u64>>,
    panics_in_saves: AtomicBool,
    panics: watch::Sender<u32>,
    fails_every: AtomicU32,
    calls: AtomicU32,
    saved: watch::Sender<Vec<u64>>,
    holds_loads: watch::Sender<bool>,
    hangs_loads: Mutex<Option<Duration>>,
}

/// A store that keeps nothing.
pub(crate) struct NoRows;

impl RowStore for NoRows {
    fn take_over(&self, version: u64) -> Answer<u64> {
        Box::pin(async move { Ok(version) })
    }

    fn load(&self, _: u64) -> Answer<Option<Row>> {
        Box::pin(async { Ok(None) })
    }

    fn save(&self, _: Vec<Row>) -> Answer<()> {
        Box::pin(async { Ok(()) })
    }
}

impl Faulty {
    pub(crate) fn new(rows: impl RowStore) -> Arc<Self> {
        Arc::new(Self {
            rows: Box::new(rows),
            loads: AtomicUsize::new(0),
            fails_saves: AtomicBool::new(false),
            refused: Mutex::default(),
            panics_in_saves: AtomicBool::new(false),
            panics: watch::Sender::default(),
            fails_every: AtomicU32::new(u32::MAX),
            calls: AtomicU32::new(0),
            saved: watch::Sender::default(),
            holds_loads: watch::Sender::default(),
            hangs_loads: Mutex::default(),
        })
    }

    pub(crate) fn loads(&self) -> usize {
        self.loads.load(SeqCst)
    }

    pub(crate) fn fail_saves(&self, on: bool) {
        self.fails_saves.store(on, SeqCst);
    }

    /// Takes no write from now on in which there is a row of one of them.
    pub(crate) fn refuse(&self, users: impl IntoIterator<Item = u64>) {
        *self.refused.lock().unwrap() = users.into_iter().collect();
    }

    pub(crate) fn panic_in_saves(&self, on: bool) {
        self.panics_in_saves.store(on, SeqCst);
    }

    /// Waits until it has panicked.
    pub(crate) async fn panicked(&self) {
        let mut panics = self.panics.subscribe();
        panics.wait_for(|panics| *panics > 0).await.unwrap();
    }

    /// Answers no load until it is told to go on.
    pub(crate) fn hold_loads(&self, on: bool) {
        self.holds_loads.send_replace(on);
    }

    /// Has each load fail after so long.
    pub(crate) fn hang_loads(&self, within: Duration) {
        *self.hangs_loads.lock().unwrap() = Some(within);
    }

    /// Waits until a row of one of them was saved.
    pub(crate) async fn saved_one(&self, of: impl RangeBounds<u64>) {
        let mut saved = self.saved.subscribe();
        saved.wait_for(|users| users.iter().any(|user| of.contains(user))).await.unwrap();
    }

    /// Fails the nth of so many calls.
    pub(crate) fn fail_every(&self, calls: u32) {
        self.fails_every.store(calls, SeqCst);
    }

    /// Waits until a row of the user was saved.
    pub(crate) async fn saved(&self, user: u64) {
        let mut saved = self.saved.subscribe();
        saved.wait_for(|users| users.contains(&user)).await.unwrap();
    }

    fn is_down(&self) -> bool {
        let call = self.calls.fetch_add(1, SeqCst) + 1;
        call.is_multiple_of(self.fails_every.load(SeqCst))
    }
}

fn away<T: Send + 'static>(doing: &'static str) -> Answer<T> {
    Box::pin(async move { Err(StoreError::new(doing, "it is away")) })
}

impl RowStore for Faulty {
    fn load(&self, user: u64) -> Answer<Option<Row>> {
        self.loads.fetch_add(1, SeqCst);
        if self.is_down() {
            return away("load a row");
        }
        if let Some(within) = *self.hangs_loads.lock().unwrap() {
            return Box::pin(async move {
                tokio::time::sleep(within).await;
                Err(StoreError::new("load a row", "it did not answer"))
            });
        }
        let (loading, mut held) = (self.rows.load(user), self.holds_loads.subscribe());
        Box::pin(async move {
            held.wait_for(|is_held| !is_held).await.unwrap();
            loading.await
        })
    }

    fn save(&self, rows: Vec<Row>) -> Answer<()> {
        if self.is_down() || self.fails_saves.load(SeqCst) {
            return away("save rows");
        }
        let refused = self.refused.lock().unwrap().clone();
        if rows.iter().any(|row| refused.contains(&row.user)) {
            return Box::pin(async { Err(StoreError::new("save rows", "it refuses a row")) });
        }
        if self.panics_in_saves.load(SeqCst) {
            self.panics.send_modify(|panics| *panics += 1);
            panic!("as it was told");
        }
        let users: Vec<_> = rows.iter().map(|row| row.user).collect();
        let (saving, saved) = (self.rows.save(rows), self.saved.clone());
        Box::pin(async move {
            saving.await?;
            saved.send_modify(|all| all.extend(users));
            Ok(())
        })
    }

    fn take_over(&self, version: u64) -> Answer<u64> {
        self.rows.take_over(version)
    }
}

/// Copies all files of a directory, as a crash at this moment would leave them.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Cuts bytes off the end of the last segment that has any.
pub(crate) fn cut_log(directory: &Path, bytes: usize) {
    let file = OpenOptions::new().write(true).open(last_segment(directory)).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes as u64).unwrap();
}

/// Flips a bit of that byte of the last segment that has any.
pub(crate) fn flip_bit_of_log(directory: &Path, byte: usize) {
    let path = last_segment(directory);
    let mut bytes = fs::read(&path).unwrap();
    bytes[byte] ^= 4;
    fs::write(path, bytes).unwrap();
}

fn last_segment(directory: &Path) -> PathBuf {
    let mut segments: Vec<_> =
        fs::read_dir(directory.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    segments.into_iter().rfind(|path| fs::metadata(path).unwrap().len() > 0).unwrap()
}
