//! The topics of a node, by name and type. It holds them weakly: a topic lives as long as somebody
//! has a handle of it, and takes its entry along when it goes.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::published::TopicName;
use super::view::TopicView;
use crate::epoch::Epoch;
use crate::remote::topics::{Arriving, NotTaken};
use crate::shield::discard;

/// A topic whose type is forgotten.
pub(crate) trait AnyTopic: Any + Send + Sync {
    /// What an onlooker sees of it.
    fn view(&self) -> TopicView;
    /// Ends its streams, because the node ends.
    fn close(&self);
    /// Delivers an event that another node published.
    fn take(self: Arc<Self>, event: Arriving<'_>) -> Result<(), NotTaken>;
    /// Events of another node may be lost.
    fn doubt(&self);
    /// The publisher of that epoch, on another node, is no more.
    fn release_elsewhere(&self, epoch: Epoch);
}

/// The topics of a node.
#[derive(Default)]
pub(crate) struct Topics {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_name: HashMap<(TypeId, TopicName), Weak<dyn AnyTopic>>,
    is_closed: bool,
}

impl Topics {
    /// The topic of that name and of events of type `T`, made by `make` if there is none: told
    /// whether the node has ended.
    pub(super) fn get_or_make<T: Send + Sync + 'static, S: AnyTopic>(
        &self,
        name: &TopicName,
        make: impl Fn(bool) -> Arc<S>,
    ) -> Arc<S> {
        let mut inner = self.inner.lock();
        let is_closed = inner.is_closed;
        let mut made = None;
        let mut make = || {
            let topic = make(is_closed);
            let weak: Weak<S> = Arc::downgrade(&topic);
            made = Some(topic);
            weak
        };
        let known = match inner.by_name.entry((TypeId::of::<T>(), name.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(make());
                None
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get().upgrade();
                if known.is_none() {
                    // It is about to take its entry along, which is no longer its own then.
                    entry.insert(make());
                }
                known
            }
        };
        // Unlocked before a handle can be dropped, which may take the lock.
        drop(inner);
        match known {
            Some(known) => {
                let known: Arc<dyn Any + Send + Sync> = known;
                known.downcast().expect("an entry holds the topic of its own type")
            }
            None => made.expect("what is not known was made"),
        }
    }

    /// The topic of that name and type, if somebody holds it.
    pub(super) fn held(&self, type_id: TypeId, name: &str) -> Option<Arc<dyn AnyTopic>> {
        let inner = self.inner.lock();
        let held = inner.by_name.get(&(type_id, name.into())).and_then(Weak::upgrade);
        drop(inner);
        held
    }

    /// Takes out the entry of the topic at `place`, which is being dropped.
    pub(super) fn forget<T: 'static>(&self, name: &TopicName, place: *const ()) {
        let mut inner = self.inner.lock();
        if let Entry::Occupied(entry) = inner.by_name.entry((TypeId::of::<T>(), name.clone()))
            && entry.get().as_ptr().cast::<()>() == place
        {
            entry.remove();
        }
        if inner.by_name.capacity() > 4 * inner.by_name.len() + ENTRIES_KEPT {
            inner.by_name.shrink_to_fit();
        }
    }

    /// The topics whose names hold `text` and come after `after`, by name: the first `limit` of
    /// them, and how many more there are.
    pub(crate) fn views(&self, text: &str, after: &str, limit: usize) -> (Vec<TopicView>, usize) {
        let inner = self.inner.lock();
        let is_wanted = |name: &str| name > after && name.contains(text);
        let wanted = inner.by_name.iter().filter(|((_, name), _)| is_wanted(name));
        let mut topics: Vec<_> =
            wanted.map(|((_, name), topic)| (name.clone(), topic.clone())).collect();
        drop(inner);
        topics.sort_by(|one, other| one.0.cmp(&other.0));
        // Two types may share a name: a page ends between names, or the next would leave one out.
        let mut end = limit.min(topics.len());
        while end > 0 && end < topics.len() && topics[end].0 == topics[end - 1].0 {
            end += 1;
        }
        let left = topics.len() - end;
        // Upgraded after the lock: if the last handle goes meanwhile, the topic ends here, and
        // takes its entry out under the same lock.
        let living = topics[..end].iter().filter_map(|(_, topic)| topic.upgrade());
        (living.map(view_of).collect(), left)
    }

    /// Ends all streams, and those that are still to come.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        let topics: Vec<_> = inner.by_name.values().filter_map(Weak::upgrade).collect();
        drop(inner);
        for topic in topics {
            topic.close();
        }
    }

    /// Topics that somebody holds.
    #[cfg(all(test, not(althing_loom)))]
    fn len(&self) -> usize {
        self.inner.lock().by_name.len()
    }
}

fn view_of(topic: Arc<dyn AnyTopic>) -> TopicView {
    let view = topic.view();
    discard("the drop of a topic", topic);
    view
}

/// Places that an almost empty table keeps.
const ENTRIES_KEPT: usize = 64;

#[cfg(all(test, not(althing_loom)))]
mod tests {
    use crate::node::shared::Node;
    use crate::topic::TopicOptions;

    #[tokio::test]
    async fn the_registry_keeps_no_entry_of_a_topic_that_nobody_holds() {
        let node = Node::builder("registry").build();
        for n in 0..10_000 {
            let topic = node.topic::<u64>(format!("topic {n}"), TopicOptions::default());
            topic.publish(n).expect("nobody owns it");
        }
        assert_eq!(node.shared().holdings().topics.len(), 0);
        let inner = node.shared().holdings().topics.inner.lock();
        assert!(inner.by_name.capacity() < 1_000, "{}", inner.by_name.capacity());
    }

    #[tokio::test]
    async fn one_name_is_one_topic_per_type_while_it_is_held() {
        let node = Node::builder("registry").build();
        let numbers = node.topic::<u64>("t", TopicOptions::default());
        let words = node.topic::<String>("t", TopicOptions::default());
        numbers.publish(1).expect("nobody owns it");
        assert_eq!(node.topic::<u64>("t", TopicOptions::default()).last().0, 1);
        assert_eq!((words.last().0, node.shared().holdings().topics.len()), (0, 2));
        drop(numbers);
        assert_eq!(node.topic::<u64>("t", TopicOptions::default()).last().0, 0);
        assert_eq!(node.shared().holdings().topics.len(), 1);
    }
}
