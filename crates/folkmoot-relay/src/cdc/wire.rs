//! A connection to PostgreSQL for replication: the part of the frontend protocol that the client
//! library does not have, because in it both sides send at once.

use std::io;
use std::time::Duration;

use althing_postgres::{Server, WireStream};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::config::Host;

use super::pgoutput::{Lsn, Shortened};

/// Version 3.0 of the protocol.
const PROTOCOL: u32 = 196_608;
/// The longest message that is read whole: a row has at most a gigabyte, and none here should come
/// near.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// What stands before a change.
const CHANGE_HEAD_BYTES: usize = 25;
/// A message that says to be longer is none: the database has no such values.
const LENGTH_MAX: usize = 2 << 30;
/// Taken from the socket at once, at most.
const READ_BYTES: usize = 64 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For the server's last word in a stream that we end.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("the connection to the database: {0}")]
    Io(#[from] io::Error),
    #[error("the database refused: {0}")]
    Refused(String),
    #[error("the database asks for a way to sign in that is not supported")]
    Authentication,
    #[error("the dsn names no host and port for TCP")]
    Address,
}

/// A connection that replicates.
pub(super) struct Wire {
    socket: WireStream<TcpStream>,
    read: BytesMut,
    /// A message over the limit that is being read and thrown away.
    cut: Option<Cut>,
}

/// A change over the limit.
#[derive(Debug)]
struct Cut {
    end: Lsn,
    row: Shortened,
    len: usize,
    /// Bytes that are still to come.
    left: usize,
}

/// What was received.
enum Received {
    Whole(u8, Bytes),
    Cut(Cut),
}

/// What the server sends in a stream.
#[derive(Debug)]
pub(super) enum Streamed {
    /// A message of the plugin, and how far the server's log goes.
    Change { end: Lsn, message: Bytes },
    /// What is known of one that is over the limit, and how long it was.
    CutChange { end: Lsn, head: Bytes, len: usize },
    /// How far the server's log goes, and whether it wants to hear how far we are.
    Keepalive { end: Lsn, wants_reply: bool },
}

