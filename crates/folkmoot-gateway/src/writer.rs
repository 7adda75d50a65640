//! The write half of one connection: takes what waits in the outbox and writes it in as few
//! WebSocket messages and system calls as the format allows.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::stream::SplitSink;
use futures_util::{Sink, SinkExt};

use crate::outbox::{Close, Next, Outbox};

/// Joined messages grow to about this size: larger ones gain nothing, and hold the browser up.
const FRAME_BYTES: usize = 64 * 1024;
/// How long a client that cannot keep up may take to read what is under way, so that it learns
/// why it is disconnected.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes until the outbox closes or the socket fails; returns the reason.
pub(crate) async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    outbox: &Outbox,
    format: Format,
) -> u16 {
    loop {
        match outbox.next().await {
            Next::Messages(messages) => {
                tokio::select! {
                    biased;
                    written = send_all(&mut sink, messages, format) => {
                        if written.is_err() {
                            outbox.close(DisconnectCode::WriteError);
                            return Close::from(DisconnectCode::WriteError).code;
                        }
                    }
                    // The write above is stuck in a full socket; let it finish for a while, as
                    // the close frame can only follow it.
                    why = outbox.overflowed() => {
                        let _ = tokio::time::timeout(CLOSE_TIMEOUT, close(&mut sink, &why)).await;
                        return why.code;
                    }
                }
            }
            Next::Close(why) => {
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, close(&mut sink, &why)).await;
                return why.code;
            }
        }
    }
}

async fn send_all<S>(sink: &mut S, messages: Vec<Bytes>, format: Format) -> Result<(), S::Error>
where
    S: Sink<Message> + Unpin,
{
    for message in joined(messages, format) {
        sink.feed(frame(message, format)).await?;
    }
    sink.flush().await
}

async fn close<S: Sink<Message> + Unpin>(sink: &mut S, why: &Close) -> Result<(), S::Error> {
    let frame = CloseFrame { code: why.code, reason: Utf8Bytes::from(why.reason.as_ref()) };
    let sent = sink.send(Message::Close(Some(frame))).await;
    // A client that closed first is owed the answer that the library has ready: without it, it
    // would see a connection that broke (1006).
    if sent.is_err() {
        return sink.flush().await;
    }
    sent
}

fn frame(message: Bytes, format: Format) -> Message {
    match format {
        Format::Json => {
            Message::Text(Utf8Bytes::try_from(message).expect("JSON we encoded is UTF-8"))
        }
        Format::Protobuf => Message::Binary(message),
    }
}

/// Joins encoded messages into WebSocket messages of about [`FRAME_BYTES`]; one alone is not
/// copied.
fn joined(messages: Vec<Bytes>, format: Format) -> Vec<Bytes> {
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
