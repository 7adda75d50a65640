//! WebSocket frames of a server: their headers, and messages joined to as few of them as the format
//! allows. Nothing is copied that goes alone.

use bytes::Bytes;
use folkmoot_protocol::Format;

/// Joined messages grow to about this size: larger ones gain nothing, and hold the browser up.
const FRAME_BYTES: usize = 64 * 1024;

/// First bytes of frames that are whole messages (RFC 6455, section 5.2).
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
const PONG: u8 = 0x8A;
/// The longest header that a server writes: the first byte, 127 and eight bytes of length.
pub(crate) const HEADER_BYTES_MAX: usize = 10;

/// How a message of a format begins.
pub(crate) fn first_byte(format: Format) -> u8 {
    match format {
        Format::Json => TEXT,
        Format::Protobuf => BINARY,
    }
}

/// The answer to a ping.
pub(crate) fn pong_frame(payload: &[u8]) -> Bytes {
    let (header, len) = header(PONG, payload.len());
    [&header[..len], payload].concat().into()
}

/// The answer to a close frame.
pub(crate) fn closing_frame(code: Option<u16>) -> Bytes {
    match code {
        Some(code) => close_frame(code, ""),
        None => Bytes::from_static(&[CLOSE, 0]),
    }
}

/// A close frame.
pub(crate) fn close_frame(code: u16, reason: &str) -> Bytes {
    let (header, len) = header(CLOSE, 2 + reason.len());
    let mut frame = header[..len].to_vec();
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(reason.as_bytes());
    frame.into()
}

/// Puts short messages together to one frame in `room`, and gives the frame.
pub(crate) fn put_together<'a>(
    messages: &[Bytes],
    format: Format,
    room: &'a mut Vec<u8>,
) -> &'a [u8] {
    // The header comes last, when the length is known, and ends where the messages begin.
    room.clear();
    room.resize(HEADER_BYTES_MAX, 0);
    let mut messages = messages.iter();
    if let Some(first) = messages.next() {
        room.extend_from_slice(first);
    }
    for message in messages {
        format.append(message, room);
    }
    let (header, len) = header(first_byte(format), room.len() - HEADER_BYTES_MAX);
    let start = HEADER_BYTES_MAX - len;
    room[start..HEADER_BYTES_MAX].copy_from_slice(&header[..len]);
    &room[start..]
}

/// The header of a frame from a server, which is not masked, and its length.
pub(crate) fn header(first: u8, payload: usize) -> ([u8; HEADER_BYTES_MAX], usize) {
    let mut header = [first, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let len = match (u8::try_from(payload), u16::try_from(payload)) {
        (Ok(short @ ..=125), _) => {
            header[1] = short;
            2
        }
        (_, Ok(middle)) => {
            header[1] = 126;
            header[2..4].copy_from_slice(&middle.to_be_bytes());
            4
        }
        _ => {
            header[1] = 127;
            header[2..].copy_from_slice(&(payload as u64).to_be_bytes());
            HEADER_BYTES_MAX
        }
    };
    (header, len)
}

/// Joins encoded messages into WebSocket messages of about [`FRAME_BYTES`]; one alone is not
/// copied.
pub(crate) fn joined(messages: Vec<Bytes>, format: Format) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let mut group: Vec<Bytes> = Vec::new();
    let mut group_len = 0;
    for message in messages {
        if group_len + message.len() > FRAME_BYTES && !group.is_empty() {
            frames.push(join(std::mem::take(&mut group), group_len, format));
            group_len = 0;
        }
        group_len += message.len() + 1;
        group.push(message);
    }
    if !group.is_empty() {
        frames.push(join(group, group_len, format));
    }
    frames
}

fn join(mut group: Vec<Bytes>, len: usize, format: Format) -> Bytes {
    if group.len() == 1 {
        return group.swap_remove(0);
    }
    let mut frame = Vec::with_capacity(len);
    for message in &group {
        format.append(message, &mut frame);
    }
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(count: usize, len: usize) -> Vec<Bytes> {
        vec![Bytes::from(vec![b'7'; len]); count]
    }

    #[test]
    fn a_frame_that_is_put_together_is_as_its_header_says() {
        let mut room = Vec::new();
        for len in [1, 125, 126, 4_000] {
            let (header, header_len) = header(TEXT, 2 * len + 1);
            let frame = put_together(&many(2, len), Format::Json, &mut room);
            assert_eq!(frame[..header_len], header[..header_len]);
            let (first, second) = frame[header_len..].split_at(len);
            assert_eq!((first, second[0]), (&second[1..], b'\n'));
        }
        let messages = [Bytes::from_static(b"\x011"), Bytes::from_static(b"\x012")];
        let frame = put_together(&messages, Format::Protobuf, &mut room);
        assert_eq!(frame, b"\x82\x04\x011\x012");
    }

    #[test]
    fn small_messages_share_a_frame_and_keep_their_order() {
        let messages = vec![Bytes::from_static(b"1"), Bytes::from_static(b"2")];
        assert_eq!(joined(messages, Format::Json), [Bytes::from_static(b"1\n2")]);
    }

    #[test]
    fn a_lone_message_is_not_copied() {
        let message = Bytes::from(vec![b'1'; 100]);
        let frames = joined(vec![message.clone()], Format::Json);
        assert_eq!(frames[0].as_ptr(), message.as_ptr());
    }

    #[test]
    fn frames_stay_near_their_size_and_lose_nothing() {
        let frames = joined(many(100, 10_000), Format::Protobuf);
        assert!(frames.iter().all(|frame| frame.len() <= FRAME_BYTES));
        assert_eq!(frames.iter().map(Bytes::len).sum::<usize>(), 1_000_000);
        assert_eq!(joined(many(2, 100_000), Format::Protobuf).len(), 2);
    }
}
