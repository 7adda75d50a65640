//! The channels of a connection: how far each was sent, and what a few of them need besides. A
//! connection may follow thousands, and most are quiet: of these, five words are kept.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use althing::{Incarnation, Subscription};
use folkmoot_protocol::Channel;

use super::cursor::{Gap, Held, Sent};
use crate::sorted_map::SortedMap;
use crate::storage::{Offset, RoomId, UserId};
use crate::stream::Publication;

/// A channel of the connection.
#[derive(Debug)]
struct Joined {
    /// Of nothing, while it is among those being asked for.
    sent: Sent,
    /// The life of the node that the connection has introduced itself to; `None` on a server alone.
    home: Option<NonZeroU64>,
    /// Ends the delivery when dropped.
    _subscription: Subscription,
}

/// A channel whose position is being asked for.
#[derive(Debug)]
struct Joining {
    /// Of the question.
    number: u64,
    /// What comes is held for a moment.
    held: Held,
}

/// What a channel's new owner is asked: what came after an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) since: Offset,
}

/// What a connection wants to know of the people in a channel.
#[derive(Debug, Default)]
struct Seen {
    _comings: Option<Subscription>,
    /// How many users of it are on screen.
    watched: usize,
}

/// By name.
#[derive(Debug, Default)]
pub(super) struct Channels {
    rooms: SortedMap<RoomId, Joined>,
    /// The user's own stream, the only one of its kind that a connection follows.
    own: Option<(UserId, Joined)>,
    /// Those whose position is being asked for.
    joining: BTreeMap<Channel, Joining>,
    /// How many questions there were: a channel may be left and joined again amid one.
    questions: u64,
    /// Those that are looked at: most connections are told of many channels and look at one.
    seen: BTreeMap<Channel, Seen>,
}

/// A life of a node in half of the room.
pub(super) fn life(home: Option<Incarnation>) -> Option<NonZeroU64> {
    home.and_then(|Incarnation(life)| NonZeroU64::new(life))
}

impl Channels {
    pub(super) fn len(&self) -> usize {
        self.rooms.len() + usize::from(self.own.is_some())
    }

    pub(super) fn names(&self) -> Vec<Channel> {
        let own = self.own.iter().map(|(user, _)| Channel::User(*user));
        self.rooms.keys().map(Channel::Room).chain(own).collect()
    }

    pub(super) fn has(&self, channel: Channel) -> bool {
        match channel {
            Channel::Room(room) => self.rooms.contains_key(room),
            Channel::User(user) => self.own.as_ref().is_some_and(|(own, _)| *own == user),
        }
    }

    /// Whether its position is known and all that comes is sent on.
    pub(super) fn is_live(&self, channel: Channel) -> bool {
        self.has(channel) && !self.joining.contains_key(&channel)
    }

    /// Adds one, instead of another of its name; its publications are held until it goes live.
    pub(super) fn join(
        &mut self,
        channel: Channel,
        home: Option<Incarnation>,
        subscription: Subscription,
        comings: Option<Subscription>,
    ) {
        let sent = Sent::up_to(Offset::default());
        let joined = Joined { sent, home: life(home), _subscription: subscription };
        match channel {
            Channel::Room(room) => self.rooms.insert(room, joined),
            Channel::User(user) => self.own = Some((user, joined)),
        }
        self.begin_question(channel);
        if comings.is_some() {
            self.seen.insert(channel, Seen { _comings: comings, watched: 0 });
        }
    }

    /// Leaves one; says whether it was joined.
    pub(super) fn remove(&mut self, channel: Channel) -> bool {
        self.held_of(channel);
        self.seen.remove(&channel);
        match channel {
            Channel::Room(room) => self.rooms.remove(room).is_some(),
            Channel::User(_) if self.has(channel) => self.own.take().is_some(),
            Channel::User(_) => false,
        }
    }

    /// Whether to send a publication on now; one of a channel that is being joined is held.
    pub(super) fn take(&mut self, publication: &Arc<Publication>) -> Result<bool, Gap> {
        // Empty most of the time.
        if let Some(joining) = self.joining.get_mut(&publication.channel) {
            return joining.held.hold(publication).map(|()| false);
        }
        self.get_mut(publication.channel).map_or(Ok(false), |joined| joined.sent.take(publication))
    }

    /// Goes live after `position`; returns what was held and comes after it.
    pub(super) fn go_live(
        &mut self,
        channel: Channel,
        position: Offset,
    ) -> Result<Vec<Arc<Publication>>, Gap> {
        let Some(held) = self.held_of(channel) else { return Ok(Vec::new()) };
        let (after, sent) = held.release(position)?;
        if let Some(joined) = self.get_mut(channel) {
            joined.sent = sent;
        }
        Ok(after)
    }

    /// Holds again what comes, because the channel's owner lives at another home now; gives the
    /// question for it. `None`: it lives where it did, or its position is being asked for already.
    pub(super) fn rejoin(&mut self, channel: Channel, home: NonZeroU64) -> Option<Question> {
        if !self.is_live(channel) {
            return None;
        }
        let joined = self.get_mut(channel).filter(|joined| joined.home != Some(home))?;
        joined.home = Some(home);
        let since = joined.sent.offset();
        Some(Question { number: self.begin_question(channel), since })
    }

    /// Whether this question is under way: the channel was not left since, nor joined again.
    pub(super) fn is_asked(&self, channel: Channel, question: Question) -> bool {
        self.joining.get(&channel).is_some_and(|joining| joining.number == question.number)
    }

    /// From now on what comes is held; returns the number of the question.
    fn begin_question(&mut self, channel: Channel) -> u64 {
        self.questions += 1;
        let number = self.questions;
        self.joining.insert(channel, Joining { number, held: Held::default() });
        number
    }