impl Wire {
    /// Connects, encrypts if the address has it so, and signs in.
    pub(super) async fn connect(server: &Server) -> Result<Self, WireError> {
        let config = &server.config;
        let Some(Host::Tcp(host)) = config.get_hosts().first() else {
            return Err(WireError::Address);
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
        let opening = async {
            let socket = TcpStream::connect((host.as_str(), port)).await?;
            socket.set_nodelay(true)?;
            let socket = server.tls.negotiate(socket, host).await?;
            let mut wire = Self { socket, read: BytesMut::new(), cut: None };
            wire.sign_in(config).await?;
            Ok(wire)
        };
        timeout(CONNECT_TIMEOUT, opening).await.unwrap_or_else(|_| Err(late().into()))
    }

    async fn sign_in(&mut self, config: &tokio_postgres::Config) -> Result<(), WireError> {
        let user = config.get_user().unwrap_or("postgres");
        let password = config.get_password().unwrap_or_default();
        let mut parameters = BytesMut::new();
        parameters.put_u32(PROTOCOL);
        for (name, value) in [
            ("user", user),
            ("database", config.get_dbname().unwrap_or(user)),
            ("replication", "database"),
            ("application_name", "folkmoot-relay"),
        ] {
            put_text(&mut parameters, name);
            put_text(&mut parameters, value);
        }
        parameters.put_u8(0);
        let mut startup = BytesMut::new();
        startup.put_u32(u32::try_from(parameters.len() + 4).expect("names are short"));
        startup.put_slice(&parameters);
        self.socket.write_all(&startup).await?;
        self.socket.flush().await?;
        let mut scram = None;
        loop {
            let (kind, mut message) = self.message().await?;
            match kind {
                b'R' => match take_u32(&mut message)? {
                    0 => {}
                    3 => self.send(b'p', &text(password)).await?,
                    5 => {
                        let salt = message.get(..4).and_then(|salt| salt.try_into().ok());
                        let salt = salt.ok_or_else(cut)?;
                        let hash = md5_hash(user.as_bytes(), password, salt);
                        self.send(b'p', &text(hash.as_bytes())).await?;
                    }
                    10 => {
                        let new = ScramSha256::new(password, ChannelBinding::unsupported());
                        let first = new.message();
                        let mut body = BytesMut::new();
                        put_text(&mut body, SCRAM_SHA_256);
                        body.put_u32(u32::try_from(first.len()).expect("it is short"));
                        body.put_slice(first);
                        self.send(b'p', &body).await?;
                        scram = Some(new);
                    }
                    11 => {
                        let scram = scram.as_mut().ok_or(WireError::Authentication)?;
                        scram.update(&message)?;
                        let next = scram.message().to_vec();
                        self.send(b'p', &next).await?;
                    }
                    12 => scram.as_mut().ok_or(WireError::Authentication)?.finish(&message)?,
                    _ => return Err(WireError::Authentication),
                },
                b'E' => return Err(refused(&message)),
                b'Z' => return Ok(()),
                _ => {}
            }
        }
    }

    /// Begins the stream of a slot, from where its reader said it was.
    pub(super) async fn replicate(
        &mut self,
        slot: &str,
        publication: &str,
    ) -> Result<(), WireError> {
        let quoted = publication.replace('\'', "''").replace('"', "\"\"");
        let query = format!(
            "START_REPLICATION SLOT {} LOGICAL 0/0 \
             (proto_version '1', publication_names '\"{quoted}\"')",
            crate::outbox::table::quoted(slot)
        );
        self.send(b'Q', &text(query.as_bytes())).await?;
        loop {
            match self.message().await? {
                // Both sides send now.
                (b'W', _) => return Ok(()),
                (b'E', message) => return Err(refused(&message)),
                _ => {}
            }
        }
    }

    /// The next part of the stream. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Streamed, WireError> {
        loop {
            let (kind, mut message) = match self.receive().await? {
                Received::Whole(kind, message) => (kind, message),
                Received::Cut(Cut { end, row, len, .. }) => {
                    return Ok(Streamed::CutChange { end, head: row.kept(), len });
                }
            };
            match kind {
                b'd' => match take_u8(&mut message)? {
                    b'w' => {
                        let end = take_change(&mut message)?;
                        return Ok(Streamed::Change { end, message });
                    }
                    b'k' => {
                        let end = take_u64(&mut message)?;
                        take_u64(&mut message)?;
                        let wants_reply = take_u8(&mut message)? != 0;
                        return Ok(Streamed::Keepalive { end, wants_reply });
                    }
                    _ => {}
                },
                b'E' => return Err(refused(&message)),
                b'c' => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                _ => {}
            }
        }
    }

    /// Tells the server that all before `done` need not be sent again.
    pub(super) async fn confirm(&mut self, done: Lsn) -> Result<(), WireError> {
        let mut status = BytesMut::new();
        status.put_u8(b'r');
        // Written, flushed, applied.
        for _ in 0..3 {
            status.put_u64(done);
        }
        // Our clock, which the server only shows; and no reply is wanted.
        status.put_u64(0);
        status.put_u8(0);
        self.send(b'd', &status).await
    }

    /// Ends the stream, once the server has taken in what it was told: it answers in order.
    pub(super) async fn end(mut self) -> Result<(), WireError> {
        self.send(b'c', &[]).await?;
        let answered = async {
            loop {
                if let Received::Whole(b'c', _) = self.receive().await? {
                    return Ok(());
                }
            }
        };
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the stream does not end");
        timeout(END_TIMEOUT, answered).await.unwrap_or_else(|_| Err(late().into()))
    }

    /// Whether a whole message was received and not looked at.
    pub(super) fn has_more(&self) -> bool {
        self.cut.is_none()
            && self.read.get(1..5).is_some_and(|len| {
                let len = u32::from_be_bytes([len[0], len[1], len[2], len[3]]) as usize;
                self.read.len() > len
            })
    }

