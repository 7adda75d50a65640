//! Sessions: who is connected, what they subscribe to, and what their commands lead to.
//!
//! `opening` admits a connection, `command` answers its commands beside each other, `actor` owns
//! its subscriptions; the chat methods are in `chat`.

mod actor;
pub(crate) mod command;
mod cursor;
mod opening;

use std::sync::Arc;

use althing::ActorRef;
use bytes::Bytes;
use folkmoot_protocol::frame::Reply;
use folkmoot_protocol::{Channel, Format};

pub(crate) use actor::{Comings, Session, SessionCalls};
pub(crate) use opening::Opening;

use crate::chat::Identity;
use crate::gateway::Outbox;
use crate::storage::Offset;

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
