//! The connector: which mode, whom it believes, and the handshake.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::ServerName;

use crate::roots;
use crate::stream::{TlsStream, WireStream};
use crate::verify::Lenient;

/// Asks a server whether it encrypts: the length, and a version that none has.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can.
    Prefer,
    /// Encrypted, whoever answers.
    Require,
    /// Encrypted, with a certificate of an authority that is believed.
    VerifyCa,
    /// That, and made out to the host that was named.
    VerifyFull,
}

/// Encrypts connections to one server; goes into `Config::connect`. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tls {
    mode: Mode,
    roots: Option<Arc<str>>,
    client: Arc<ClientConfig>,
}

/// Why there are no encrypted connections.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// Nobody said whom to believe.
    #[error(
        "to check the server's certificate, sslrootcert has to name a file of authorities, or \
         ~/.postgresql/root.crt has to be there"
    )]
    NoRoots,
    /// The authorities cannot be read.
    #[error("the certificates in {path} (sslrootcert) cannot be used: {why}", path = path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The system's authorities sign for anybody.
    #[error("sslrootcert=system needs sslmode=verify-full: these authorities sign for anybody")]
    WeakSystem,
    /// This build of the library that encrypts has no such protocol.
    #[error("TLS cannot be set up: {0}")]
    SetUp(String),
}

impl Mode {
    pub(crate) fn of(text: &str) -> Option<Self> {
        Some(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }
}

impl Tls {
    pub(crate) fn new(mode: Mode, named: Option<&str>) -> Result<Self, TlsError> {
        if named == Some(roots::SYSTEM) && mode != Mode::VerifyFull {
            return Err(TlsError::WeakSystem);
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = verifier(mode, named, &provider)?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::SetUp(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self { mode, roots: named.map(Arc::from), client: Arc::new(client) })
    }

    /// The mode that was asked for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// For a connection that the driver does not make: asks the server on it whether it encrypts,
    /// and encrypts as the mode has it. Nothing was sent on it before.
    ///
    /// # Errors
    /// The connection breaks, the server does not encrypt, or its certificate is not believed.
    pub async fn negotiate<S>(&self, mut stream: S, host: &str) -> io::Result<WireStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if self.mode == Mode::Disable {
            return Ok(WireStream::Clear(stream));
        }
        stream.write_all(&SSL_REQUEST).await?;
        // Nothing more than this byte may be there: it would have been sent in the clear.
        match (stream.read_u8().await?, self.mode) {
            (b'S', _) => {}
            (_, Mode::Prefer) => return Ok(WireStream::Clear(stream)),
            _ => return Err(io::Error::other("server does not support TLS")),
        }
        let connect = self.connector(host)?;
        Ok(WireStream::Encrypted(Box::new(connect.connect(stream).await?)))
    }

    fn connector(&self, host: &str) -> io::Result<Connect> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{host} is no name of a host"))
        })?;
        Ok(Connect { client: self.client.clone(), name: Some(name) })
    }
}

/// Whom the mode believes.
fn verifier(
    mode: Mode,
    named: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    // As in libpq, who names authorities wants them to be asked.
    let mode = if mode == Mode::Require && named.is_some() { Mode::VerifyCa } else { mode };
    if matches!(mode, Mode::Disable | Mode::Prefer | Mode::Require) {
        return Ok(Arc::new(Lenient::anyone(provider.clone())));
    }
    let roots = Arc::new(roots::read(named)?);
    let full = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
        .build()
        .map_err(|error| TlsError::SetUp(error.to_string()))?;
    Ok(match mode {
        Mode::VerifyFull => full,
        _ => Arc::new(Lenient::any_name(provider.clone(), full)),
    })
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        (self.mode, &self.roots) == (other.mode, &other.roots)
    }
}

impl Eq for Tls {}

/// One handshake to come.
#[derive(Debug)]
pub struct Connect {
    client: Arc<ClientConfig>,
    /// `None`: a Unix socket, over which no server encrypts.
    name: Option<ServerName<'static>>,
}

type Connecting<S> = Pin<Box<dyn Future<Output = io::Result<TlsStream<S>>> + Send>>;

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = TlsStream<S>;
    type Error = io::Error;
    type Future = Connecting<S>;

    fn connect(self, stream: S) -> Connecting<S> {
        let connector = TlsConnector::from(self.client);
        Box::pin(async move {
            let name = self.name.ok_or_else(|| io::Error::other("a Unix socket has no host"))?;
            Ok(TlsStream(connector.connect(name, stream).await?))
        })
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = TlsStream<S>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connect> {
        // The driver asks before it knows whether the server encrypts.
        if host.is_empty() {
            return Ok(Connect { client: self.client.clone(), name: None });
        }
        self.connector(host)
    }
}
