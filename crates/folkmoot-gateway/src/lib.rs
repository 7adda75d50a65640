//! The front door that Folkmoot's servers share: who may connect and for how long without a word,
//! TLS, and the sockets of the client protocol with their order and their bounded queues.
//!
//! Decides nothing about what is said: an [`Application`] admits connections and answers commands.

mod accept;
mod carrier;
mod connection;
mod cors;
mod direction;
mod emulation;
mod frame;
mod ids;
mod liveness;
mod messages;
mod order;
mod origin;
mod outbox;
mod outlet;
mod standby;
mod streaming;
mod uni_websocket;
mod unidirectional;
mod upgrade;
mod websocket;
mod writer;

pub use accept::client_address::{Network, client_address, is_local, owner};
pub use accept::tls::{Spoken, Tls, TlsError, TlsFiles};
pub use accept::{
    Door, Doorman, Guest, Room, Visit, accept_until_stopped, listen, look_until_stopped,
    raise_descriptors,
};
pub use connection::{Application, Note, Opening, encode, try_encode};
pub use cors::cors;
pub use direction::Direction;
pub use emulation::{Delivered, Emulated, Emulation, format};
pub use ids::Ids;
pub use origin::is_allowed;
pub use outbox::{Close, Next, Outbox};
pub use streaming::{EventQuery, event_stream, http_stream};
pub use uni_websocket::uni_upgrade;
pub use unidirectional::{UniQuery, uni_event_stream, uni_http_stream};
pub use upgrade::{Handshake, Settings, SocketQuery, upgrade};
