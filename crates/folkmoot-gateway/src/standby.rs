//! The write half of a connection whose socket others write to, too. It writes replies, pings and
//! whatever the socket did not take from others, and says why the connection ends.

use std::io;

use bytes::Bytes;
use folkmoot_protocol::DisconnectCode;
use futures_util::future::BoxFuture;
use tokio::net::tcp::OwnedWriteHalf;

use crate::frame::{CLOSE, close_frame};
use crate::outbox::{Close, Flushed, Outbox};
use crate::writer::CLOSE_TIMEOUT;

/// Writes until the outbox closes or the socket fails; returns the reason.
pub(crate) async fn write(socket: &OwnedWriteHalf, outbox: &Outbox) -> u16 {
    let why = match serve(socket, outbox).await {
        Ok(why) => why,
        Err(_) => {
            outbox.close(DisconnectCode::WriteError);
            Close::from(DisconnectCode::WriteError)
        }
    };
    outbox.hang_up();
    why.code
}

async fn serve(socket: &OwnedWriteHalf, outbox: &Outbox) -> io::Result<Close> {
    loop {
        match flush(socket, outbox)? {
            None => outbox.called().await,
            Some(rest) => {
                if let Some(why) = rest.await? {
                    return Ok(why);
                }
            }
        }
    }
}

/// Writes what waits. What has to be waited for beyond that comes as a future, which says why the
/// connection has ended, if it has. Boxed, because a quiet connection would keep its room.
fn flush<'a>(
    socket: &'a OwnedWriteHalf,
    outbox: &'a Outbox,
) -> io::Result<Option<BoxFuture<'a, io::Result<Option<Close>>>>> {
    match outbox.take_answer() {
        // The client has closed: nothing may follow the answer to that.
        Some(answer) if answer.first() == Some(&CLOSE) => {
            return Ok(Some(Box::pin(async move {
                end(socket, outbox, answer).await;
                Ok(Some(outbox.close_reason().await))
            })));
        }
        Some(answer) => outbox.interpose(answer),
        None => {}
    }
    Ok(match outbox.flush()? {
        Flushed::All => None,
        Flushed::Part => Some(Box::pin(room(socket, outbox))),
        Flushed::Closing(why) => {
            Some(Box::pin(async move { Ok(Some(say(socket, outbox, why).await)) }))
        }
    })
}

/// Waits until the socket takes more, or something goes before what waits.
async fn room(socket: &OwnedWriteHalf, outbox: &Outbox) -> io::Result<Option<Close>> {
    tokio::select! {
        biased;
        room = socket.writable() => room.map(|()| None),
        why = outbox.overtaken() => Ok(match why {
            // A close frame can only follow a whole one.
            Some(why) => Some(say(socket, outbox, why).await),
            None => None,
        }),
    }
}

/// Says why the connection ends.
async fn say(socket: &OwnedWriteHalf, outbox: &Outbox, why: Close) -> Close {
    end(socket, outbox, close_frame(why.code, &why.reason)).await;
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
