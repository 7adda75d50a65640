//! The log of histories: segments of frames, one frame for all that has gathered, one sync for it.
//!
//! ```text
//! segment  header, frames, one behind the other
//! header   "fm-relay" | format u32 | crc32c u32 | former segment u64 | its length u64
//! frame    length of the body u32 | crc32c u32 | synced u64 | body
//! ```
//! All little endian. `synced` is how much of the segment was surely on disk when the frame was
//! written. By it a torn tail, of which nothing was acknowledged, is told from damage: behind a
//! frame that is not whole, one that says it was synced proves that something acknowledged is gone.
//! A new segment says how much of the one before it counts, so what a failed write has left there
//! never comes back.
//!
//! Zeros are written ahead: a sync of a file that does not grow goes past the file system's journal,
//! which others may be busy with.

pub(super) mod format;
mod reader;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) use reader::Wrong;
use reader::read_segments;

const MAGIC: &[u8; 8] = b"fm-relay";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 16;
/// Zeros that are written ahead, with what first goes beyond those of before.
const AHEAD: &[u8] = &[0; 1 << 20];
const SUFFIX: &str = "histories";
/// How long to wait for a process that is about to let the directory go.
const BUSY: Duration = Duration::from_secs(2);

pub(super) struct Log {
    directory: PathBuf,
    /// Locked while we live: two relays would give out the same offsets.
    _lock: File,
    /// All that are there, with how much of each counts; the last one is written.
    segments: Vec<Segment>,
    /// `None`: what was written last may not be on disk, and nothing is appended behind it.
    file: Option<File>,
    /// Of the last segment.
    written: u64,
    /// To where it has zeros.
    reserved: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) number: u64,
    /// Surely on disk.
    pub(super) synced: u64,
}

impl Log {
    /// Takes the directory, hands the bodies of all frames on, and begins a segment.
    pub(super) fn open(directory: &Path, take: reader::Take<'_>) -> Result<Self, Wrong> {
        let lock = lock(directory)?;
        let segments = read_segments(directory, take)?;
        let directory = directory.to_owned();
        let (file, written, reserved) = (None, 0, 0);
        let mut log = Self { directory, _lock: lock, segments, file, written, reserved };
        log.sync_former()?;
        log.begin()?;
        Ok(log)
    }

    /// Has on disk what was found. It counts from now on, and a process that was killed between its
    /// write and its sync has left it with the system alone.
    fn sync_former(&self) -> io::Result<()> {
        for Segment { number, .. } in last_begun(&self.segments) {
            OpenOptions::new().write(true).open(path(&self.directory, *number))?.sync_data()?;
        }
        Ok(())
    }

    /// Hands on the bodies of all frames that are on disk.
    pub(super) fn read(&self, take: reader::Take<'_>) -> Result<(), Wrong> {
        reader::read(&self.directory, &self.segments, take)
    }

