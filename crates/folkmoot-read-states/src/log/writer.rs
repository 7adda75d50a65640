//! The thread that writes: whatever has gathered, one write, one sync. It does so at once while
//! somebody waits for the disk, and now and then for changes for which nobody waits.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use super::{LogError, Synced};

/// How long a change for which nobody waits gathers others: it may be lost in that time.
const GATHER: Duration = Duration::from_millis(10);

pub(super) struct Shared {
    state: Mutex<State>,
    has_work: Condvar,
    /// Sent with the state locked: what is told last is what is so.
    tell: watch::Sender<Synced>,
}

#[derive(Default)]
struct State {
    buffer: Vec<u8>,
    /// Bytes appended since the log was opened.
    appended: u64,
    /// Up to where somebody waits for the disk.
    wanted: u64,
    /// Up to where the disk has all that was not thrown away.
    synced: u64,
    /// Where the next segments begin, in `buffer`.
    rotations: Vec<(usize, File)>,
    /// What is written next goes in here, and nothing more into the file before.
    fresh: Option<File>,
    health: Health,
    is_closed: bool,
    /// The writer sleeps until somebody calls it.
    is_idle: bool,
}

/// Whether what is appended gets on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Health {
    #[default]
    Whole,
    /// A write or a sync has failed, and what it has left is unknown: what is appended is thrown
    /// away, and nothing is promised.
    Broken,
    /// What is appended is written again, into a new file. What was thrown away is nowhere but in
    /// memory, and still nothing is promised.
    Mending,
}

impl Shared {
    pub(super) fn new() -> Self {
        let (state, has_work) = (Mutex::default(), Condvar::new());
        Self { state, has_work, tell: watch::Sender::new(Ok(0)) }
    }

    /// How far the disk has what was appended.
    pub(super) fn synced(&self) -> watch::Receiver<Synced> {
        self.tell.subscribe()
    }

    #[inline]
    pub(super) fn append(&self, bytes: &[u8]) -> u64 {
        let mut state = self.state.lock();
        if state.health != Health::Broken {
            state.buffer.extend_from_slice(bytes);
        }
        state.appended += bytes.len() as u64;
        let position = state.appended;
        let is_idle = std::mem::take(&mut state.is_idle);
        drop(state);
        if is_idle {
            self.has_work.notify_one();
        }
        position
    }

    pub(super) fn appended(&self) -> u64 {
        self.state.lock().appended
    }

    pub(super) fn is_whole(&self) -> bool {
        self.state.lock().health == Health::Whole
    }

    pub(super) fn is_broken(&self) -> bool {
        self.state.lock().health == Health::Broken
    }

    /// Says that somebody waits until the disk has everything before a position.
    pub(super) fn want(&self, position: u64) {
        let mut state = self.state.lock();
        if position <= state.wanted {
            return;
        }
        state.wanted = position;
        drop(state);
        self.has_work.notify_one();
    }

    /// What is appended from now on goes into `file`.
    pub(super) fn rotate(&self, file: File) {
        let mut state = self.state.lock();
        if state.health == Health::Broken {
            (state.fresh, state.health) = (Some(file), Health::Mending);
            // That counts once it is told: see `mended`.
            state.synced = state.appended;
            return;
        }
        let at = state.buffer.len();
        state.rotations.push((at, file));
        state.is_idle = false;
        drop(state);
        self.has_work.notify_one();
    }

    /// All that was appended before the last rotation is in the store: what was thrown away is
    /// missed no more. Nothing if the disk has failed again since.
    pub(super) fn mended(&self) {
        let mut state = self.state.lock();
        if state.health == Health::Mending {
            state.health = Health::Whole;
            drop(self.tell.send_replace(Ok(state.synced)));
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_work.notify_one();
    }

    /// The thread's whole life.
    pub(super) fn write(&self, mut file: File) {
        let mut buffer = Vec::new();
        let mut written_to = 0;
        loop {
            let mut state = self.state.lock();
            while state.buffer.is_empty() && state.rotations.is_empty() && !state.is_closed {
                state.is_idle = true;
                self.has_work.wait(&mut state);
            }
            if state.buffer.is_empty() && state.rotations.is_empty() {
                return;
            }
            self.gather(&mut state, written_to);
            std::mem::swap(&mut buffer, &mut state.buffer);
            let rotations = std::mem::take(&mut state.rotations);
            file = state.fresh.take().unwrap_or(file);
            let position = state.appended;
            written_to = position;
            drop(state);
            let written = write_all(&mut file, &buffer, rotations);
            buffer.clear();
            self.wrote(written.map(|()| position).map_err(LogError::new("write")));
        }
    }

    fn wrote(&self, outcome: Synced) {
        let mut state = self.state.lock();
        match &outcome {
            Ok(position) => state.synced = *position,
            Err(error) => {
                tracing::error!(%error, "changes to read states are refused until it is written again");
                state.health = Health::Broken;
                state.buffer = Vec::new();
                state.rotations.clear();
            }
        }
        if state.health != Health::Mending {
            drop(self.tell.send_replace(outcome));
        }
    }
}

impl Shared {
    /// Waits for more, unless somebody waits for something beyond `written_to`.
    fn gather(&self, state: &mut MutexGuard<'_, State>, written_to: u64) {
        let until = Instant::now() + GATHER;
        while state.wanted <= written_to && state.rotations.is_empty() && !state.is_closed {
            if self.has_work.wait_until(state, until).timed_out() {
                return;
            }
        }
    }
}

fn write_all(file: &mut File, bytes: &[u8], rotations: Vec<(usize, File)>) -> io::Result<()> {
    let mut from = 0;
    for (to, next) in rotations {
        file.write_all(&bytes[from..to])?;
        file.sync_data()?;
        from = to;
        *file = next;
    }
    file.write_all(&bytes[from..])?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_is_on_the_disk_soon_and_so_is_what_somebody_waits_for() {
        let path = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let file = File::options().append(true).open(&path).expect("it is there");
        let shared = Arc::new(Shared::new());
        let (writing, mut synced) = (shared.clone(), shared.synced());
        let writer = std::thread::spawn(move || writing.write(file));
        for (wanted, bytes) in [(false, b"first"), (true, b"later"), (false, b"third")] {
            let position = shared.append(bytes);
            if wanted {
                shared.want(position);
            }
            let reached = synced.wait_for(|at| *at == Ok(position));
            let reached = tokio::time::timeout(Duration::from_secs(60), reached).await;
            assert!(reached.is_ok_and(|at| at.is_ok()), "not synced up to {position}");
        }
        shared.close();
        writer.join().expect("it ends");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"firstlaterthird");
    }
}
