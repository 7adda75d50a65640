//! Reads a segment from front to back in memory of a bounded size: whoever keeps a server's memory
//! small would otherwise pay for a whole segment at each start.

use std::io::{self, ErrorKind, Read};

use super::segment::FRAME_LEN_MAX;

/// Bytes in memory at once: a frame of the largest size, and as much to go on with.
pub(super) const PIECE_LEN: usize = 2 * FRAME_LEN_MAX;

/// What was read and not yet passed over.
pub(super) struct Pieces<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R: Read> Pieces<R> {
    pub(super) fn new(source: R) -> Self {
        // Zeros of the system's: what a short segment does not need is never touched.
        Self { source, buffer: vec![0; PIECE_LEN], start: 0, end: 0 }
    }

    /// What comes next: at least so many bytes, a frame at most, unless there are no more.
    pub(super) fn ahead(&mut self, len: usize) -> io::Result<&[u8]> {
        debug_assert!(len <= FRAME_LEN_MAX);
        if self.start + len > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        while self.end - self.start < len {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Passes over bytes that were seen.
    pub(super) fn pass(&mut self, len: usize) {
        self.start += len;
        debug_assert!(self.start <= self.end);
    }
}