    async fn send(&mut self, kind: u8, body: &[u8]) -> Result<(), WireError> {
        let mut message = BytesMut::with_capacity(body.len() + 5);
        message.put_u8(kind);
        message.put_u32(u32::try_from(body.len() + 4).expect("messages of ours are short"));
        message.put_slice(body);
        self.socket.write_all(&message).await?;
        Ok(self.socket.flush().await?)
    }

    /// One message of the server, which must be whole: its kind and its body.
    async fn message(&mut self) -> Result<(u8, Bytes), WireError> {
        match self.receive().await? {
            Received::Whole(kind, message) => Ok((kind, message)),
            Received::Cut(cut) => Err(too_long(cut.len)),
        }
    }

    /// One message of the server. Cancel safe: what was read is kept.
    async fn receive(&mut self) -> Result<Received, WireError> {
        loop {
            if let Some(received) = self.take_received()? {
                return Ok(received);
            }
            // Without room of its own, a read takes some ten bytes, and each row a sync of the disk.
            self.read.reserve(READ_BYTES);
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

impl Wire {
    /// The next message, if enough of it was read.
    fn take_received(&mut self) -> Result<Option<Received>, WireError> {
        if let Some(cut) = &mut self.cut {
            let taken = match self.read.len() >= cut.left {
                true => {
                    cut.row.take(&self.read[..cut.left]);
                    // What of its end cannot be told apart is thrown away.
                    cut.left
                }
                false => cut.row.take(&self.read),
            };
            self.read.advance(taken);
            cut.left -= taken;
            let is_over = cut.left == 0;
            return Ok(self.cut.take_if(|_| is_over).map(Received::Cut));
        }
        let Some(head) = self.read.get(..5) else { return Ok(None) };
        let kind = head[0];
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=LENGTH_MAX).contains(&len) {
            return Err(too_long(len));
        }
        if len <= MESSAGE_BYTES_MAX {
            if self.read.len() <= len {
                return Ok(None);
            }
            let mut message = self.read.split_to(len + 1).freeze();
            message.advance(5);
            return Ok(Some(Received::Whole(kind, message)));
        }
        if self.read.len() >= 5 + CHANGE_HEAD_BYTES {
            self.read.advance(5);
            let mut head = self.read.split_to(CHANGE_HEAD_BYTES).freeze();
            if (kind, take_u8(&mut head)?) != (b'd', b'w') {
                return Err(too_long(len));
            }
            let (end, row) = (take_change(&mut head)?, Shortened::default());
            self.cut = Some(Cut { end, row, len, left: len - 4 - CHANGE_HEAD_BYTES });
            return self.take_received();
        }
        Ok(None)
    }
}

/// The head of a change: how far the server's log goes.
fn take_change(message: &mut Bytes) -> Result<Lsn, WireError> {
    take_u64(message)?;
    let end = take_u64(message)?;
    take_u64(message)?;
    Ok(end)
}

fn too_long(len: usize) -> WireError {
    io::Error::new(io::ErrorKind::InvalidData, format!("a message of {len} bytes")).into()
}

fn put_text(buffer: &mut BytesMut, text: &str) {
    buffer.put_slice(text.as_bytes());
    buffer.put_u8(0);
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0]].concat()
}

fn take_u8(message: &mut Bytes) -> Result<u8, WireError> {
    super::pgoutput::take_u8(message).map_err(|_| cut())
}

fn take_u32(message: &mut Bytes) -> Result<u32, WireError> {
    message.try_get_u32().map_err(|_| cut())
}

fn take_u64(message: &mut Bytes) -> Result<u64, WireError> {
    super::pgoutput::take_u64(message).map_err(|_| cut())
}

fn cut() -> WireError {
    io::Error::new(io::ErrorKind::InvalidData, "a message that was cut").into()
}

/// The server's words in an error message: fields of a letter and a text.
fn refused(message: &[u8]) -> WireError {
    let fields = message.split(|byte| *byte == 0);
    let told = fields.into_iter().find_map(|field| field.strip_prefix(b"M"));
    WireError::Refused(String::from_utf8_lossy(told.unwrap_or(b"without a reason")).into_owned())
}