    /// Bytes of all segments.
    pub(super) fn len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.synced).sum()
    }

    /// Bytes of the last segment, on disk or not.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Whether something failed since the last segment was begun.
    pub(super) fn is_broken(&self) -> bool {
        self.file.is_none()
    }

    /// Begins the next segment, durably; says its number. What was not synced before counts no more.
    pub(super) fn begin(&mut self) -> io::Result<u64> {
        self.file = None;
        let former = self.segments.last().copied();
        let number = former.map_or(1, |former| former.number + 1);
        let path = path(&self.directory, number);
        match self.make(&path, &header(former)) {
            Ok(file) => {
                self.file = Some(file);
                (self.written, self.reserved) = (HEADER_BYTES as u64, 0);
                self.cut_off_zeros();
                self.segments.push(Segment { number, synced: self.written });
                Ok(number)
            }
            Err(error) => {
                // The next attempt takes the same number.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    fn make(&self, path: &Path, header: &[u8; HEADER_BYTES]) -> io::Result<File> {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        file.write_all(header)?;
        file.sync_data()?;
        File::open(&self.directory)?.sync_all()?;
        Ok(file)
    }

    /// Writes one frame. It counts once it is synced.
    pub(super) fn write(&mut self, body: &[u8]) -> io::Result<()> {
        let synced = self.segments.last().map_or(0, |segment| segment.synced);
        let head = frame_head(body, synced)?;
        let Some(file) = &self.file else { return Err(io::Error::other("no segment is open")) };
        let at = self.written;
        let written = file.write_all_at(&head, at);
        let written = written.and_then(|()| file.write_all_at(body, at + head.len() as u64));
        match written {
            Ok(()) => self.written += (head.len() + body.len()) as u64,
            Err(_) => self.file = None,
        }
        written
    }

    /// Writes zeros ahead, if the file has grown beyond those that there were.
    fn reserve(&mut self) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| self.written > self.reserved) else {
            return Ok(());
        };
        file.write_all_at(AHEAD, self.written)?;
        self.reserved = self.written + AHEAD.len() as u64;
        Ok(())
    }

    /// Gives back what the last segment has behind its end, as another one is begun. If that fails, it
    /// is some room that is not used.
    fn cut_off_zeros(&self) {
        let Some(Segment { number, synced }) = self.segments.last() else { return };
        let file = OpenOptions::new().write(true).open(path(&self.directory, *number));
        let _ = file.and_then(|file| file.set_len(*synced));
    }

    /// Has all that was written on disk. A failed sync is never repeated in place: the kernel may
    /// have dropped what it could not write, and the next one would succeed without it.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let reserved = self.reserve();
        let Some(file) = &self.file else { return Err(io::Error::other("no segment is open")) };
        let synced = reserved.and_then(|()| file.sync_data());
        match (&synced, self.segments.last_mut()) {
            (Ok(()), Some(segment)) => segment.synced = self.written,
            _ => self.file = None,
        }
        synced
    }

    /// Removes the segments before a number, the oldest first: a gap in the numbers is damage.
    pub(super) fn remove_before(&mut self, number: u64) -> io::Result<()> {
        while let Some(oldest) = self.segments.first().filter(|oldest| oldest.number < number) {
            fs::remove_file(path(&self.directory, oldest.number))?;
            self.segments.remove(0);
        }
        Ok(())
    }
}

/// The last segment that has something, and those behind it, which were being begun when their
/// process ended. What is before it was synced before it was begun.
fn last_begun(segments: &[Segment]) -> &[Segment] {
    let last = segments.iter().rposition(|segment| segment.synced > 0);
    &segments[last.unwrap_or(0)..]
}

fn header(former: Option<Segment>) -> [u8; HEADER_BYTES] {
    let Segment { number, synced } = former.unwrap_or(Segment { number: 0, synced: 0 });
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    bytes[24..].copy_from_slice(&synced.to_le_bytes());
    let crc = header_crc(&bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn header_crc(bytes: &[u8; HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

fn frame_head(body: &[u8], synced: u64) -> io::Result<[u8; FRAME_HEAD_BYTES]> {
    let len = u32::try_from(body.len()).map_err(|_| io::Error::other("a frame is over 4 GiB"))?;
    let mut head = [0; FRAME_HEAD_BYTES];
    head[..4].copy_from_slice(&len.to_le_bytes());
    head[8..].copy_from_slice(&synced.to_le_bytes());
    let crc = frame_crc(&head, body);
    head[4..8].copy_from_slice(&crc.to_le_bytes());
    Ok(head)
}

fn frame_crc(head: &[u8; FRAME_HEAD_BYTES], body: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&head[..4]), &head[8..]);
    crc32c::crc32c_append(crc, body)
}

fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:020}.{SUFFIX}"))
}

/// Waits a moment for a process that is ending.
fn lock(directory: &Path) -> Result<File, Wrong> {
    let lock = File::create(directory.join("lock"))?;
    let until = Instant::now() + BUSY;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(fs::TryLockError::WouldBlock) => return Err(Wrong::InUse),
            Err(fs::TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
