//! The channels of a connection, in the order of their names. A connection may follow thousands,
//! and most have a few: a sorted list takes what is in it and little more, where a table of the
//! same takes up to twice as much.

use std::num::NonZeroU64;

use althing::{Incarnation, Subscription};
use folkmoot_protocol::Channel;

use super::cursor::Cursor;

/// A full list makes room for this part of what it has.
const GROWTH: usize = 8;

/// A channel of the connection.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) channel: Channel,
    pub(super) cursor: Cursor,
    /// The life of the node that the connection has introduced itself to; `None` on a server alone.
    pub(super) home: Option<NonZeroU64>,
    /// Ends the delivery when dropped.
    _subscription: Subscription,
    /// Boxed: most connections look at one channel, and are told of many.
    pub(super) presence: Option<Box<Seen>>,
}

/// What a connection wants to know of the people in a channel.
#[derive(Debug, Default)]
pub(super) struct Seen {
    _comings: Option<Subscription>,
    /// How many users of it are on screen.
    pub(super) watched: usize,
}

/// By name.
#[derive(Debug, Default)]
pub(super) struct Channels(Vec<Joined>);

impl Seen {
    /// Of those who come and go.
    pub(super) fn told_by(comings: Subscription) -> Box<Self> {
        Box::new(Self { _comings: Some(comings), watched: 0 })
    }
}

impl Joined {
    /// Its publications are held until the cursor goes live.
    pub(super) fn new(
        channel: Channel,
        home: Option<Incarnation>,
        subscription: Subscription,
        presence: Option<Box<Seen>>,
    ) -> Self {
        let (cursor, home) = (Cursor::joining(), life(home));
        Self { channel, cursor, home, _subscription: subscription, presence }
    }
}

/// A life of a node in half of the room.
pub(super) fn life(home: Option<Incarnation>) -> Option<NonZeroU64> {
    home.and_then(|Incarnation(life)| NonZeroU64::new(life))
}

impl Channels {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Joined> {
        self.0.iter()
    }

    pub(super) fn has(&self, channel: Channel) -> bool {
        self.place(channel).is_ok()
    }

    pub(super) fn get(&self, channel: Channel) -> Option<&Joined> {
        self.place(channel).ok().map(|place| &self.0[place])
    }

    pub(super) fn get_mut(&mut self, channel: Channel) -> Option<&mut Joined> {
        self.place(channel).ok().map(|place| &mut self.0[place])
    }

    /// Adds one, instead of another of its name.
    pub(super) fn insert(&mut self, joined: Joined) {
        match self.place(joined.channel) {
            Ok(place) => self.0[place] = joined,
            Err(place) => {
                if self.0.len() == self.0.capacity() {
                    self.0.reserve_exact((self.0.len() / GROWTH).max(1));
                }
                self.0.insert(place, joined);
            }
        }
    }

    pub(super) fn remove(&mut self, channel: Channel) -> Option<Joined> {
        let place = self.place(channel).ok()?;
        Some(self.0.remove(place))
    }

    /// Takes all of them out.
    pub(super) fn take(&mut self) -> Vec<Joined> {
        std::mem::take(&mut self.0)
    }

    fn place(&self, channel: Channel) -> Result<usize, usize> {
        self.0.binary_search_by_key(&channel, |joined| joined.channel)
    }
}

#[cfg(test)]
mod tests {
    use althing::{Node, TopicOptions, actor};
    use folkmoot_protocol::{RoomId, UserId};

    use super::*;

    #[derive(Debug)]
    struct Listener;

    #[actor(name = "folkmoot.session.channels.listener")]
    impl Listener {
        #[event]
        async fn on_number(&mut self, _: &althing::Published<u64>) {}
    }

    #[tokio::test]
    async fn each_channel_is_found_under_its_name_until_it_is_removed() {
        let node = Node::builder("channels").build();
        let (topic, listener) = (node.topic("t", TopicOptions::default()), node.spawn(Listener));
        let joined = |channel| Joined::new(channel, None, topic.subscribe(&listener), None);
        let room = |id| Channel::Room(RoomId::from_u64(id));
        let user = Channel::User(UserId::from_u64(7));
        let mut channels = Channels::default();
        channels.insert(joined(user));
        // In an order that is neither up nor down.
        (0..100).for_each(|n| channels.insert(joined(room(n * 37 % 100))));
        channels.insert(joined(room(7)));
        assert_eq!(channels.len(), 101);
        assert!(channels.0.capacity() <= 101 + 101 / GROWTH, "{}", channels.0.capacity());
        assert!(channels.has(user) && (0..100).all(|n| channels.has(room(n))));
        assert!((0..100).step_by(2).all(|n| channels.remove(room(n)).is_some()));
        for n in 0..100 {
            assert_eq!(
                channels.get(room(n)).map(|found| found.channel == room(n)),
                (n % 2 == 1).then_some(true)
            );
            assert_eq!(channels.get_mut(room(n)).is_some(), channels.has(room(n)));
        }
        assert!(channels.remove(room(2)).is_none());
        assert_eq!((channels.take().len(), channels.len()), (51, 0));
    }
}
