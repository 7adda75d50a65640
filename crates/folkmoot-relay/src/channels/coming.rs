//! How a client hears of its new subscription, before anything else of the channel; and how others
//! hear of it, if they may.

use std::sync::Arc;

use folkmoot_gateway::try_encode;
use folkmoot_protocol::frame::{
    ClientInfo, Join, Leave, Outcome, PushKind, Reply, Subscribe, SubscribeResult,
};

use super::channel::Channel;
use super::{Answer, delta};
use crate::connection::Connection;
use crate::payload::{Encoded, NotJson};

/// Tells a client of its subscription, and what it missed.
pub(super) fn tell(
    answer: Answer,
    connection: &Connection,
    name: &Arc<str>,
    result: &SubscribeResult,
) {
    match answer {
        Answer::Reply(id) => {
            let told = delta::told(result.clone(), connection.format);
            let reply = told.map(|told| Reply::ok(id, Outcome::Subscribe(told)));
            let reply =
                reply.and_then(|reply| try_encode(connection.format, &reply).map_err(|_| NotJson));
            match reply {
                Ok(reply) => connection.outbox.reply_now(reply),
                Err(NotJson) => connection.cannot_read(),
            }
        }
        Answer::Push => {
            let SubscribeResult {
                recoverable, epoch, offset, positioned, data, publications, ..
            } = result.clone();
            let subscribe = Subscribe { recoverable, epoch, offset, positioned, data };
            // The push has no place for what was missed, so that it follows.
            let missed = publications.into_iter().map(PushKind::Pub);
            for kind in std::iter::once(PushKind::Subscribe(subscribe)).chain(missed) {
                connection.push(Encoded::new(name, kind).bytes(connection.format));
            }
        }
        Answer::Connect => {}
    }
}

impl Channel {
    /// Tells subscribers that want to know it who has come.
    pub(super) fn tell_coming(&self, name: &Arc<str>, info: ClientInfo) {
        let mut push = Encoded::new(name, PushKind::Join(Join { info: Some(info) }));
        self.tell(&mut push, |one| one.wants_comings);
    }

    /// Tells them who has left; never whoever left, which may have come again meanwhile.
    pub(super) fn tell_leaving(&self, name: &Arc<str>, info: ClientInfo) {
        let client = info.client.clone();
        let mut push = Encoded::new(name, PushKind::Leave(Leave { info: Some(info) }));
        self.tell(&mut push, |one| one.wants_comings && *one.connection.id != *client);
    }
}
