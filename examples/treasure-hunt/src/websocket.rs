//! WebSocket frames (RFC 6455) as values: bytes in, messages out. No socket, no buffer of its own,
//! no extension.
//!
//! A library's connection keeps buffers of kilobytes; a world of players with a socket each cannot.
//! Here whoever owns the socket reads into scratch memory and keeps bytes only while a frame is
//! unfinished. Nothing the other side sends can panic.

use std::borrow::Cow;

/// Bytes of the longest header.
pub const HEADER_LEN_MAX: usize = 14;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const CONTROL: u8 = 0x8;
const CONTROL_LEN_MAX: u64 = 125;
const LEN_16: u8 = 126;
const LEN_64: u8 = 127;

/// Kinds of frames that are sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A whole binary message.
    Binary = 0x2,
    /// A whole text message.
    Text = 0x1,
    /// The end; begins with a code, or is empty.
    Close = 0x8,
    /// Asks for a pong.
    Ping = 0x9,
    /// Answers a ping.
    Pong = 0xa,
}

/// Whose frames are read or written: clients mask theirs, servers must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Masked.
    Client,
    /// Unmasked.
    Server,
}

/// What has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Bytes.
    Binary(Cow<'a, [u8]>),
    /// Text, unchecked: nobody here speaks it.
    Text,
    /// To be answered with a pong of the same bytes.
    Ping(&'a [u8]),
    /// The answer to a ping.
    Pong,
    /// The other side ends.
    Close,
    /// A part of a message whose end is still to come.
    Part,
}

/// What no peer may send; the connection is of no use after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Above the limit.
    #[error("a message has at most {0} bytes")]
    TooLong(usize),
    /// Against the protocol.
    #[error("the frame breaks the protocol: {0}")]
    Broken(&'static str),
}

/// Takes messages off what comes from one side.
#[derive(Debug)]
pub struct Decoder {
    from: From,
    len_max: usize,
    /// The beginning of a message that comes in parts, and whether it is text.
    begun: Option<Box<(bool, Vec<u8>)>>,
}

#[derive(Clone, Copy, Debug)]
struct Header {
    is_final: bool,
    code: u8,
    mask: Option<[u8; 4]>,
    header_len: usize,
    payload_len: usize,
}

impl Decoder {
    /// Reads what `from` sends; messages may have `len_max` bytes.
    pub fn new(from: From, len_max: usize) -> Self {
        Self { from, len_max, begun: None }
    }

    /// Takes the first frame off `input`, with the bytes it has; `None` if its end is still to
    /// come.
    ///
    /// # Errors
    /// `FrameError`; an oversized message is refused by its header, before it has come.
    pub fn take<'a>(
        &mut self,
        input: &'a mut [u8],
    ) -> Result<Option<(Message<'a>, usize)>, FrameError> {
        let Some(header) = self.header(input)? else { return Ok(None) };
        let end = header.header_len + header.payload_len;
        let Some(payload) = input.get_mut(header.header_len..end) else { return Ok(None) };
        if let Some(mask) = header.mask {
            unmask(payload, mask);
        }
        Ok(Some((self.message(&header, payload)?, end)))
    }

    fn header(&self, input: &[u8]) -> Result<Option<Header>, FrameError> {
        let [first, second, rest @ ..] = input else { return Ok(None) };
        let is_masked = second & MASKED != 0;
        if first & RESERVED != 0 {
            return Err(FrameError::Broken("a reserved bit is set"));
        }
        if is_masked != (self.from == From::Client) {
            return Err(FrameError::Broken("clients mask, servers do not"));
        }
        let (len_len, len) = match second & !MASKED {
            LEN_16 => (2, rest.first_chunk().map(|len| u64::from(u16::from_be_bytes(*len)))),
            LEN_64 => (8, rest.first_chunk().map(|len| u64::from_be_bytes(*len))),
            len => (0, Some(u64::from(len))),
        };
        let Some(len) = len else { return Ok(None) };
        let (is_final, code) = (first & FIN != 0, first & 0xf);
        if code & CONTROL != 0 && (!is_final || len > CONTROL_LEN_MAX) {
            return Err(FrameError::Broken("control frames are short and whole"));
        }
        let begun = self.begun.as_ref().map_or(0, |begun| begun.1.len());
        let payload_len = usize::try_from(len).unwrap_or(usize::MAX);
        if payload_len > self.len_max.saturating_sub(begun) {
            return Err(FrameError::TooLong(self.len_max));
        }
        let mask = match is_masked {
            true => match rest.get(len_len..).and_then(|rest| rest.first_chunk()) {
                Some(mask) => Some(*mask),
                None => return Ok(None),
            },
            false => None,
        };
        let header_len = 2 + len_len + if is_masked { 4 } else { 0 };
        Ok(Some(Header { is_final, code, mask, header_len, payload_len }))
    }

    fn message<'a>(
        &mut self,
        header: &Header,
        payload: &'a [u8],
    ) -> Result<Message<'a>, FrameError> {
        match (header.code, self.begun.is_some()) {
            (0x0, true) => Ok(self.go_on(header.is_final, payload)),
            (0x0, false) => Err(FrameError::Broken("a part without a beginning")),
            (0x1 | 0x2, true) => Err(FrameError::Broken("a beginning inside a message")),
            (code @ (0x1 | 0x2), false) if !header.is_final => {
                self.begun = Some(Box::new((code == Kind::Text as u8, payload.to_vec())));
                Ok(Message::Part)
            }
            (0x1, false) => Ok(Message::Text),
            (0x2, false) => Ok(Message::Binary(Cow::Borrowed(payload))),
            (0x8, _) => Ok(Message::Close),
            (0x9, _) => Ok(Message::Ping(payload)),
            (0xa, _) => Ok(Message::Pong),
            _ => Err(FrameError::Broken("an unknown kind of frame")),
        }
    }

    fn go_on<'a>(&mut self, is_final: bool, payload: &[u8]) -> Message<'a> {
        let Some(begun) = &mut self.begun else { return Message::Part };
        begun.1.extend_from_slice(payload);
        if !is_final {
            return Message::Part;
        }
        match self.begun.take().map(|begun| *begun) {
            Some((false, bytes)) => Message::Binary(Cow::Owned(bytes)),
            _ => Message::Text,
        }
    }
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    if mask == [0; 4] {
        return;
    }
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

