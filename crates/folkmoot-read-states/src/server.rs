//! Read states over TCP, for chats that keep theirs elsewhere: `folkmoot read-states`.
//!
//! One task reads a connection's requests and makes their changes at once, another replies in the
//! same order when each is durable. What is between them is bounded: a client that sends faster
//! than its replies leave is read more slowly.
//!
//! There is no authentication: listen where only your own servers can connect.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};

use crate::block::ReadState;
use crate::change::Change;
use crate::error::ReadStatesError;
use crate::states::{Changed, ReadStates};
use crate::wire::{Command, Done, Failure, Outcome, Reply, Request, State, States, get, put};

/// Requests of one connection that may wait for their replies.
const AHEAD_MAX: usize = 4_096;
/// Of them those that read: what they have read waits in memory, up to 1.5 MiB each.
const READS_AHEAD_MAX: usize = 64;
/// Bytes of replies that are written at once.
const WRITE_BYTES: usize = 64 * 1024;
/// Before a listener that failed, for lack of descriptors mostly, is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

type Loading = JoinHandle<Result<Vec<ReadState>, ReadStatesError>>;

/// What a reply waits for.
enum Pending {
    /// The last of some: the log has them in their order.
    Changed(Option<Changed>),
    Loaded(Loading, OwnedSemaphorePermit),
    Failed(ReadStatesError),
    Malformed(String),
}

/// Serves connections until `stop` is ready, then stores everything.
///
/// # Errors
/// What was changed last could not be stored; the log has it.
pub async fn serve(
    listener: TcpListener,
    states: ReadStates,
    stop: impl Future<Output = ()>,
) -> Result<(), ReadStatesError> {
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let states = states.clone();
                    connections.spawn(async move {
                        if let Err(error) = connection(stream, states).await {
                            tracing::debug!(%peer, %error, "a connection ended");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
    states.store_all().await
}

async fn connection(stream: TcpStream, states: ReadStates) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let (pending, replies) = mpsc::channel(AHEAD_MAX);
    let read = async {
        // Dropped with the last request, so that the replies end too.
        let pending = pending;
        let mut reader = BufReader::with_capacity(WRITE_BYTES, reader);
        let mut buffer = Vec::new();
        let reads = Arc::new(Semaphore::new(READS_AHEAD_MAX));
        loop {
            let next = match get::<Request>(&mut reader, &mut buffer).await {
                Ok(None) => return Ok(()),
                Ok(Some(Request { command: Some(command) })) => {
                    begin(&states, command, &reads).await
                }
                Ok(Some(Request { command: None })) => {
                    Pending::Malformed("a request without a command".to_owned())
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    Pending::Malformed(error.to_string())
                }
                Err(error) => return Err(error),
            };
            let is_last = matches!(next, Pending::Malformed(_));
            if pending.send(next).await.is_err() || is_last {
                return Ok(());
            }
        }
    };
    let (read, written) = tokio::join!(read, write(writer, replies, &states));
    read.and(written)
}

/// Makes the changes that a command asks for, or begins to read once that may be.
async fn begin(states: &ReadStates, command: Command, reads: &Arc<Semaphore>) -> Pending {
    let one = |user, room, change| match states.change(user, room, change) {
        Ok(changed) => Pending::Changed(Some(changed)),
        Err(error) => Pending::Failed(error),
    };
    match command {
        Command::Acknowledge(command) => {
            let crate::wire::Acknowledge { user, room, message, mentions_left } = command;
            one(user, room, Change::Acknowledge { message, mentions_left })
        }
        Command::Forget(place) => one(place.user, place.room, Change::Forget),
        Command::Mention(command) => {
            match states.mention(&command.users, command.room, command.message) {
                Ok(changes) => Pending::Changed(Changed::last(changes)),
                Err(error) => Pending::Failed(error),
            }
        }
        Command::All(command) => {
            let states = states.clone();
            read(reads, async move { states.all(command.user).await }).await
        }
        Command::One(place) => {
            let states = states.clone();
            read(reads, async move { Ok(vec![states.one(place.user, place.room).await?]) }).await
        }
    }
}

/// Begins to read when fewer than so many wait for their replies.
async fn read(
    reads: &Arc<Semaphore>,
    reading: impl Future<Output = Result<Vec<ReadState>, ReadStatesError>> + Send + 'static,
) -> Pending {
    let permit = reads.clone().acquire_owned().await.expect("it is never closed");
    Pending::Loaded(tokio::spawn(reading), permit)
}

async fn write(
    mut writer: OwnedWriteHalf,
    mut replies: mpsc::Receiver<Pending>,
    states: &ReadStates,
) -> io::Result<()> {
    let mut out = Vec::new();
    while let Some(next) = replies.recv().await {
        let mut next = Some(next);
        while let Some(pending) = next {
            put(&Reply { outcome: Some(outcome(pending, states).await) }, &mut out);
            next = if out.len() < WRITE_BYTES { replies.try_recv().ok() } else { None };
        }
        writer.write_all(&out).await?;
        out.clear();
    }
    Ok(())
}

async fn outcome(pending: Pending, states: &ReadStates) -> Outcome {
    let done = match pending {
        Pending::Malformed(text) => {
            return Outcome::Failure(Failure { code: "malformed".to_owned(), text });
        }
        Pending::Failed(error) => Err(error),
        Pending::Changed(None) => Ok(Outcome::Done(Done {})),
        Pending::Changed(Some(changed)) => {
            states.durable(changed).await.map(|()| Outcome::Done(Done {}))
        }
        // The permit is kept until the reply has its bytes.
        Pending::Loaded(loading, _permit) => match loading.await {
            Ok(loaded) => loaded.map(|all| {
                let state = |state: ReadState| {
                    let ReadState { room, last_read, mentions } = state;
                    State { room, last_read, mentions }
                };
                Outcome::States(States { states: all.into_iter().map(state).collect() })
            }),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        },
    };
    done.unwrap_or_else(|error| {
        let code = match error {
            ReadStatesError::TooManyRooms { .. } => "too_many_rooms",
            ReadStatesError::Busy { .. } => "busy",
            ReadStatesError::Store(_) => "store",
            ReadStatesError::TakenOver => "taken_over",
            ReadStatesError::Log(_) => "log",
        };
        Outcome::Failure(Failure { code: code.to_owned(), text: error.to_string() })
    })
}
