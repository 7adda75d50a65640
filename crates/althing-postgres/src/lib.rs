//! How Althing's crates connect to PostgreSQL: in the clear or by TLS, as libpq's `sslmode` and
//! `sslrootcert` have it.
//!
//! The driver knows three of libpq's modes and checks no certificate. Here the two settings are
//! taken out of the URL before the driver reads the rest, and a connector is made of them.
//!
//! | `sslmode` | encrypted | the server's certificate |
//! |---|---|---|
//! | `disable` | never | |
//! | `prefer`, the default | if the server can | anyone's |
//! | `require` | always, or there is no connection | anyone's; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | always | signed by an authority in `sslrootcert` |
//! | `verify-full` | always | that, and made out to the host in the URL |
//!
//! `sslrootcert` names a file of certificates in PEM; `system` stands for the authorities that the
//! system believes, and goes with `verify-full` alone. Without it, the two last modes take
//! `~/.postgresql/root.crt`. Not supported, and refused by name: `sslmode=allow`, certificates of
//! the client, lists of revoked certificates. Over a Unix socket a server does not encrypt, so only
//! `disable` and `prefer` connect there.

mod roots;
mod server;
mod stream;
mod tls;
mod url;
mod verify;

pub use self::server::{Connection, Server};
pub use self::stream::{TlsStream, WireStream};
pub use self::tls::{Connect, Mode, Tls, TlsError};
pub use self::url::UrlError;
