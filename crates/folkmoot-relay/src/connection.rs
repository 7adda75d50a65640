//! One open connection, as channels and the server API see it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use folkmoot_gateway::Outbox;
use folkmoot_protocol::frame::ClientInfo;
use folkmoot_protocol::{DisconnectCode, Format};
use parking_lot::Mutex;

use crate::payload::NotJson;

#[derive(Debug)]
pub(crate) struct Connection {
    /// The connection's id.
    pub(crate) id: Arc<str>,
    /// Empty: anonymous.
    pub(crate) user: Arc<str>,
    /// What the backend says of the user; JSON.
    pub(crate) info: Bytes,
    pub(crate) format: Format,
    pub(crate) outbox: Arc<Outbox>,
    /// When it ends, in seconds since 1970; 0: never.
    pub(crate) end: AtomicI64,
    /// What came before the reply to the connect command was queued.
    early: Mutex<Option<Vec<Bytes>>>,
    /// `None`: the connection has ended and takes none any more.
    subscriptions: Mutex<Option<BTreeMap<Arc<str>, Held>>>,
}

/// A subscription of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// When it ends, in seconds since 1970; 0: never.
    pub(crate) ends_at: i64,
    /// Asked for, and not answered yet.
    pub(crate) is_pending: bool,
}

/// Why a connection takes no further subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Already,
    TooMany,
    Ended,
}

impl Connection {
    pub(crate) fn new(
        id: Arc<str>,
        user: Arc<str>,
        info: Bytes,
        format: Format,
        outbox: Arc<Outbox>,
    ) -> Self {
        Self {
            id,
            user,
            info,
            format,
            outbox,
            end: AtomicI64::new(0),
            early: Mutex::new(Some(Vec::new())),
            subscriptions: Mutex::new(Some(BTreeMap::new())),
        }
    }

    /// As others see it in a channel where the backend says `chan_info` of it.
    pub(crate) fn seen(&self, chan_info: &Bytes) -> ClientInfo {
        ClientInfo {
            user: self.user.to_string(),
            client: self.id.to_string(),
            conn_info: self.info.clone(),
            chan_info: chan_info.clone(),
        }
    }

    /// Sends an encoded push, after the reply to the connect command.
    pub(crate) fn push(&self, push: Result<Bytes, NotJson>) {
        let Ok(push) = push else { return self.cannot_read() };
        let mut early = self.early.lock();
        match &mut *early {
            Some(early) => early.push(push),
            None => {
                drop(early);
                self.outbox.push(push);
            }
        }
    }

    /// Ends the connection, because it speaks JSON and something for it is none.
    pub(crate) fn cannot_read(&self) {
        tracing::warn!(client = %self.id, "bytes were published to a client that speaks JSON");
        self.outbox.close(DisconnectCode::InappropriateProtocol);
    }

    /// The reply to the connect command is queued.
    pub(crate) fn go_live(&self) {
        let mut early = self.early.lock();
        // Under the lock, so that nothing overtakes what came early.
        for push in early.take().into_iter().flatten() {
            self.outbox.push(push);
        }
    }

    /// Takes a place for a subscription that is about to be made.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        channel: &Arc<str>,
        len_max: usize,
    ) -> Result<Reserved, Full> {
        let mut subscriptions = self.subscriptions.lock();
        let Some(subscriptions) = &mut *subscriptions else { return Err(Full::Ended) };
        if subscriptions.contains_key(channel) {
            return Err(Full::Already);
        }
        if subscriptions.len() >= len_max {
            return Err(Full::TooMany);
        }
        subscriptions.insert(channel.clone(), Held { ends_at: 0, is_pending: true });
        Ok(Reserved { connection: self.clone(), channel: channel.clone() })
    }

    /// The subscription stands, or has a new end. `false`: it is not wanted any more.
    pub(crate) fn hold(&self, channel: &str, ends_at: i64) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        let held = subscriptions.as_mut().and_then(|all| all.get_mut(channel));
        held.map(|held| *held = Held { ends_at, is_pending: false }).is_some()
    }

    /// Returns whether there was one.
    pub(crate) fn forget(&self, channel: &str) -> bool {
        self.subscriptions.lock().as_mut().is_some_and(|all| all.remove(channel).is_some())
    }

    pub(crate) fn subscription(&self, channel: &str) -> Option<Held> {
        let subscriptions = self.subscriptions.lock();
        let held = subscriptions.as_ref()?.get(channel).copied()?;
        (!held.is_pending).then_some(held)
    }

    /// Takes no further subscriptions; returns the channels of all there are, also of those that
    /// are about to be made.
    pub(crate) fn end_all(&self) -> Vec<Arc<str>> {
        self.subscriptions.lock().take().into_iter().flatten().map(|(channel, _)| channel).collect()
    }

    pub(crate) fn set_end(&self, ends_at: i64) {
        self.end.store(ends_at, Ordering::Relaxed);
    }

    pub(crate) fn ends_at(&self) -> i64 {
        self.end.load(Ordering::Relaxed)
    }
}

/// The place of a subscription that is about to be made: given back, unless it was made.
#[derive(Debug)]
pub(crate) struct Reserved {
    connection: Arc<Connection>,
    channel: Arc<str>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut subscriptions = self.connection.subscriptions.lock();
        let Some(all) = &mut *subscriptions else { return };
        if all.get(&self.channel).is_some_and(|held| held.is_pending) {
            all.remove(&self.channel);
        }
    }
}
