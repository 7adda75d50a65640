//! Sessions: who is connected, what they subscribe to, and what their commands lead to.
//!
//! `opening` admits a connection, `command` answers its commands beside each other, `actor` owns
//! its subscriptions, `rpc` holds the chat methods.

mod actor;
pub(crate) mod command;
mod cursor;
mod opening;
pub(crate) mod rpc;

use std::sync::Arc;

use althing::ActorRef;
use bytes::Bytes;
use folkmoot_protocol::frame::Reply;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{Channel, Format};

pub(crate) use actor::{Comings, Session, SessionCalls};
pub(crate) use opening::Opening;

use crate::gateway::Outbox;
use crate::limits::{Limit, Limits};
use crate::server::Server;
use crate::storage::{DeviceId, Offset, UserId};

/// Who gives a command: a user through one of their devices, by socket or by HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) server: Arc<Server>,
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
    /// The connection's id, if it is a socket.
    pub(crate) client: Option<Arc<str>>,
}

impl Identity {
    /// A user who does not come by a socket.
    pub(crate) fn new(server: Arc<Server>, user: UserId, device: DeviceId) -> Self {
        Self { server, user, device, client: None }
    }

    /// Counts one more of what the user does, or refuses it.
    pub(crate) fn count(
        &self,
        limit: impl FnOnce(&Limits) -> &Limit<UserId>,
    ) -> Result<(), RpcError> {
        limit(&self.server.limits).take(self.user)
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    /// The connection's id.
    pub(crate) client: Arc<str>,
    pub(crate) display_name: Arc<str>,
    pub(crate) format: Format,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) session: ActorRef<Session>,
    /// Where the user's own stream stood when the connect reply was made.
    position: Offset,
}

impl Caller {
    /// Queues the reply to a command once there is room for it.
    pub(crate) async fn reply(&self, reply: Option<Reply>) {
        if let Some(reply) = reply {
            self.outbox.reply(encode(self.format, &reply)).await;
        }
    }

    /// The connect reply is out: the user's stream follows.
    pub(crate) async fn go_live(&self) {
        let channel = Channel::User(self.identity.user);
        let _ = self.session.go_live(channel, self.position).await;
    }

    /// The connection has ended: gives back its subscriptions and presence.
    pub(crate) async fn end(&self) {
        self.session.stop().await;
    }
}

/// Encodes a reply for the outbox.
pub(crate) fn encode(format: Format, reply: &Reply) -> Bytes {
    let mut message = Vec::new();
    format.encode_reply(reply, &mut message).expect("payloads of replies are JSON that we wrote");
    message.into()
}
