//! A server, and who we are there: what its URL says, ready to connect.

use tokio_postgres::{Client, Config, Socket};

use crate::stream::TlsStream;
use crate::tls::Tls;

/// The task that moves the bytes of a client.
pub type Connection = tokio_postgres::Connection<Socket, TlsStream<Socket>>;

/// A PostgreSQL server by its URL, with the certificates that it names.
///
/// ```
/// use althing_postgres::{Mode, Server};
///
/// let server: Server = "postgres://ana@db.example/chat?sslmode=require".parse()?;
/// assert_eq!(server.config.get_dbname(), Some("chat"));
/// assert_eq!(server.tls.mode(), Mode::Require);
/// # Ok::<(), althing_postgres::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Everything but TLS.
    pub config: Config,
    /// Whether connections are encrypted, and whom they believe.
    pub tls: Tls,
}

impl Server {
    /// Connects. Nothing moves unless the connection is polled.
    ///
    /// # Errors
    /// As the driver. What is wrong with a certificate is in the error's sources.
    pub async fn connect(&self) -> Result<(Client, Connection), tokio_postgres::Error> {
        self.config.connect(self.tls.clone()).await
    }
}
