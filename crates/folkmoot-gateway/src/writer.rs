//! The write half of a connection whose socket nobody else writes to, because it is encrypted: takes
//! what waits in the outbox and writes it in as few WebSocket frames and system calls as the format
//! allows. Nothing is copied that goes alone, and nothing is kept once it is written, so that a
//! quiet connection costs no buffer.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes};
use folkmoot_protocol::{DisconnectCode, Format};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::frame::{CLOSE, close_frame, first_byte, header, joined};
use crate::outbox::{Close, Next, Outbox, Outgoing};

/// How long a client that cannot keep up may take to read what is under way, so that it learns
/// why it is disconnected.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes until the outbox closes or the socket fails; returns the reason.
pub(crate) async fn write<W: AsyncWrite + Unpin>(
    mut to: W,
    outbox: &Outbox,
    format: Format,
) -> u16 {
    loop {
        let written = match outbox.outgoing().await {
            Outgoing::Answer(answer) if answer.first() == Some(&CLOSE) => {
                return end(&mut to, outbox, answer).await;
            }
            Outgoing::Answer(answer) => to.write_all(&answer).await,
            Outgoing::Queued(Next::Messages(messages)) => {
                match write_all(&mut to, messages, outbox, format).await {
                    Ok(None) => Ok(()),
                    Ok(Some(why)) => return why.code,
                    Err(error) => Err(error),
                }
            }
            Outgoing::Queued(Next::Close(why)) => {
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, close(&mut to, &why)).await;
                return why.code;
            }
        };
        if written.is_err() {
            outbox.close(DisconnectCode::WriteError);
            return Close::from(DisconnectCode::WriteError).code;
        }
    }
}

/// Writes messages; gives the reason if the connection was closed meanwhile as too slow.
async fn write_all<W: AsyncWrite + Unpin>(
    to: &mut W,
    messages: Vec<Bytes>,
    outbox: &Outbox,
    format: Format,
) -> io::Result<Option<Close>> {
    for message in joined(messages, format) {
        let (header, len) = header(first_byte(format), message.len());
        let mut frame = header[..len].chain(message);
        tokio::select! {
            biased;
            written = to.write_all_buf(&mut frame) => written?,
            // The socket is full: a close frame can only follow a whole one.
            why = outbox.overflowed() => {
                let end = async {
                    to.write_all_buf(&mut frame).await?;
                    close(to, &why).await
                };
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, end).await;
                return Ok(Some(why));
            }
        }
    }
    to.flush().await?;
    Ok(None)
}

/// The client has closed: nothing may follow the answer to that.
async fn end<W: AsyncWrite + Unpin>(to: &mut W, outbox: &Outbox, answer: Bytes) -> u16 {
    let written = async {
        to.write_all(&answer).await?;
        to.flush().await
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, written).await;
    loop {
        if let Next::Close(why) = outbox.next().await {
            return why.code;
        }
    }
}

async fn close<W: AsyncWrite + Unpin>(to: &mut W, why: &Close) -> io::Result<()> {
    to.write_all(&close_frame(why.code, &why.reason)).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, future};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// What a client of the library that browsers' tests use makes of it.
    async fn read_back(bytes: Vec<u8>) -> Vec<Message> {
        let (client, mut server) = tokio::io::duplex(1 << 20);
        server.write_all(&bytes).await.unwrap();
        drop(server);
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        client
            .take_while(|message| future::ready(message.is_ok()))
            .map(Result::unwrap)
            .collect()
            .await
    }

    #[tokio::test]
    async fn frames_of_every_length_are_read_back_as_they_were_written() {
        for len in [0, 1, 125, 126, 127, 65_535, 65_536, 300_000] {
            let outbox = Outbox::new(1 << 20);
            outbox.push(Bytes::from(vec![b'7'; len]));
            outbox.close(DisconnectCode::Shutdown);
            let mut written = Vec::new();
            let code = write(&mut written, &outbox, Format::Json).await;
            let messages = read_back(written).await;
            assert_eq!(messages[0], Message::text("7".repeat(len)));
            let Message::Close(Some(frame)) = &messages[1] else { panic!("{:?}", messages[1]) };
            assert_eq!((u16::from(frame.code), code), (3001, 3001));
        }
    }

    #[tokio::test]
    async fn nothing_follows_the_answer_to_a_close() {
        let (outbox, mut written) = (Outbox::new(1 << 20), Vec::new());
        outbox.push(Bytes::from_static(b"too late"));
        outbox.close(DisconnectCode::ConnectionClosed);
        outbox.give(Bytes::from_static(&[CLOSE, 2, 3, 232]));
        write(&mut written, &outbox, Format::Json).await;
        assert_eq!(written, [CLOSE, 2, 3, 232]);
    }

    #[tokio::test]
    async fn a_slow_client_gets_its_frame_whole_and_then_the_reason() {
        let (client, server) = tokio::io::duplex(1_000);
        let outbox = std::sync::Arc::new(Outbox::new(5_000));
        outbox.push(Bytes::from(vec![b'7'; 4_000]));
        let writing = tokio::spawn({
            let outbox = outbox.clone();
            async move { write(server, &outbox, Format::Json).await }
        });
        while outbox.takes() == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            outbox.push(Bytes::from(vec![b'8'; 4_000]));
        }
        let mut client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        assert_eq!(client.next().await.unwrap().unwrap(), Message::text("7".repeat(4_000)));
        let Message::Close(Some(frame)) = client.next().await.unwrap().unwrap() else { panic!() };
        assert_eq!(u16::from(frame.code), 3008);
        assert_eq!(writing.await.unwrap(), 3008);
    }
}
