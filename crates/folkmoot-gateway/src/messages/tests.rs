//! What a client of somebody else's writes is read as it was meant, however it is cut, and what no
//! client may write is refused.

use tokio::io::AsyncReadExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Role, frame::coding::CloseCode};

use futures_util::SinkExt;

use super::*;

const BYTES_MAX: usize = 100_000;

/// What the library that others' clients use writes.
async fn written(messages: Vec<Message>) -> Vec<u8> {
    let (client, mut server) = tokio::io::duplex(1 << 20);
    let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
    for message in messages {
        client.send(message).await.unwrap();
    }
    drop(client);
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// All that is heard of bytes that come in pieces of a length.
fn heard(bytes: &[u8], piece: usize) -> Result<Vec<Heard>, Violation> {
    let (mut messages, mut all) = (Messages::new(BYTES_MAX, Vec::new()), Vec::new());
    for came in bytes.chunks(piece) {
        let mut next = messages.take(came)?;
        while let Some(heard) = next {
            all.push(heard);
            next = messages.next()?;
        }
    }
    assert_eq!((messages.begun.capacity(), messages.read), (0, 0), "nothing is kept");
    Ok(all)
}

fn text(text: &str) -> Heard {
    Heard::Text(Bytes::copy_from_slice(text.as_bytes()))
}

fn part(kind: Data, text: &'static str, is_final: bool) -> Message {
    Message::Frame(Frame::message(text, OpCode::Data(kind), is_final))
}

#[tokio::test]
async fn messages_are_read_as_they_were_written_wherever_they_are_cut() {
    let long = "ä7".repeat(30_000);
    let why = CloseFrame { code: CloseCode::Normal, reason: "bye".into() };
    let bytes = written(vec![
        Message::text(""),
        Message::text("7"),
        Message::binary(vec![7; 126]),
        Message::text(long.clone()),
        Message::Ping(Bytes::from_static(b"here?")),
        Message::Pong(Bytes::new()),
        part(Data::Text, "one, ", false),
        Message::Ping(Bytes::new()),
        part(Data::Continue, "two, ", false),
        part(Data::Continue, "three", true),
        Message::Close(Some(why)),
    ])
    .await;
    for piece in [1, 2, 3, 7, 1_000, 65_535, 1 << 20] {
        let wanted = vec![
            text(""),
            text("7"),
            Heard::Binary(vec![7; 126].into()),
            text(&long),
            Heard::Ping(Bytes::from_static(b"here?")),
            Heard::Pong,
            Heard::Ping(Bytes::new()),
            text("one, two, three"),
            Heard::Close(Some(1000)),
        ];
        assert!(heard(&bytes, piece) == Ok(wanted), "pieces of {piece}");
    }
}

/// A frame as its parts say, with a mask that changes nothing.
fn frame(first: u8, second: u8, len: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[first, second | MASKED], len, &[0; 4], payload].concat()
}

#[test]
fn what_no_client_may_send_is_refused() {
    let malformed = [
        ("without a mask", vec![FINAL | TEXT, 1, b'7']),
        ("a bit of an extension", frame(FINAL | 0x40 | TEXT, 0, &[], &[])),
        ("a kind that there is not", frame(FINAL | 0x3, 0, &[], &[])),
        ("the middle of no message", frame(FINAL | CONTINUATION, 0, &[], &[])),
        ("a ping in parts", frame(PING, 0, &[], &[])),
        ("a long ping", frame(FINAL | PING, 126, &[0, 126], &[0; 126])),
        ("no UTF-8", frame(FINAL | TEXT, 1, &[], &[0xFF])),
        ("half a code", frame(FINAL | CLOSE, 1, &[], &[3])),
        ("a code that nobody sends", frame(FINAL | CLOSE, 2, &[], &[3, 237])),
        ("a reason that is no UTF-8", frame(FINAL | CLOSE, 3, &[], &[3, 232, 0xFF])),
    ];
    for (what, bytes) in malformed {
        assert_eq!(heard(&bytes, 1_000), Err(Violation::Malformed), "{what}");
    }
    let begun = frame(TEXT, 1, &[], b"7");
    let again = [&*begun, &*begun].concat();
    assert_eq!(heard(&again, 1_000), Err(Violation::Malformed), "one message within another");
}

#[test]
fn what_is_too_long_is_refused_before_it_has_come() {
    let over = u64::try_from(BYTES_MAX + 1).unwrap();
    for len in [over, u64::MAX] {
        let bytes = frame(FINAL | BINARY, 127, &len.to_be_bytes(), &[]);
        assert_eq!(heard(&bytes, 1_000), Err(Violation::TooLong));
    }
    let part = |first| {
        let len = u64::try_from(BYTES_MAX / 2 + 1).unwrap();
        frame(first, 127, &len.to_be_bytes(), &vec![0; BYTES_MAX / 2 + 1])
    };
    let both = [part(BINARY), part(FINAL | CONTINUATION)].concat();
    assert_eq!(heard(&both, 10_000), Err(Violation::TooLong), "a message of many frames");
}

#[test]
fn what_is_in_the_mask_is_taken_off() {
    for len in 0..=9 {
        let plain = vec![b'7'; len];
        let mask = [1, 2, 3, 4];
        let payload: Vec<u8> =
            plain.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        let first = [FINAL | BINARY, MASKED | u8::try_from(len).unwrap()];
        let bytes = [&first[..], &mask, &payload].concat();
        assert_eq!(heard(&bytes, 1_000), Ok(vec![Heard::Binary(plain.into())]));
    }
}
