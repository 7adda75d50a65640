//! What was read from a connection, cut into frames.
//!
//! One read may bring many frames, or a piece of one. Room grows with what has come, not with what
//! the length before a frame promises.

use std::ops::Range;

use crate::protocol::Broken;

/// Room for one read.
const READ_LEN: usize = 64 << 10;

/// Bytes that have come and were not looked at.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    len_max: usize,
}

impl Inbox {
    pub(super) fn new(len_max: usize) -> Self {
        Self { bytes: Vec::with_capacity(READ_LEN), start: 0, len_max }
    }

    /// The body of the next frame that is there as a whole.
    ///
    /// # Errors
    /// It is longer than allowed.
    pub(super) fn frame(&mut self) -> Result<Option<&[u8]>, Broken> {
        Ok(self.frame_at()?.map(|at| &self.bytes[at]))
    }

    /// As `frame`: where it is, for `at`, until there is `room` for the next read.
    pub(super) fn frame_at(&mut self) -> Result<Option<Range<usize>>, Broken> {
        let Some((len, rest)) = self.bytes[self.start..].split_first_chunk::<4>() else {
            return Ok(None);
        };
        let len = u32::from_be_bytes(*len) as usize;
        if len > self.len_max {
            return Err(Broken::TooLong(len));
        }
        if rest.len() < len {
            return Ok(None);
        }
        let body = self.start + 4;
        self.start = body + len;
        Ok(Some(body..self.start))
    }

    pub(super) fn at(&self, at: Range<usize>) -> &[u8] {
        &self.bytes[at]
    }

    /// Where the next read appends.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.reserve(READ_LEN);
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Broken, Inbox};

    #[test]
    fn frames_are_cut_wherever_reads_end() {
        let bytes = [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        for cut in 0..bytes.len() {
            let (mut inbox, mut frames) = (Inbox::new(2), Vec::new());
            for piece in [&bytes[..cut], &bytes[cut..]] {
                inbox.room().extend(piece);
                while let Some(frame) = inbox.frame().expect("none is too long") {
                    frames.push(frame.to_vec());
                }
            }
            assert_eq!(frames, [vec![7, 8], vec![], vec![9]], "cut at {cut}");
        }
        let mut inbox = Inbox::new(2);
        inbox.room().extend([0, 0, 0, 3]);
        assert!(matches!(inbox.frame(), Err(Broken::TooLong(3))), "before its body has come");
    }
}
