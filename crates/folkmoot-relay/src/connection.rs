//! One open connection, as channels and the server API see it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use folkmoot_gateway::Outbox;
use folkmoot_protocol::frame::ClientInfo;
use folkmoot_protocol::{DisconnectCode, Format};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::task::AbortHandle;

use crate::payload::NotJson;
use crate::proxy::Origin;

#[derive(Debug)]
pub(crate) struct Connection {
    /// The connection's id.
    pub(crate) id: Arc<str>,
    /// A name of the connection that only its client and its backend know; `None`: the client was
    /// told none.
    session: Option<Box<str>>,
    /// Empty: anonymous.
    pub(crate) user: Arc<str>,
    /// What the backend says of the user; JSON.
    info: Mutex<Bytes>,
    /// What backends are told of the connection when they are asked.
    meta: Mutex<Option<Box<RawValue>>>,
    pub(crate) format: Format,
    pub(crate) outbox: Arc<Outbox>,
    /// How the client came.
    pub(crate) origin: Origin,
    /// The channels that its token has named.
    by_token: Mutex<BTreeSet<String>>,
    /// What ends it in time; `None`: it has no end.
    end: Mutex<Option<Watch>>,
    /// What came before the reply to the connect command was queued.
    early: Mutex<Option<Early>>,
    /// `None`: the connection has ended and takes none any more.
    subscriptions: Mutex<Option<BTreeMap<Arc<str>, Held>>>,
}

/// Pushes that wait until the connection is opened, as many as its queue takes: that has no reader yet.
#[derive(Debug, Default)]
struct Early {
    pushes: Vec<Bytes>,
    /// Of all but the first, as in the queue.
    bytes: usize,
}

/// A subscription of the connection.
#[derive(Debug)]
struct Held {
    /// What ends it in time; `None`: it has no end.
    end: Option<Watch>,
    /// Asked for, and not answered yet.
    is_pending: bool,
}

/// A task that waits for the end of something. It goes with what it watches, and when another end
/// takes its place: there are as many as there are ends, however long their time is.
#[derive(Debug)]
pub(crate) struct Watch(pub(crate) AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a connection takes no further subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Already,
    TooMany,
    Ended,
}

