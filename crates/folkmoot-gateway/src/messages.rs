//! WebSocket messages of a client, out of the bytes of its socket (RFC 6455, section 5). Pure: bytes
//! go in, and what they say comes out.
//!
//! A client that says nothing costs no buffer: bytes stay here only while a frame or a message has
//! not come whole.

use bytes::Bytes;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// The last frame of a message.
const FINAL: u8 = 0x80;
/// Extensions may use these bits, of which the handshake agrees on none.
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
/// Of a ping, a pong and a close frame.
const CONTROL_BYTES_MAX: usize = 125;

/// What a client has sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Text(Bytes),
    Binary(Bytes),
    /// To be answered by a pong of the same bytes.
    Ping(Bytes),
    Pong,
    /// To be answered by a close frame of the same code.
    Close(Option<u16>),
}

/// Why nothing more can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A message is longer than any may be.
    TooLong,
    /// These are no frames of a client, or a text is no UTF-8.
    Malformed,
}

/// Reads messages of at most `bytes_max`.
#[derive(Debug)]
pub(crate) struct Messages {
    bytes_max: usize,
    /// What has come and is not read yet, from `read` on.
    begun: Vec<u8>,
    read: usize,
    /// The message of which some frames have come.
    message: Option<Box<Part>>,
}

#[derive(Debug)]
struct Part {
    kind: u8,
    payload: Vec<u8>,
}

/// A frame with its payload still masked.
#[derive(Debug)]
struct Frame<'a> {
    is_final: bool,
    kind: u8,
    mask: [u8; 4],
    payload: &'a [u8],
    /// Of all of it.
    len: usize,
}

impl Messages {
    /// After what has come already.
    pub(crate) fn new(bytes_max: usize, begun: Vec<u8>) -> Self {
        Self { bytes_max, begun, read: 0, message: None }
    }

    /// What the client says next in the bytes that have come; `None`: they end within a frame.
    pub(crate) fn next(&mut self) -> Result<Option<Heard>, Violation> {
        let bytes = std::mem::take(&mut self.begun);
        let mut read = self.read;
        let heard = self.hear(&bytes, &mut read);
        if read < bytes.len() {
            (self.begun, self.read) = (bytes, read);
        } else {
            self.read = 0;
        }
        heard
    }

    /// The same with bytes that come after those.
    pub(crate) fn take(&mut self, came: &[u8]) -> Result<Option<Heard>, Violation> {
        if self.begun.is_empty() {
            let mut read = 0;
            let heard = self.hear(came, &mut read);
            self.begun = came[read..].to_vec();
            return heard;
        }
        self.begun.drain(..self.read);
        self.read = 0;
        self.begun.extend_from_slice(came);
        self.next()
    }

    /// Goes through frames until one of them says something.
    fn hear(&mut self, bytes: &[u8], read: &mut usize) -> Result<Option<Heard>, Violation> {
        while let Some(frame) = first(&bytes[*read..], self.bytes_max)? {
            *read += frame.len;
            if let Some(heard) = self.heard_of(&frame)? {
                return Ok(Some(heard));
            }
        }
        Ok(None)
    }

    /// What a frame says, unless there is more to come of its message.
    fn heard_of(&mut self, frame: &Frame<'_>) -> Result<Option<Heard>, Violation> {
        match frame.kind {
            PING => return Ok(Some(Heard::Ping(frame.unmasked().into()))),
            PONG => return Ok(Some(Heard::Pong)),
            CLOSE => return close(&frame.unmasked()).map(Some),
            _ => {}
        }
        let mut part = match (frame.kind, self.message.take()) {
            (CONTINUATION, Some(part)) => part,
            (TEXT | BINARY, None) => Box::new(Part { kind: frame.kind, payload: Vec::new() }),
            _ => return Err(Violation::Malformed),
        };
        if part.payload.len() + frame.payload.len() > self.bytes_max {
            return Err(Violation::TooLong);
        }
        match part.payload.is_empty() {
            true => part.payload = frame.unmasked(),
            false => part.payload.extend(frame.unmasked()),
        }
        if !frame.is_final {
            self.message = Some(part);
            return Ok(None);
        }
        let Part { kind, payload } = *part;
        Ok(Some(match kind {
            BINARY => Heard::Binary(payload.into()),
            _ if std::str::from_utf8(&payload).is_ok() => Heard::Text(payload.into()),
            _ => return Err(Violation::Malformed),
        }))
    }
}

impl Frame<'_> {
    fn unmasked(&self) -> Vec<u8> {
        let mut payload = self.payload.to_vec();
        let mut words = payload.chunks_exact_mut(4);
        for word in &mut words {
            word.iter_mut().zip(self.mask).for_each(|(byte, mask)| *byte ^= mask);
        }
        let rest = words.into_remainder();
        rest.iter_mut().zip(self.mask).for_each(|(byte, mask)| *byte ^= mask);
        payload
    }
}

/// The frame at the beginning; `None`: it has not come whole.
fn first(bytes: &[u8], bytes_max: usize) -> Result<Option<Frame<'_>>, Violation> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let (is_final, kind) = (first & FINAL != 0, first & 0xF);
    let is_known = matches!(kind, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG);
    if first & RESERVED != 0 || second & MASKED == 0 || !is_known {
        return Err(Violation::Malformed);
    }
    let (payload_len, rest) = match (second & !MASKED, rest) {
        (126, [a, b, rest @ ..]) => (u64::from(u16::from_be_bytes([*a, *b])), rest),
        (127, [a, b, c, d, e, f, g, h, rest @ ..]) => {
            (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), rest)
        }
        (126 | 127, _) => return Ok(None),
        (len, rest) => (u64::from(len), rest),
    };
    let payload_len = usize::try_from(payload_len).map_err(|_| Violation::TooLong)?;
    if kind >= CLOSE && (!is_final || payload_len > CONTROL_BYTES_MAX) {
        return Err(Violation::Malformed);
    }
    // Before all of it has come: nobody is to fill memory with what is refused.
    if payload_len > bytes_max {
        return Err(Violation::TooLong);
    }
    let Some((mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
    let Some(payload) = rest.get(..payload_len) else { return Ok(None) };
    let len = bytes.len() - rest.len() + payload_len;
    Ok(Some(Frame { is_final, kind, mask: *mask, payload, len }))
}

fn close(payload: &[u8]) -> Result<Heard, Violation> {
    match payload {
        [] => Ok(Heard::Close(None)),
        [_] => Err(Violation::Malformed),
        [a, b, reason @ ..] => {
            let code = u16::from_be_bytes([*a, *b]);
            // The codes that a client may send (section 7.4); the others stand for ends without one.
            let is_code = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
            if !is_code || std::str::from_utf8(reason).is_err() {
                return Err(Violation::Malformed);
            }
            Ok(Heard::Close(Some(code)))
        }
    }
}

#[cfg(test)]
mod tests;
