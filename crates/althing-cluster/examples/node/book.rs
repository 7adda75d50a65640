//! What an account keeps in a file, under a fence: who was replaced writes nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// Lines that an account has taken, in a file that all nodes see, and beside it the fence: the
/// epoch of whoever opened it last.
pub(crate) struct Book {
    file: File,
    fence: File,
    pub(crate) epoch: u64,
}

impl Book {
    /// Opens it in the name of an epoch, so that older ones write no more; returns the sum so far, and of how
    /// many numbers.
    pub(crate) fn open(path: &Path, epoch: u64, node: &str) -> io::Result<(Self, u64, u64)> {
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let fence = path.with_extension("fence");
        let fence =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(fence)?;
        let mut book = Self { file, fence, epoch };
        book.write(&format!("open {epoch} {node}"))?;
        let mut text = String::new();
        book.file.rewind()?;
        book.file.read_to_string(&mut text)?;
        let number = |line: &str| line.split(' ').nth(3).and_then(|word| word.parse::<u64>().ok());
        let added = text.lines().filter(|line| line.starts_with("add ")).filter_map(number);
        let (sum, count) = added.fold((0, 0), |(sum, count), n| (sum + n, count + 1));
        Ok((book, sum, count))
    }

    /// Adds a line unless somebody with a later epoch has opened the book.
    pub(crate) fn write(&mut self, line: &str) -> io::Result<()> {
        self.fence.lock()?;
        let written = self.write_locked(line);
        self.fence.unlock()?;
        written
    }

    fn write_locked(&mut self, line: &str) -> io::Result<()> {
        let mut latest = String::new();
        self.fence.rewind()?;
        self.fence.read_to_string(&mut latest)?;
        let latest = latest.trim().parse().unwrap_or(0);
        if latest > self.epoch {
            return Err(io::Error::other("a later epoch has opened the book"));
        }
        if latest < self.epoch {
            self.fence.rewind()?;
            self.fence.write_all(format!("{:020}", self.epoch).as_bytes())?;
        }
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}
