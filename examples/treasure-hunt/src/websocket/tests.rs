//! Promises of the framing: what goes in comes out, and what breaks the protocol is named.

use proptest::prelude::*;
use tokio_tungstenite::tungstenite;

use super::*;

const LEN_MAX: usize = 70_000;

fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [7, 99, 0, 200];
    let mut frame = vec![first, MASKED | u8::try_from(payload.len()).unwrap()];
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Everything in `bytes`, as (kind, payload).
fn read(decoder: &mut Decoder, mut bytes: Vec<u8>) -> Result<Vec<Option<Vec<u8>>>, FrameError> {
    let (mut at, mut read) = (0, Vec::new());
    while let Some((message, used)) = decoder.take(&mut bytes[at..])? {
        read.push(match message {
            Message::Binary(bytes) => Some(bytes.into_owned()),
            _ => None,
        });
        at += used;
    }
    Ok(read)
}

proptest! {
    #[test]
    fn what_is_written_is_read_whichever_its_length(len in prop_oneof![0_usize..300, 65_000_usize..66_000]) {
        let payload: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
        for from in [From::Client, From::Server] {
            let written = Written::whole(Kind::Binary, from, &payload);
            let mut decoder = Decoder::new(from, LEN_MAX);
            prop_assert_eq!(read(&mut decoder, written.rest().to_vec()), Ok(vec![Some(payload.clone())]));
        }
    }

    #[test]
    fn another_implementation_reads_what_is_written(payload in prop::collection::vec(any::<u8>(), 0..400)) {
        let written = Written::whole(Kind::Binary, From::Server, &payload);
        let bytes = std::io::Cursor::new(written.rest().to_vec());
        let role = tungstenite::protocol::Role::Client;
        let mut other = tungstenite::WebSocket::from_raw_socket(bytes, role, None);
        prop_assert_eq!(other.read().unwrap().into_data().to_vec(), payload);
    }

    #[test]
    fn arbitrary_bytes_end_in_an_error_or_ask_for_more(bytes: Vec<u8>, len_max in 0_usize..64) {
        let _ = read(&mut Decoder::new(From::Client, len_max), bytes);
    }
}

#[test]
fn an_unfinished_frame_waits_for_its_end() {
    let frame = masked(FIN | 0x2, b"hello");
    let mut decoder = Decoder::new(From::Client, LEN_MAX);
    for len in 0..frame.len() {
        assert_eq!(decoder.take(&mut frame[..len].to_vec()), Ok(None));
    }
    assert_eq!(read(&mut decoder, frame), Ok(vec![Some(b"hello".to_vec())]));
}

#[test]
fn parts_become_one_message_and_a_ping_may_come_between() {
    let mut decoder = Decoder::new(From::Client, 8);
    let frames = [masked(0x2, b"one "), masked(FIN | 0x9, b"?"), masked(FIN, b"two")];
    assert_eq!(
        read(&mut decoder, frames.concat()),
        Ok(vec![None, None, Some(b"one two".to_vec())])
    );
    let too_long = [masked(0x2, b"12345"), masked(FIN, b"6789")].concat();
    assert_eq!(read(&mut decoder, too_long), Err(FrameError::TooLong(8)));
}

#[test]
fn an_oversized_message_is_refused_by_its_header() {
    let mut header = vec![FIN | 0x2, MASKED | LEN_64];
    header.extend(u64::MAX.to_be_bytes());
    let mut decoder = Decoder::new(From::Client, 100);
    assert_eq!(decoder.take(&mut header), Err(FrameError::TooLong(100)));
}

#[test]
fn what_breaks_the_protocol_is_named() {
    let broken = [
        (vec![FIN | 0x2, 0], "mask"),
        (masked(FIN | 0x40 | 0x2, b""), "reserved"),
        (masked(FIN | 0x3, b""), "unknown"),
        (masked(0x9, b""), "control"),
        (masked(FIN, b""), "without a beginning"),
        ([masked(0x2, b""), masked(0x2, b"")].concat(), "inside a message"),
    ];
    for (bytes, word) in broken {
        let error = read(&mut Decoder::new(From::Client, 100), bytes).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}
