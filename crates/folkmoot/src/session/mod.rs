//! Sessions: who is connected, what they subscribe to, and what their commands lead to.
//!
//! `opening` admits a connection, `command` answers its commands beside each other, `actor` owns
//! its subscriptions (`channels`); the chat methods are in `chat`.

mod abroad;
mod actor;
mod channels;
pub(crate) mod command;
mod cursor;
mod opening;

use std::sync::Arc;

use althing::{ActorRef, Recipient};
use folkmoot_protocol::{Channel, Format};

pub(crate) use actor::{Comings, Session, SessionCalls};
pub(crate) use opening::open;

use crate::chat::Identity;
use crate::connection::Ear;
use crate::room::OnlineClient;
use crate::storage::Offset;
use crate::stream::Presence;
use folkmoot_gateway::Outbox;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    /// As rooms know the connection.
    pub(crate) online: Arc<OnlineClient>,
    pub(crate) format: Format,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) session: ActorRef<Session>,
    /// By which it is reached from other nodes; `None` on a server alone.
    pub(crate) ear: Option<ActorRef<Ear>>,
    /// Where the user's own stream stood when the connect reply was made.
    position: Offset,
}

impl Caller {
    /// Where a room tells the connection of people, from whichever node it lives on.
    pub(crate) fn told(&self) -> Recipient<Presence, ()> {
        match &self.ear {
            Some(ear) => ear.recipient(),
            None => self.session.recipient(),
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
