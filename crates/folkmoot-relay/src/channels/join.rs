//! A subscription that is made where its channel lives.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::frame::SubscribeResult;

use super::channel::Subscriber;
use super::delta::Deltas;
use super::{Channels, coming, recovery};
use crate::connection::Connection;
use crate::stream::Keep;
use crate::tags::Filter;

/// A subscription that is to be made.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) channel: Arc<str>,
    pub(crate) connection: Arc<Connection>,
    /// What the backend says of the connection in this channel.
    pub(crate) info: Bytes,
    pub(crate) has_presence: bool,
    /// Whether others hear of it, and whether it hears of others.
    pub(crate) tells_coming: bool,
    pub(crate) wants_comings: bool,
    pub(crate) keep: Option<Keep>,
    /// Where the client was, if it wants what it missed.
    pub(crate) since: Option<(u64, String)>,
    pub(crate) recovery_limit: usize,
    pub(crate) recovers_newest: bool,
    /// Whether it wants no subscription if what it missed cannot be given.
    pub(crate) needs_all: bool,
    /// Which publications it wants; `None`: all.
    pub(crate) filter: Option<Box<Filter>>,
    /// What the reply says beside the position.
    pub(crate) result: SubscribeResult,
    pub(crate) answer: Answer,
}

/// How the client hears of a new subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// By the reply to its command of this number.
    Reply(u32),
    /// By a push.
    Push,
    /// In the reply to its connect command, which the caller makes.
    Connect,
}

impl Answer {
    /// Whether it is a subscription that its client did not ask for by a command.
    pub(super) fn is_by_server(self) -> bool {
        !matches!(self, Self::Reply(_))
    }
}

/// Why a subscription was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotMade {
    /// It was taken back, or its connection has ended.
    Unwanted,
    /// Too much has come while the owner was asked. It may be made later.
    GivenUp,
    /// What the client missed cannot be given, and without it the client wants none.
    Unrecoverable,
}

impl Join {
    /// Whether the client wants no subscription that begins like this.
    pub(super) fn refuses(&self, result: &SubscribeResult) -> bool {
        let is_lost = result.was_recovering && !result.recovered;
        self.needs_all && is_lost && !self.recovers_newest
    }
}

impl Channels {
    /// Makes a subscription; see [`Channels::join`].
    pub(super) fn join_here(&mut self, join: Join, now: u64) -> Result<SubscribeResult, NotMade> {
        let name = join.channel.clone();
        // Decided here and not by who asks: whoever takes it back tells this actor afterwards.
        if !join.connection.hold(&name) {
            return Err(NotMade::Unwanted);
        }
        let channel = self.channels.entry(name.clone()).or_default();
        let mut result = join.result.clone();
        if let Some(keep) = join.keep {
            let stream = channel.stream(now, keep, &self.epochs);
            stream.expire(now);
            let found = stream.find(&join.missing_here(), |payload| join.wants(&payload.tags));
            recovery::recover(&join, found, &mut result);
            if join.refuses(&result) {
                join.connection.forget(&name);
                self.look_later(&name, now);
                return Err(NotMade::Unrecoverable);
            }
        }
        let Join { connection, answer, filter, .. } = join;
        coming::tell(answer, &connection, &name, &result);
        let comes = join.tells_coming.then(|| connection.seen(&join.info));
        let deltas = Deltas::of(&result, channel);
        channel.add(Subscriber {
            connection,
            info: join.info,
            has_presence: join.has_presence,
            tells_coming: join.tells_coming,
            wants_comings: join.wants_comings,
            deltas,
            filter,
            is_positioned: result.positioned || result.recoverable,
            is_by_server: answer.is_by_server(),
            since: 0,
        });
        // It hears of itself, too.
        if let Some(info) = comes {
            channel.tell_coming(&name, info);
        }
        self.look_later(&name, now);
        Ok(result)
    }
}
