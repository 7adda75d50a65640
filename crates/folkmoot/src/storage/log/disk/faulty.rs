//! A disk that fails on demand and can lose power, in front of the real one.
//!
//! It writes through, so that readers see what the page cache would show, and remembers what was
//! synced, so that a power cut can take the rest away again, in part or in whole.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Disk, DiskFile, RealDisk};

/// What the next operations of one kind do; used up in order, then everything works.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// Works.
    Pass,
    /// A write stores only so many of its bytes and fails; a sync stores nothing and fails.
    Fail { kind: io::ErrorKind, kept: usize },
}

#[derive(Default)]
struct State {
    writes: VecDeque<Fault>,
    syncs: VecDeque<Fault>,
    /// Every write and sync fails with this.
    broken: Option<io::ErrorKind>,
    files: HashMap<PathBuf, Arc<Mutex<Image>>>,
}

/// What of a file would survive, and what would not.
#[derive(Default)]
struct Image {
    synced: Vec<u8>,
    unsynced: Vec<(u64, Vec<u8>)>,
    /// Writes that a sync failed for: the kernel forgets them, so no later sync makes them durable.
    forgotten: Vec<(u64, Vec<u8>)>,
}

impl Image {
    fn uncertain(&self) -> impl Iterator<Item = &(u64, Vec<u8>)> {
        self.forgotten.iter().chain(&self.unsynced)
    }
}

/// The disk; clones share their faults.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<State>>);

impl FaultyDisk {
    /// Plans the outcome of the coming writes.
    pub(crate) fn plan_writes(&self, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().writes.extend(faults);
    }

    /// Plans the outcome of the coming syncs.
    pub(crate) fn plan_syncs(&self, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().syncs.extend(faults);
    }

    /// Lets everything fail from now on, or work again.
    pub(crate) fn set_broken(&self, kind: Option<io::ErrorKind>) {
        self.0.lock().broken = kind;
    }

    /// Bytes that were written but never synced, over all files.
    pub(crate) fn unsynced_len(&self) -> usize {
        let state = self.0.lock();
        state
            .files
            .values()
            .flat_map(|image| {
                let image = image.lock();
                image.uncertain().map(|(_, bytes)| bytes.len()).collect::<Vec<_>>()
            })
            .sum()
    }

    /// Rewrites every file as a power cut would leave it: what was synced, and of each file's later
    /// writes, seen as one row of bytes, only those in `kept`.
    pub(crate) fn cut_power(&self, kept: &Range<usize>) {
        for (path, image) in &self.0.lock().files {
            let image = image.lock();
            let mut content = image.synced.clone();
            let mut index = 0;
            for (position, bytes) in image.uncertain() {
                for (at, byte) in (*position..).zip(bytes) {
                    if kept.contains(&index) {
                        store(&mut content, at, &[*byte]);
                    }
                    index += 1;
                }
            }
            std::fs::write(path, content).expect("the test's directory takes writes");
        }
    }

    fn next_fault(&self, plan: impl Fn(&mut State) -> &mut VecDeque<Fault>) -> Fault {
        let mut state = self.0.lock();
        match state.broken {
            Some(kind) => Fault::Fail { kind, kept: 0 },
            None => plan(&mut state).pop_front().unwrap_or(Fault::Pass),
        }
    }
}

fn store(content: &mut Vec<u8>, position: u64, bytes: &[u8]) {
    let start = usize::try_from(position).expect("test files are small");
    let end = start + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.create(path)?;
        let image = Arc::new(Mutex::new(Image::default()));
        self.0.lock().files.insert(path.to_owned(), Arc::clone(&image));
        Ok(Box::new(FaultyFile { disk: self.clone(), file, image }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        let mut state = self.0.lock();
        if let Some(image) = state.files.remove(from) {
            state.files.insert(to.to_owned(), image);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().files.remove(path);
        RealDisk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    file: Box<dyn DiskFile>,
    image: Arc<Mutex<Image>>,
}

impl FaultyFile {
    fn write(&mut self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.image.lock().unsynced.push((position, bytes.to_vec()));
        self.file.write_all_at(bytes, position)
    }
}

impl DiskFile for FaultyFile {
    fn write_all_at(&mut self, bytes: &[u8], position: u64) -> io::Result<()> {
        match self.disk.next_fault(|state| &mut state.writes) {
            Fault::Pass => self.write(bytes, position),
            Fault::Fail { kind, kept } => {
                self.write(&bytes[..kept.min(bytes.len())], position)?;
                Err(kind.into())
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.disk.next_fault(|state| &mut state.syncs) {
            Fault::Pass => {
                let mut image = self.image.lock();
                for (position, bytes) in std::mem::take(&mut image.unsynced) {
                    store(&mut image.synced, position, &bytes);
                }
                Ok(())
            }
            Fault::Fail { kind, .. } => {
                let mut image = self.image.lock();
                let forgotten = std::mem::take(&mut image.unsynced);
                image.forgotten.extend(forgotten);
                Err(kind.into())
            }
        }
    }
}
