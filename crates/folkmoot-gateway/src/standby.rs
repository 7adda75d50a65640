//! The write half of a connection whose socket others write to, too. It writes replies, pings and
//! whatever the socket did not take from others, and says why the connection ends.

use std::io;

use bytes::Bytes;
use folkmoot_protocol::DisconnectCode;
use tokio::net::tcp::OwnedWriteHalf;

use crate::frame::{CLOSE, close_frame};
use crate::outbox::{Close, Flushed, Outbox};
use crate::websocket::Answers;
use crate::writer::CLOSE_TIMEOUT;

/// Writes until the outbox closes or the socket fails; returns the reason.
pub(crate) async fn write(socket: &OwnedWriteHalf, outbox: &Outbox, answers: &Answers) -> u16 {
    let why = match serve(socket, outbox, answers).await {
        Ok(why) => why,
        Err(_) => {
            outbox.close(DisconnectCode::WriteError);
            Close::from(DisconnectCode::WriteError)
        }
    };
    outbox.hang_up();
    why.code
}

async fn serve(socket: &OwnedWriteHalf, outbox: &Outbox, answers: &Answers) -> io::Result<Close> {
    loop {
        match answers.take() {
            // The client has closed: nothing may follow the answer to that.
            Some(answer) if answer.first() == Some(&CLOSE) => {
                Box::pin(end(socket, outbox, answer)).await;
                return Ok(Box::pin(outbox.close_reason()).await);
            }
            Some(answer) => outbox.interpose(answer),
            None => {}
        }
        match outbox.flush()? {
            Flushed::Part => tokio::select! {
                biased;
                room = socket.writable() => room?,
                // A close frame can only follow a whole one.
                why = outbox.overflowed() => return Ok(say(socket, outbox, why).await),
                () = answers.given() => {}
            },
            Flushed::Closing(why) => return Ok(say(socket, outbox, why).await),
            Flushed::All => tokio::select! {
                () = answers.given() => {}
                () = outbox.called() => {}
            },
        }
    }
}

/// Says why the connection ends. Boxed, as all that happens once is: its room would be kept as long
/// as the connection.
async fn say(socket: &OwnedWriteHalf, outbox: &Outbox, why: Close) -> Close {
    Box::pin(end(socket, outbox, close_frame(why.code, &why.reason))).await;
    why
}

/// Writes what is left of the frame under way and one more, for which a client that cannot keep up
/// has some time. One that does not read them misses the reason.
async fn end(socket: &OwnedWriteHalf, outbox: &Outbox, last: Bytes) {
    outbox.end_with(last);
    let written = async {
        while outbox.flush()? == Flushed::Part {
            socket.writable().await?;
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, written).await;
}

#[cfg(test)]
mod tests;
