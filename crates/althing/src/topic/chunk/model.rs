//! Every interleaving of publishers, workers and those who come and go around one topic of chunks: `make loom`.
//!
//! The topic here is the real one in small: a lock for numbers and the list of chunks, and the real chunks. A deliverer's time is up
//! after each visit, so that every delivery is broken off wherever it can be.

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

use super::{Chunk, Delivered, Delivery, Listed, Role, Time};
use crate::sync::Mutex;

/// Preemptions of a thread in one execution; without a limit three threads take hours.
const PREEMPTIONS_MAX: usize = 3;

#[derive(Clone)]
struct Subscriber {
    id: u64,
    since: u32,
    heard: std::sync::Arc<std::sync::Mutex<Vec<u32>>>,
}

impl Listed for Subscriber {
    fn id(&self) -> u64 {
        self.id
    }
}

type Events = Chunk<Subscriber, u32>;

#[derive(Default)]
struct State {
    last: u32,
    last_id: u64,
    chunk: Option<Arc<Place>>,
}

struct Place {
    events: Events,
    /// Touched by who delivers: loom fails the model if two do so at once.
    delivering: UnsafeCell<()>,
}

struct Topic {
    state: Mutex<State>,
}

impl Topic {
    fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::default()) })
    }

    fn subscribe(&self) -> (Subscriber, Arc<Place>) {
        let mut state = self.state.lock();
        state.last_id += 1;
        let (id, since) = (state.last_id, state.last);
        let subscriber = Subscriber { id, since, heard: std::sync::Arc::default() };
        let place = state
            .chunk
            .get_or_insert_with(|| {
                let (events, delivering) = (Chunk::new(), UnsafeCell::new(()));
                Arc::new(Place { events, delivering })
            })
            .clone();
        place.events.add(subscriber.clone());
        (subscriber, place)
    }

    fn unsubscribe(&self, (subscriber, place): &(Subscriber, Arc<Place>)) {
        let mut state = self.state.lock();
        place.events.remove(subscriber.id);
        state.forget_if_empty(place);
    }

    fn publish(&self) {
        let mut state = self.state.lock();
        state.last += 1;
        let event = state.last;
        let Some(place) = state.chunk.clone() else { return };
        assert!(place.events.push(event).is_none());
        drop(state);
        if self.deliver(&place, Role::Publisher).wants_worker {
            while self.deliver(&place, Role::Worker).is_unfinished {}
        }
    }

    fn deliver(&self, place: &Arc<Place>, role: Role) -> super::Ended {
        let ended = place.events.deliver(role, |delivery: Delivery<'_, Subscriber, u32>| {
            place.delivering.with_mut(|_| ());
            let Some(subscriber) = delivery.subscribers.first() else {
                return (Delivered::default(), Time::Left);
            };
            if *delivery.event > subscriber.since {
                subscriber.heard.lock().expect("no panic").push(*delivery.event);
            }
            (Delivered { seen: 1, gone: Vec::new() }, Time::Up)
        });
        if ended.is_empty {
            self.state.lock().forget_if_empty(place);
        }
        ended
    }

    /// Nothing waits, and the chunk is there exactly if somebody is subscribed.
    fn is_settled(&self, subscribers: usize) -> bool {
        let state = self.state.lock();
        match &state.chunk {
            None => subscribers == 0,
            Some(place) => place.events.len() == subscribers && place.events.pending() == 0,
        }
    }
}

impl State {
    fn forget_if_empty(&mut self, place: &Arc<Place>) {
        if place.events.len() == 0
            && self.chunk.as_ref().is_some_and(|known| Arc::ptr_eq(known, place))
        {
            self.chunk = None;
        }
    }
}

fn heard(subscriber: &Subscriber) -> Vec<u32> {
    subscriber.heard.lock().expect("no panic").clone()
}

fn is_rising(events: &[u32]) -> bool {
    events.windows(2).all(|pair| pair[0] < pair[1])
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(model);
}

#[test]
fn two_publishers_reach_each_subscriber_once_and_in_order() {
    check(|| {
        let topic = Topic::new();
        let subscribers = [topic.subscribe(), topic.subscribe()];
        let other = topic.clone();
        let thread = thread::spawn(move || other.publish());
        topic.publish();
        thread.join().expect("the model's thread ends");
        for (subscriber, _) in &subscribers {
            assert_eq!(heard(subscriber), [1, 2]);
        }
        assert!(topic.is_settled(2));
    });
}

#[test]
fn who_stays_hears_everything_while_another_leaves() {
    check(|| {
        let topic = Topic::new();
        let leaves = topic.subscribe();
        let (stays, _place) = topic.subscribe();
        let (left, other) = (topic.clone(), topic.clone());
        let leaver = thread::spawn(move || {
            left.unsubscribe(&leaves);
            heard(&leaves.0)
        });
        let publisher = thread::spawn(move || other.publish());
        topic.publish();
        let leaver_heard = leaver.join().expect("the model's thread ends");
        publisher.join().expect("the model's thread ends");
        assert_eq!(heard(&stays), [1, 2]);
        assert!(is_rising(&leaver_heard), "{leaver_heard:?}");
        assert!(topic.is_settled(1));
    });
}

#[test]
fn who_comes_hears_everything_after_its_position_while_the_last_one_leaves() {
    check(|| {
        let topic = Topic::new();
        let leaves = topic.subscribe();
        let (left, other) = (topic.clone(), topic.clone());
        let leaver = thread::spawn(move || left.unsubscribe(&leaves));
        let publisher = thread::spawn(move || {
            other.publish();
            other.publish();
        });
        let (comes, _place) = topic.subscribe();
        leaver.join().expect("the model's thread ends");
        publisher.join().expect("the model's thread ends");
        let expected: Vec<_> = (comes.since + 1..=2).collect();
        assert_eq!(heard(&comes), expected);
        assert!(topic.is_settled(1));
    });
}

#[test]
fn a_chunk_goes_with_its_last_subscriber_in_the_middle_of_a_delivery() {
    check(|| {
        let topic = Topic::new();
        let (first, second) = (topic.subscribe(), topic.subscribe());
        let other = topic.clone();
        let publisher = thread::spawn(move || other.publish());
        topic.unsubscribe(&first);
        topic.unsubscribe(&second);
        publisher.join().expect("the model's thread ends");
        assert!(heard(&first.0).len() <= 1 && heard(&second.0).len() <= 1);
        assert!(topic.is_settled(0));
    });
}
