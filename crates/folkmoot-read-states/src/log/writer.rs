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
    /// Up to where somebody waits for the disk.
    wanted: u64,
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

    pub(super) fn appended(&self) -> u64 {
        self.state.lock().appended
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
            let position = state.appended;
            written_to = position;
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
        let (tell, mut synced) = watch::channel(Ok(0));
        let shared = Arc::new(Shared::default());
        let writing = shared.clone();
        let writer = std::thread::spawn(move || writing.write(file, &tell));
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