/// A frame being written: room for its header, then its payload, so that both go out with one
/// write.
#[derive(Debug)]
pub struct Written {
    bytes: Vec<u8>,
    start: usize,
}

impl Written {
    /// Room for a header; the payload is to be appended.
    pub fn reserve(bytes: &mut Vec<u8>) {
        bytes.extend([0; HEADER_LEN_MAX]);
    }

    /// Puts the header in front of what was appended after `reserve`. A client's mask is zero: it
    /// keeps proxies from mistaking what a script sends for a request of its own, and no script
    /// runs in our load generator.
    pub fn finish(mut bytes: Vec<u8>, kind: Kind, from: From) -> Self {
        let len = bytes.len() - HEADER_LEN_MAX;
        let masked = if from == From::Client { MASKED } else { 0 };
        let mut header = Vec::with_capacity(HEADER_LEN_MAX);
        header.push(FIN | kind as u8);
        match (u8::try_from(len), u16::try_from(len)) {
            (Ok(len), _) if len < LEN_16 => header.push(masked | len),
            (_, Ok(len)) => {
                header.push(masked | LEN_16);
                header.extend(len.to_be_bytes());
            }
            _ => {
                header.push(masked | LEN_64);
                header.extend((len as u64).to_be_bytes());
            }
        }
        if from == From::Client {
            header.extend([0; 4]);
        }
        let start = HEADER_LEN_MAX - header.len();
        bytes[start..HEADER_LEN_MAX].copy_from_slice(&header);
        Self { bytes, start }
    }

    /// A frame with that payload.
    pub fn whole(kind: Kind, from: From, payload: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_LEN_MAX + payload.len());
        Self::reserve(&mut bytes);
        bytes.extend_from_slice(payload);
        Self::finish(bytes, kind, from)
    }

    /// What is still to be sent.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Notes that the first bytes of `rest` are sent; returns whether that was all.
    pub fn sent(&mut self, len: usize) -> bool {
        self.start = (self.start + len).min(self.bytes.len());
        self.start == self.bytes.len()
    }
}

#[cfg(test)]
mod tests;
