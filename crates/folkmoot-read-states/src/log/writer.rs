//! The thread that writes: whatever has gathered, one write, one sync.

use std::fs::File;
use std::io::{self, Write};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use super::{LogError, Synced};

#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    has_work: Condvar,
}

#[derive(Default)]
struct State {
    buffer: Vec<u8>,
    /// Bytes appended since the log was opened.
    appended: u64,
    /// Where the next segments begin, in `buffer`.
    rotations: Vec<(usize, File)>,
    is_closed: bool,
    /// A write or a sync has failed: nothing is kept for a disk that takes nothing.
    is_broken: bool,
    /// The writer sleeps until somebody calls it.
    is_idle: bool,
}

impl Shared {
    #[inline]
    pub(super) fn append(&self, bytes: &[u8]) -> u64 {
        let mut state = self.state.lock();
        if !state.is_broken {
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

    /// What is appended from now on goes into `file`.
    pub(super) fn rotate(&self, file: File) {
        let mut state = self.state.lock();
        if state.is_broken {
            return;
        }
        let at = state.buffer.len();
        state.rotations.push((at, file));
        state.is_idle = false;
        drop(state);
        self.has_work.notify_one();
    }

    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_work.notify_one();
    }

    /// The thread's whole life. A failure is the last thing it tells.
    pub(super) fn write(&self, mut file: File, tell: &watch::Sender<Synced>) {
        let mut buffer = Vec::new();
        loop {
            let mut state = self.state.lock();
            while state.buffer.is_empty() && state.rotations.is_empty() && !state.is_closed {
                state.is_idle = true;
                self.has_work.wait(&mut state);
            }
            if state.buffer.is_empty() && state.rotations.is_empty() {
                return;
            }
            std::mem::swap(&mut buffer, &mut state.buffer);
            let rotations = std::mem::take(&mut state.rotations);
            let position = state.appended;
            drop(state);
            let written = write_all(&mut file, &buffer, rotations);
            buffer.clear();
            let outcome = written.map(|()| position).map_err(LogError::new("write"));
            let has_failed = outcome.is_err();
            drop(tell.send_replace(outcome));
            if has_failed {
                // What a failed sync has left on the disk is unknown: nothing more is promised.
                let mut state = self.state.lock();
                state.is_broken = true;
                state.buffer = Vec::new();
                state.rotations.clear();
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
