//! A topic that may be heard on other nodes: what it sends there, and what it takes from there.
//!
//! A topic of a node without a cluster, or whose events are not registered, has none of this.
//! Events of an owned topic keep epoch and number on each node; an event that anybody published
//! gets a number of the node that hears it.
//!
//! Invariant: whenever events may be missing before one, its `previous` is not the number before it
//! that this node knows, so that subscribers see a gap.

use std::sync::Arc;

use super::kinds::EventCodec;
use super::number::Number;
use super::published::{Sequence, TopicName};
use super::registry::AnyTopic;
use super::shared::{Shared, State};
use crate::epoch::Epoch;
use crate::node::shared::{Node, NodeShared};
use crate::remote::topics::{Arriving, Continuity, Listening, NotTaken, Place, TopicWay};

/// What a topic has if it may be heard elsewhere.
pub(super) struct Across<T> {
    codec: EventCodec<T>,
    way: Arc<dyn TopicWay>,
}

/// An encoded event that is longer than the nodes that listen can read.
pub(super) struct TooLong {
    pub(super) len: usize,
    pub(super) len_max: usize,
}

impl<T: Send + Sync + 'static> Across<T> {
    /// For a topic of that name; `None` if it stays on this node.
    pub(super) fn new(node: &NodeShared, topic: &TopicName, replay: usize) -> Option<Self> {
        let cluster = node.cluster.as_ref()?;
        let codec = node.holdings().events.codec::<T>()?;
        let way = cluster.topic(topic, codec.name, replay)?;
        Some(Self { codec, way })
    }

    /// Whether another node listens.
    pub(super) fn is_heard(&self) -> bool {
        self.way.len_max().is_some()
    }

    /// The event as it travels, once for all nodes that listen; `None` if there are none. Runs
    /// foreign code.
    pub(super) fn encode(&self, payload: &T) -> Result<Option<Vec<u8>>, TooLong> {
        let Some(len_max) = self.way.len_max() else { return Ok(None) };
        let mut body = Vec::new();
        (self.codec.encode)(payload, &mut body);
        let len = body.len();
        if len > len_max { Err(TooLong { len, len_max }) } else { Ok(Some(body)) }
    }

    /// The registered name of its events.
    pub(super) fn event(&self) -> &'static str {
        self.codec.name
    }

    pub(super) fn way(&self) -> &dyn TopicWay {
        &*self.way
    }
}

impl<T: Send + Sync + 'static> State<T> {
    /// Where an event from elsewhere stands here.
    fn number_of_arrival(
        &mut self,
        place: Option<Place>,
        continuity: Continuity,
    ) -> Result<Number, NotTaken> {
        let late = || NotTaken::Late { last: self.last, epoch: self.epoch.unwrap_or_default() };
        let is_unsure = self.is_unsure || continuity == Continuity::MayLeaveAGap;
        let number = match place {
            Some(Place { epoch, sequence }) => {
                if self.epoch.is_some_and(|own| own > epoch) || sequence <= self.last {
                    return Err(late());
                }
                let number = Number::chosen(sequence, self.last, is_unsure);
                self.epoch = Some(epoch);
                (self.is_owned, self.is_owner_elsewhere) = (true, true);
                number
            }
            None if self.is_owned => return Err(late()),
            None => match Number::next(self.last, None, is_unsure) {
                number if number.sequence <= self.last => return Err(late()),
                number => number,
            },
        };
        self.is_unsure = false;
        Ok(number)
    }
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// Tells the cluster that the first subscriber has come. What was said elsewhere while nobody
    /// listened here was not heard.
    pub(super) fn begin_to_listen(&self, state: &mut State<T>) {
        if let Some(across) = &self.across
            && !state.is_listening
        {
            state.is_listening = true;
            state.is_unsure |= state.last > Sequence(0);
            across.way().listen(Listening::Begins);
        }
    }

    /// Tells the cluster if the last subscriber has gone.
    pub(super) fn stop_listening_if_empty(&self, state: &mut State<T>) {
        if state.is_listening
            && state.has_nobody()
            && let Some(across) = &self.across
        {
            state.is_listening = false;
            // Who owns it elsewhere is not heard of from now on.
            state.is_owned &= !state.is_owner_elsewhere;
            across.way().listen(Listening::Ends);
        }
    }

    /// Delivers an event that another node published.
    pub(super) fn take_arriving(self: &Arc<Self>, event: Arriving<'_>) -> Result<(), NotTaken> {
        let Some(across) = &self.across else {
            return Err(NotTaken::Unregistered(self.name.to_string()));
        };
        let payload = match (across.codec.decode)(event.body) {
            Ok(payload) => payload,
            Err(error) => {
                self.state().is_unsure = true;
                return Err(error.into());
            }
        };
        let mut state = self.state();
        match state.number_of_arrival(event.place, event.continuity) {
            Ok(number) => {
                let own_epoch = state.epoch.unwrap_or_default();
                let epoch = event.place.map_or(own_epoch, |place| place.epoch);
                self.insert(state, epoch, number, payload);
                Ok(())
            }
            Err(late) => {
                // Unlocked before the payload is dropped.
                drop(state);
                Err(late)
            }
        }
    }
}

impl Node {
    /// Whether events of that name may come from other nodes.
    pub fn knows_event(&self, event: &str) -> bool {
        self.shared().holdings().events.type_of(event).is_some()
    }

    /// Takes an event that another node published, for the subscribers of this one. It is handed to
    /// them by the node's tasks, never by the caller.
    ///
    /// # Errors
    /// See [`NotTaken`]. Where nobody holds the topic there is nobody to tell: that is no error.
    pub fn take_event(
        &self,
        topic: &str,
        event: &str,
        arriving: Arriving<'_>,
    ) -> Result<(), NotTaken> {
        let Some(type_id) = self.shared().holdings().events.type_of(event) else {
            return Err(NotTaken::Unregistered(event.to_owned()));
        };
        match self.shared().holdings().topics.held(type_id, topic) {
            Some(topic) => topic.take(arriving),
            None => Ok(()),
        }
    }

    /// Says that events of that topic may have been lost, with a node that died: its subscribers
    /// see a gap before the next one.
    pub fn doubt_topic(&self, topic: &str, event: &str) {
        if let Some(topic) = self.held_topic(topic, event) {
            topic.doubt();
        }
    }

    /// Says that the publisher of that epoch, which was on another node, is no more.
    pub fn release_topic(&self, topic: &str, event: &str, epoch: Epoch) {
        if let Some(topic) = self.held_topic(topic, event) {
            topic.release_elsewhere(epoch);
        }
    }

    fn held_topic(&self, topic: &str, event: &str) -> Option<Arc<dyn AnyTopic>> {
        let type_id = self.shared().holdings().events.type_of(event)?;
        self.shared().holdings().topics.held(type_id, topic)
    }
}