    /// How many users are on screen in all channels but this one.
    pub(super) fn watched_elsewhere(&self, channel: Channel) -> usize {
        let others = self.seen.iter().filter(|(name, _)| **name != channel);
        others.map(|(_, seen)| seen.watched).sum()
    }

    /// So many users of a channel are on screen.
    pub(super) fn watch(&mut self, channel: Channel, users: usize) {
        self.seen.entry(channel).or_default().watched = users;
    }

    /// Takes out what is held of a channel. An empty tree would keep half a kibibyte.
    fn held_of(&mut self, channel: Channel) -> Option<Held> {
        let joining = self.joining.remove(&channel);
        if self.joining.is_empty() {
            self.joining = BTreeMap::new();
        }
        joining.map(|joining| joining.held)
    }

    fn get_mut(&mut self, channel: Channel) -> Option<&mut Joined> {
        match channel {
            Channel::Room(room) => self.rooms.get_mut(room),
            Channel::User(user) => {
                let own = self.own.as_mut().filter(|(own, _)| *own == user);
                own.map(|(_, joined)| joined)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use althing::{Node, TopicOptions, actor};
    use bytes::Bytes;

    use super::*;
    use crate::bytes_kept::bytes_kept;
    use crate::stream::Place;

    #[derive(Debug)]
    struct Listener;

    #[actor(name = "folkmoot.session.channels.listener")]
    impl Listener {
        #[event]
        async fn on_number(&mut self, _: &althing::Published<u64>) {}
    }

    fn room(id: u64) -> Channel {
        Channel::Room(RoomId::from_u64(id))
    }

    fn user(id: u64) -> Channel {
        Channel::User(UserId::from_u64(id))
    }

    fn at(channel: Channel, offset: u64) -> Arc<Publication> {
        let place = Place::At(Offset::from_u64(offset));
        Arc::new(Publication::new(channel, place, Bytes::from_static(b"{}")))
    }

    #[tokio::test]
    async fn each_channel_is_found_under_its_name_until_it_is_removed() {
        let node = Node::builder("channels").build();
        let (topic, listener) = (node.topic("t", TopicOptions::default()), node.spawn(Listener));
        let mut channels = Channels::default();
        let all = [user(7), room(9), room(7), room(8), room(7)];
        all.into_iter()
            .for_each(|name| channels.join(name, None, topic.subscribe(&listener), None));
        assert_eq!(channels.names(), [room(7), room(8), room(9), user(7)]);
        assert_eq!(channels.len(), 4);
        assert!(!channels.has(user(8)) && !channels.has(room(10)));
        assert!(!channels.remove(user(8)) && !channels.remove(room(10)));
        for name in [user(7), room(7), room(8), room(9)] {
            assert!(channels.has(name) && channels.remove(name) && !channels.has(name));
            assert!(!channels.remove(name));
        }
        assert_eq!(channels.len(), 0);
    }

    #[tokio::test]
    async fn what_comes_is_held_until_its_own_channel_is_live_and_again_when_its_home_is_another() {
        let node = Node::builder("channels").build();
        let (topic, listener) = (node.topic("t", TopicOptions::default()), node.spawn(Listener));
        let mut channels = Channels::default();
        for name in [room(1), user(1)] {
            channels.join(name, None, topic.subscribe(&listener), None);
        }
        assert_eq!(channels.take(&at(room(1), 6)), Ok(false));
        let after = channels.go_live(room(1), Offset::from_u64(5)).unwrap();
        assert_eq!(after.len(), 1);
        assert!(channels.is_live(room(1)) && !channels.is_live(user(1)));
        assert_eq!(channels.take(&at(room(1), 7)), Ok(true));
        assert_eq!(channels.take(&at(user(1), 7)), Ok(false));
        assert_eq!(channels.take(&at(room(2), 7)), Ok(false), "not joined");
        let home = NonZeroU64::new(3).unwrap();
        assert_eq!(channels.rejoin(user(1), home), None, "it is being joined");
        let asked = channels.rejoin(room(1), home).unwrap();
        assert_eq!(asked.since, Offset::from_u64(7));
        assert!(channels.is_asked(room(1), asked) && !channels.is_asked(user(1), asked));
        assert_eq!(channels.take(&at(room(1), 8)), Ok(false));
        assert_eq!(channels.go_live(room(1), Offset::from_u64(7)).unwrap().len(), 1);
        assert_eq!(channels.rejoin(room(1), home), None, "it has not moved");
        assert_eq!(channels.take(&at(room(1), 10)), Err(Gap));
    }

    #[tokio::test]
    async fn a_quiet_room_costs_five_words_beside_its_subscription() {
        let node = Node::builder("channels").build();
        let (topic, listener) = (node.topic("t", TopicOptions::default()), node.spawn(Listener));
        let mut subscriptions: Vec<_> = (0..64).map(|_| topic.subscribe(&listener)).collect();
        let mut channels = Channels::default();
        let ((), kept) = bytes_kept(|| {
            for (id, subscription) in (1..).zip(subscriptions.drain(..)) {
                channels.join(room(id), None, subscription, None);
            }
            for id in 1..=64 {
                channels.go_live(room(id), Offset::from_u64(5)).unwrap();
            }
        });
        // Five words each, and room for an eighth more.
        assert!(kept <= 64 * 45, "{kept}");
    }

    #[tokio::test]
    async fn who_is_on_screen_is_counted_by_channel_and_goes_with_it() {
        let mut channels = Channels::default();
        channels.watch(room(1), 3);
        channels.watch(room(2), 4);
        channels.watch(room(2), 5);
        assert_eq!(channels.watched_elsewhere(room(1)), 5);
        channels.remove(room(2));
        assert_eq!(channels.watched_elsewhere(room(1)), 0);
    }
}