impl Early {
    /// Keeps a push, if the queue has room for it and those before it; returns whether it has.
    fn keep(&mut self, push: Bytes, queue: &Outbox) -> bool {
        if !self.pushes.is_empty() {
            self.bytes += Outbox::cost(&push);
        }
        let has_room = self.bytes <= queue.bytes_max();
        if has_room {
            self.pushes.push(push);
        }
        has_room
    }
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
            session: None,
            user,
            info: Mutex::new(info),
            meta: Mutex::new(None),
            format,
            outbox,
            origin: Origin::default(),
            by_token: Mutex::default(),
            end: Mutex::new(None),
            early: Mutex::new(Some(Early::default())),
            subscriptions: Mutex::new(Some(BTreeMap::new())),
        }
    }

    /// One whose client knows it by this name as well.
    pub(crate) fn known_as(self, session: Option<String>) -> Self {
        Self { session: session.map(String::into_boxed_str), ..self }
    }

    /// Whether it has this id and this session; an empty one is any.
    pub(crate) fn is(&self, client: &str, session: &str) -> bool {
        let is_session = || self.session.as_deref() == Some(session);
        (client.is_empty() || *self.id == *client) && (session.is_empty() || is_session())
    }

    /// From now on the backend says something else of the user.
    pub(crate) fn set_info(&self, info: Bytes) {
        *self.info.lock() = info;
    }

    /// From now on backends are told something else of the connection.
    pub(crate) fn set_meta(&self, meta: Option<Box<RawValue>>) {
        *self.meta.lock() = meta;
    }

    /// Its token has named these channels.
    pub(crate) fn note_named(&self, channels: BTreeSet<String>) {
        *self.by_token.lock() = channels;
    }

    /// Whether it would be another one if a token that names these channels had opened it: one of
    /// them it is not in, or its own token has named one that is not among them any more.
    pub(crate) fn differs(&self, named: &BTreeSet<String>) -> bool {
        let is_missing = named.iter().any(|channel| !self.has_place(channel));
        let gone = |channel: &String| !named.contains(channel) && self.has_place(channel);
        is_missing || self.by_token.lock().iter().any(gone)
    }

    /// What backends are told of the connection.
    pub(crate) fn meta(&self) -> Option<Box<RawValue>> {
        self.meta.lock().clone()
    }

    /// One that came like this.
    pub(crate) fn by(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// As others see it in a channel where the backend says `chan_info` of it.
    pub(crate) fn seen(&self, chan_info: &Bytes) -> ClientInfo {
        ClientInfo {
            user: self.user.to_string(),
            client: self.id.to_string(),
            conn_info: self.info.lock().clone(),
            chan_info: chan_info.clone(),
        }
    }

    /// Sends an encoded push, after the reply to the connect command.
    pub(crate) fn push(&self, push: Result<Bytes, NotJson>) {
        let Ok(push) = push else { return self.cannot_read() };
        let mut early = self.early.lock();
        match &mut *early {
            Some(waiting) => {
                if !waiting.keep(push, &self.outbox) {
                    // What comes from now on meets a queue that is closed.
                    *early = None;
                    self.outbox.close(DisconnectCode::Slow);
                }
            }
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
        for push in early.take().into_iter().flat_map(|early| early.pushes) {
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
        subscriptions.insert(channel.clone(), Held { end: None, is_pending: true });
        Ok(Reserved { connection: self.clone(), channel: channel.clone() })
    }

    /// Whether it has a subscription to the channel, or one is about to be made.
    pub(crate) fn has_place(&self, channel: &str) -> bool {
        self.subscriptions.lock().as_ref().is_some_and(|all| all.contains_key(channel))
    }

    /// The subscription stands. `false`: it is not wanted any more.
    pub(crate) fn hold(&self, channel: &str) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        let held = subscriptions.as_mut().and_then(|all| all.get_mut(channel));
        held.map(|held| held.is_pending = false).is_some()
    }

    /// Gives the subscription another end, if it stands.
    pub(crate) fn set_subscription_end(&self, channel: &str, end: Option<Watch>) {
        let mut subscriptions = self.subscriptions.lock();
        if let Some(held) = subscriptions.as_mut().and_then(|all| all.get_mut(channel)) {
            held.end = end;
        }
    }

    /// A subscription that is about to be made is not made. One that stands is for its owner to
    /// end: while that does not answer, it has to be known to whoever ends the connection.
    pub(crate) fn take_back(&self, channel: &str) {
        let mut subscriptions = self.subscriptions.lock();
        let Some(all) = &mut *subscriptions else { return };
        if all.get(channel).is_some_and(|held| held.is_pending) {
            all.remove(channel);
        }
    }

    /// Returns whether there was one.
    pub(crate) fn forget(&self, channel: &str) -> bool {
        self.subscriptions.lock().as_mut().is_some_and(|all| all.remove(channel).is_some())
    }

    pub(crate) fn is_subscribed(&self, channel: &str) -> bool {
        let subscriptions = self.subscriptions.lock();
        let held = subscriptions.as_ref().and_then(|all| all.get(channel));
        held.is_some_and(|held| !held.is_pending)
    }

    /// Whether it has a subscription to such a channel, or one is about to be made.
    pub(crate) fn is_in(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let subscriptions = self.subscriptions.lock();
        subscriptions.iter().flatten().any(|(channel, _)| is_meant(channel))
    }

    /// Takes no further subscriptions; returns the channels of all there are, also of those that
    /// are about to be made.
    pub(crate) fn end_all(&self) -> Vec<Arc<str>> {
        self.subscriptions.lock().take().into_iter().flatten().map(|(channel, _)| channel).collect()
    }

    /// Gives the connection another end.
    pub(crate) fn set_end(&self, end: Option<Watch>) {
        *self.end.lock() = end;
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
        self.connection.take_back(&self.channel);
    }
}

#[cfg(test)]
mod tests {
    use folkmoot_gateway::Next;
    use futures_util::FutureExt;

    use super::*;

    const QUEUE_BYTES: usize = 10_000;

    fn connection() -> Connection {
        let outbox = Arc::new(Outbox::new(QUEUE_BYTES));
        Connection::new("one".into(), "42".into(), Bytes::new(), Format::Json, outbox)
    }

    fn push(len: usize) -> Result<Bytes, NotJson> {
        Ok(Bytes::from(vec![b'x'; len]))
    }

    #[test]
    fn what_comes_before_a_connection_is_opened_is_bounded_in_bytes_and_ends_it_as_slow() {
        // Long ones, and many that are nearly empty.
        for len in [1_000, 1] {
            let connection = connection();
            let held = || connection.early.lock().as_ref().map_or(0, |early| early.pushes.len());
            let mut most = 0;
            for _ in 0..100_000 {
                connection.push(push(len));
                most = most.max(held());
            }
            assert!(most * len <= QUEUE_BYTES + len && most < 1_000, "{most} of {len}");
            assert_eq!(held(), 0);
            connection.go_live();
            let next = connection.outbox.next().now_or_never();
            assert_eq!(next, Some(Next::Close(DisconnectCode::Slow.into())));
        }
    }

    #[test]
    fn what_stands_is_known_until_its_owner_has_ended_it_and_what_does_not_is_taken_back() {
        let connection = Arc::new(connection());
        let channel: Arc<str> = "news".into();
        let place = connection.reserve(&channel, 1).unwrap();
        connection.take_back("news");
        assert!(!connection.hold("news"));
        drop(place);
        let place = connection.reserve(&channel, 1).unwrap();
        assert!(connection.hold("news"));
        drop(place);
        connection.take_back("news");
        assert_eq!(connection.end_all(), [channel]);
    }

    #[test]
    fn what_comes_before_a_connection_is_opened_follows_in_order_and_the_first_may_be_any_length() {
        let connection = connection();
        let lens = [3 * QUEUE_BYTES, 1, 2_000, 3];
        lens.iter().for_each(|len| connection.push(push(*len)));
        connection.go_live();
        let Some(Next::Messages(came)) = connection.outbox.next().now_or_never() else {
            panic!("it is closed")
        };
        assert_eq!(came.iter().map(Bytes::len).collect::<Vec<_>>(), lens);
    }
}
