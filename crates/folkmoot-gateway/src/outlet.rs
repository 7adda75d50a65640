//! The socket of an outbox whose frames go out from wherever somebody finds something to write:
//! at once, as far as the socket takes them. Nothing here waits.
//!
//! Used under the outbox's lock, so frames never mix. A frame that was begun is finished before
//! anything else, whatever ends the connection.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use folkmoot_protocol::Format;
use tokio::net::tcp::OwnedWriteHalf;

use crate::frame::{first_byte, header, joined, put_together};

/// Messages that are copied together into one frame and one system call, in bytes. What is longer
/// is not worth a copy, nor the time of somebody who has others to see to.
const SHORT_BYTES_MAX: usize = 16 * 1024;

/// Whether a socket has taken everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    /// The rest waits until there is room in it.
    Part,
}

#[derive(Debug)]
pub(crate) struct Outlet {
    socket: Arc<OwnedWriteHalf>,
    format: Format,
    /// What is left of frames, the first of which may be begun.
    rest: VecDeque<Bytes>,
    /// Messages were lost with the socket, so that nothing may follow them.
    is_broken: bool,
}

impl Outlet {
    pub(crate) fn new(socket: Arc<OwnedWriteHalf>, format: Format) -> Self {
        Self { socket, format, rest: VecDeque::new(), is_broken: false }
    }

    /// Whether messages are so few that anybody may write them on the way.
    pub(crate) fn are_short(messages: &[Bytes]) -> bool {
        messages.iter().map(|message| message.len() + 1).sum::<usize>() <= SHORT_BYTES_MAX
    }

    /// Bytes of frames that are under way.
    pub(crate) fn len(&self) -> usize {
        self.rest.iter().map(Bytes::len).sum()
    }

    /// Adds a whole frame, behind those that are under way.
    pub(crate) fn add(&mut self, frame: Bytes) {
        self.rest.push_back(frame);
    }

    /// Writes messages, after what is left of those before. `room` is where short ones are put
    /// together.
    pub(crate) fn write(&mut self, messages: Vec<Bytes>, room: &mut Vec<u8>) -> io::Result<Taken> {
        if !self.rest.is_empty() || !Self::are_short(&messages) {
            self.append(messages);
            return self.finish();
        }
        let frame = put_together(&messages, self.format, room);
        let written = match self.socket.try_write(frame) {
            Ok(written) => written,
            Err(error) if is_full(&error) => 0,
            Err(error) => {
                self.is_broken = true;
                return Err(error);
            }
        };
        if written == frame.len() {
            return Ok(Taken::All);
        }
        self.add(Bytes::copy_from_slice(&frame[written..]));
        Ok(Taken::Part)
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> io::Result<Taken> {
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        while let Some(front) = self.rest.front_mut() {
            match self.socket.try_write(front) {
                Ok(written) => front.advance(written),
                Err(error) if is_full(&error) => return Ok(Taken::Part),
                Err(error) => return Err(error),
            }
            if front.is_empty() {
                self.rest.pop_front();
            }
        }
        // A quiet connection keeps no room for frames.
        self.rest = VecDeque::new();
        Ok(Taken::All)
    }

    fn append(&mut self, messages: Vec<Bytes>) {
        for message in joined(messages, self.format) {
            let (header, len) = header(first_byte(self.format), message.len());
            self.rest.push_back(Bytes::copy_from_slice(&header[..len]));
            self.rest.push_back(message);
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
