//! Actors that live on other nodes, as the end of their address's node sees them; and one that sleeps
//! while a handler still has a lane to it. The cluster here is a word that the test writes.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use althing::remote::{Cargo, Cluster, Control, Location, Parcel};
use althing::{Actor, ActorId, ActorOptions, Epoch, Node, StopReason, actor};
use parking_lot::Mutex;

use crate::support::{On, act, flex, settle, soon, within};

const HERE: Location = Location::Here(Epoch(1));

/// Says where every actor lives, and keeps the numbers of watches of what is sent there.
struct World(Mutex<Location>, Mutex<Vec<u64>>);

impl Cluster for World {
    fn locate(&self, _: &ActorId) -> Location {
        *self.0.lock()
    }

    fn poll_room(&self, _: &ActorId, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn send(&self, parcel: Parcel) {
        if let Cargo::Control(Control::Watch { number, .. }) = parcel.cargo {
            self.1.lock().push(number);
        }
    }
}

struct Traveller;

#[actor(name = "test.traveller", wire)]
impl Traveller {
    async fn greet(&mut self) -> u32 {
        7
    }
}

fn node_in(location: Location) -> (Node, Arc<World>) {
    let world = Arc::new(World(Mutex::new(location), Mutex::default()));
    let builder = Node::builder("here").cluster(world.clone());
    (builder.actor(async |_| Ok(Traveller)).build(), world)
}

/// Of an actor without a name that another node has started.
fn stranger() -> ActorId {
    node_in(HERE).0.spawn(Traveller).id()
}

#[test]
fn who_awaits_the_end_of_an_actor_elsewhere_does_not_outwait_the_end_of_the_node() {
    within(On::PausedTime, async {
        for is_killed in [false, true] {
            let (node, _world) = node_in(Location::Elsewhere);
            let named = node.get::<Traveller>("a");
            let foreign = node.resolve::<Traveller>(&stranger()).expect("there is a cluster");
            let waiting = [named, foreign].map(|other| tokio::spawn(other.stopped()));
            settle().await;
            assert!(waiting.iter().all(|wait| !wait.is_finished()));
            if is_killed {
                node.kill();
            } else {
                node.shutdown(Duration::from_secs(1)).await;
            }
            for wait in waiting {
                soon("the end", wait).await.unwrap();
            }
        }
    });
}

/// Nobody tells of an end here: its former node may be gone.
#[test]
fn who_awaits_the_end_of_an_actor_that_comes_here_looks_whether_it_lives() {
    within(On::PausedTime, async {
        let (node, world) = node_in(Location::Elsewhere);
        let waiting = tokio::spawn(node.get::<Traveller>("a").stopped());
        settle().await;
        assert!(!waiting.is_finished());
        *world.0.lock() = HERE;
        assert_eq!(node.relocate(), []);
        soon("the end", waiting).await.unwrap();
    });
}

#[test]
fn the_end_of_an_actor_without_a_name_is_also_for_who_begins_to_await_it_meanwhile() {
    within(On::PausedTime, async {
        let (node, world) = node_in(Location::Elsewhere);
        let named = node.get::<Traveller>("a");
        let foreign = node.resolve::<Traveller>(&stranger()).expect("there is a cluster");
        for (other, is_last) in [(named, false), (foreign, true)] {
            let early = tokio::spawn(other.stopped());
            settle().await;
            let number = *world.1.lock().last().expect("its node was told");
            let late = tokio::spawn(other.stopped());
            settle().await;
            let ended = Control::Ended { reason: StopReason::Requested, number };
            let word = Parcel { to: other.id(), node: None, cargo: Cargo::Control(ended) };
            assert!(node.deliver(word).is_ok());
            soon("the end", early).await.unwrap();
            settle().await;
            assert_eq!(late.is_finished(), is_last, "a name has a next life");
        }
    });
}

#[test]
fn addresses_of_actors_elsewhere_refuse_after_a_shutdown_too() {
    within(On::PausedTime, async {
        let (node, _world) = node_in(HERE);
        let (early, late) = (stranger(), stranger());
        let early = node.resolve::<Traveller>(&early).expect("there is a cluster");
        assert!(early.greet().try_tell().is_ok());
        node.shutdown(Duration::from_secs(1)).await;
        let late = node.resolve::<Traveller>(&late).expect("there is a cluster");
        for address in [early, late] {
            assert!(address.is_stopped());
            assert!(address.greet().try_tell().is_err());
        }
    });
}

#[test]
fn a_node_is_freed_after_its_shutdown_though_addresses_of_other_nodes_are_resolved_later() {
    within(On::PausedTime, async {
        let (node, _world) = node_in(HERE);
        node.shutdown(Duration::from_secs(1)).await;
        drop(node.resolve::<Traveller>(&stranger()));
        let weak = node.downgrade();
        drop(node);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(weak.upgrade().is_none());
    });
}

/// Its handler holds its thread, so that its lane stays open while the other ends.
#[test]
fn who_sleeps_is_not_named_as_misplaced_though_a_handler_has_a_lane_to_it() {
    within(On::Workers(2), async {
        let (node, world) = node_in(HERE);
        let sleeper = node.get::<Traveller>("a");
        let (found, misplaced) = tokio::sync::oneshot::channel();
        let teller = flex(&node);
        let telling = move || {
            for _ in 0..3 {
                // By a lane, from the second on.
                sleeper.greet().try_tell().unwrap();
            }
            let ending = sleeper.clone();
            // From elsewhere, because who stops it hands over its own lane.
            let stopping = std::thread::spawn(move || {
                while !ending.is_active() {
                    std::thread::yield_now();
                }
                drop(ending.stop());
            });
            stopping.join().unwrap();
            while sleeper.is_active() {
                std::thread::yield_now();
            }
            // Its last hook has begun by now, and has nothing to wait for.
            std::thread::sleep(Duration::from_millis(20));
            *world.0.lock() = Location::Elsewhere;
            found.send(node.relocate()).unwrap();
        };
        let telling = act(move |_, _| tokio::task::block_in_place(telling));
        teller.send(telling).try_tell().unwrap();
        assert_eq!(soon("the look", misplaced).await, Ok(Vec::new()));
    });
}

/// Whose options are taken from what its node says of another actor.
struct Curious;

static ASKED: Mutex<Option<(Node, ActorId)>> = Mutex::new(None);

impl Actor for Curious {
    const NAME: &'static str = "test.curious";

    fn options() -> ActorOptions {
        let asked = ASKED.lock().take();
        if let Some((node, other)) = asked {
            node.resolve::<Traveller>(&other).expect("there is a cluster");
        }
        ActorOptions::default()
    }
}

#[test]
fn the_options_of_a_type_may_use_the_node_as_an_address_of_another_one_is_resolved() {
    within(On::PausedTime, async {
        let (node, _world) = node_in(HERE);
        let curious = node_in(HERE).0.spawn(Curious).id();
        *ASKED.lock() = Some((node.clone(), stranger()));
        assert!(node.resolve::<Curious>(&curious).is_some());
        assert!(ASKED.lock().is_none(), "its options were looked at");
    });
}
