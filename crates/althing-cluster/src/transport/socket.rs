//! A connection behind its greeting: one task reads, and any thread writes without waiting.
//!
//! With TLS both directions share one session behind a lock, which is held while bytes are sealed or
//! opened and never while somebody waits. What was sealed and is not on the wire yet is part of the
//! session: nothing else may be written before it, so more is sealed only once it is gone.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio_rustls::rustls::Connection;

/// Sealed bytes that are read at once.
const READ_LEN: usize = 64 << 10;

/// The writing side, and what both share.
#[derive(Clone)]
pub(crate) struct Socket(Arc<Shared>);

struct Shared {
    tcp: TcpStream,
    session: Option<Mutex<Connection>>,
}

/// The reading side.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// Room for what is sealed; empty without TLS.
    sealed: Vec<u8>,
}

impl Socket {
    pub(super) fn new(tcp: TcpStream, session: Option<Connection>) -> (Self, Reader) {
        let sealed = vec![0; if session.is_some() { READ_LEN } else { 0 }];
        let shared = Arc::new(Shared { tcp, session: session.map(Mutex::new) });
        (Self(shared.clone()), Reader { shared, sealed })
    }

    /// Takes as many of the bytes as there is room for; `WouldBlock` if there is none.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(session) = &self.0.session else { return self.0.tcp.try_write(bytes) };
        let mut session = session.lock();
        if !flush(&mut session, &self.0.tcp)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = session.writer().write(bytes)?;
        flush(&mut session, &self.0.tcp)?;
        Ok(count)
    }

    /// Writes what was taken and is not on its way; whether all of it is.
    pub(crate) fn try_flush(&self) -> io::Result<bool> {
        match &self.0.session {
            Some(session) => flush(&mut session.lock(), &self.0.tcp),
            None => Ok(true),
        }
    }

    /// Whether all that was taken is on its way.
    pub(crate) fn is_flushed(&self) -> bool {
        self.0.session.as_ref().is_none_or(|session| !session.lock().wants_write())
    }

    /// Resolves when there may be room.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.0.tcp.writable().await
    }

    /// Takes some of the bytes, and waits until there is room.
    pub(crate) async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.try_write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable().await?,
                wrote => return wrote,
            }
        }
    }

    /// Writes all of them. If it is dropped, a part may be written.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[self.write_some(bytes).await?..];
        }
        while !self.try_flush()? {
            self.writable().await?;
        }
        Ok(())
    }
}

impl Reader {
    /// Appends what has come; 0 at the end. It can be dropped at any time.
    pub(crate) async fn read_into(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            // A peer that never pauses must not keep its thread, though nothing is in what it says.
            tokio::task::consume_budget().await;
            let read = match &self.shared.session {
                None => self.shared.tcp.try_read_buf(into).map(Some),
                Some(session) => try_open(&self.shared.tcp, session, &mut self.sealed, into),
            };
            match read {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.shared.tcp.readable().await?;
                }
                Ok(None) => {}
                Ok(Some(count)) => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads once, and opens what that was; 0 at the end, `None` if nothing was in it.
fn try_open(
    tcp: &TcpStream,
    session: &Mutex<Connection>,
    sealed: &mut [u8],
    into: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    // Something may have come together with the greeting.
    let before = into.len();
    open(&mut session.lock(), into)?;
    if into.len() > before {
        return Ok(Some(into.len() - before));
    }
    let count = tcp.try_read(sealed)?;
    let mut rest = &sealed[..count];
    if rest.is_empty() {
        return Ok(Some(0));
    }
    let mut session = session.lock();
    while !rest.is_empty() {
        // None after the other side has said that it ends.
        if session.read_tls(&mut rest)? == 0 {
            return Ok(Some(into.len() - before));
        }
        let opened = open(&mut session, into);
        // The other side is told why, if it is told anything.
        if opened.is_err() {
            _ = flush(&mut session, tcp);
        }
        opened?;
    }
    Ok(Some(into.len() - before).filter(|count| *count > 0))
}

fn open(session: &mut Connection, into: &mut Vec<u8>) -> io::Result<()> {
    let state = session.process_new_packets();
    let state = state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    let start = into.len();
    into.resize(start + state.plaintext_bytes_to_read(), 0);
    session.reader().read_exact(&mut into[start..])
}

/// Whether nothing is left.
fn flush(session: &mut Connection, tcp: &TcpStream) -> io::Result<bool> {
    while session.wants_write() {
        match session.write_tls(&mut Unwaiting(tcp)) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A socket as the session writes to it.
struct Unwaiting<'a>(&'a TcpStream);

impl Write for Unwaiting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
