//! The owner of a topic's numbering: one publisher at a time, fenced by its epoch.

use std::sync::Arc;

use super::Topic;
use super::author::Author;
use super::published::Sequence;
use super::refusal::{Fenced, PublishError};
use super::sealed::Sealed;
use super::shared::Shared;
use crate::epoch::Epoch;

/// The one that publishes to a topic, under an epoch, with numbers of its own if it has some.
///
/// While it lives, [`Topic::publish`] is refused. A publisher of a higher epoch takes the topic
/// over, and this one is refused from then on. Dropping it leaves the topic without an owner; its
/// epoch stays taken.
///
/// Numbers rise strictly over all owners of a topic, so that a subscriber sees one rising sequence
/// whoever publishes.
///
/// ```
/// use althing::{Epoch, Node, PublishError, Sequence, TopicOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("log").build();
/// let records = node.topic::<&str>("records", TopicOptions::default());
///
/// let first = records.publisher(Epoch(1))?;
/// first.publish_at(Sequence(40), "an offset of the log")?;
/// assert_eq!(first.publish("the next one")?, Sequence(41));
/// assert!(records.publish("not by the owner").is_err());
///
/// // Another one takes over; the first learns of it when it publishes, and has its payload back.
/// let second = records.publisher(Epoch(2))?;
/// let refused = first.publish("too late").unwrap_err();
/// assert!(matches!(&refused, PublishError::Fenced { fenced, .. } if fenced.current == Epoch(2)));
/// assert_eq!(refused.into_payload(), "too late");
/// assert_eq!(second.publish("goes on")?, Sequence(42));
/// # Ok(())
/// # }
/// ```
pub struct Publisher<T: Send + Sync + 'static> {
    shared: Arc<Shared<T>>,
    epoch: Epoch,
}

impl<T: Send + Sync + 'static> Publisher<T> {
    pub(super) fn claim(shared: &Arc<Shared<T>>, epoch: Epoch) -> Result<Self, Fenced> {
        shared.claim(epoch)?;
        Ok(Self { shared: shared.clone(), epoch })
    }

    /// The topic it publishes to.
    pub fn topic(&self) -> Topic<T> {
        Topic::from_shared(self.shared.clone())
    }

    /// The epoch it publishes under.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Position of the topic's last event.
    pub fn last(&self) -> Sequence {
        self.shared.last()
    }

    /// Publishes with the number after the last. Delivery is as with [`Topic::publish`].
    ///
    /// # Errors
    /// `Fenced` if a later publisher owns the topic, `NotAbove` after the last number that there
    /// is.
    pub fn publish(&self, payload: T) -> Result<Sequence, PublishError<T>> {
        self.shared.publish(Author::Owner(self.epoch), payload)
    }

    /// Publishes with a number of one's own, such as the offset in a log. Delivery is as with
    /// [`Topic::publish`].
    ///
    /// # Errors
    /// `Fenced` if a later publisher owns the topic, `NotAbove` if the number is not above the
    /// last.
    pub fn publish_at(&self, sequence: Sequence, payload: T) -> Result<(), PublishError<T>> {
        self.shared.publish(Author::OwnerAt(self.epoch, sequence), payload).map(drop)
    }
}

impl<T: Send + Sync + 'static> Sealed<T> for Publisher<T> {
    fn publish_with_the_turn(&self, payload: T) {
        self.shared.publish_with_the_turn(Author::Owner(self.epoch), payload);
    }
}

impl<T: Send + Sync + 'static> Drop for Publisher<T> {
    fn drop(&mut self) {
        self.shared.release(self.epoch);
    }
}

impl<T: Send + Sync + 'static> std::fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Publisher").field(&self.shared.name).field(&self.epoch).finish()
    }
}
