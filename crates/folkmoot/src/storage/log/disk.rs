//! The few things the log asks of a file system, so that tests can make each of them fail.
//!
//! Only writing goes through here: what reading finds on a damaged disk is a matter of bytes, and
//! tests hand those over directly.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

#[cfg(test)]
pub(crate) mod faulty;

/// A directory that segments are written into.
pub(crate) trait Disk: Send + Sync + 'static {
    /// Makes an empty file, replacing one of that name.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file its final name; durable only after [`Disk::sync_directory`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Deletes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// A file being written.
pub(crate) trait DiskFile: Send {
    /// Writes all of `bytes`; on an error any part of them may have been written.
    fn write_all_at(&mut self, bytes: &[u8], position: u64) -> io::Result<()>;
    /// Makes the content durable. After an error nothing written since the last success can be
    /// trusted: the kernel drops the dirty pages and a second call would succeed without them.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system itself.
#[derive(Debug)]
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn write_all_at(&mut self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, position)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
