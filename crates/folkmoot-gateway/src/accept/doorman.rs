//! Who is inside: how many connections in all and from one address, and which of them have not
//! said yet who they are.
//!
//! When there is no room, the newcomer takes the place of the oldest one that has not: a crowd of
//! sockets that are silent, or ask for pages, keeps nobody out, because each of them only stays
//! until the next comes.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::client_address::{Network, owner};
use crate::carrier::{Carrier, Carriers};

/// How many may be inside.
#[derive(Debug, Clone)]
pub struct Room {
    /// In all.
    pub connections_max: usize,
    /// From one address, or one network of an IPv6 customer.
    pub per_address_max: usize,
    /// Proxies and this machine itself bring the connections of many.
    pub unlimited: Vec<Network>,
}

/// Counts the connections, and decides who gets a place.
#[derive(Debug)]
pub struct Doorman {
    room: Room,
    inside: Mutex<Inside>,
    count: watch::Sender<usize>,
    /// Made with the first connection that needs one.
    carriers: OnceLock<Carriers>,
}

#[derive(Debug, Default)]
struct Inside {
    next_id: u64,
    count: usize,
    /// Only of addresses that are limited.
    by_address: HashMap<IpAddr, usize>,
    /// Those who have said nothing, the oldest first.
    silent: BTreeMap<u64, Silent>,
}

#[derive(Debug)]
struct Silent {
    address: Option<IpAddr>,
    leave: Arc<Notify>,
}

/// One connection, from the moment it was accepted; leaves when dropped.
#[derive(Debug)]
pub struct Visit {
    doorman: Arc<Doorman>,
    id: u64,
    /// `None`: not limited.
    address: Option<IpAddr>,
    leave: Arc<Notify>,
}

impl Doorman {
    /// Nobody is inside yet.
    pub fn new(room: Room) -> Arc<Self> {
        Arc::new(Self {
            room,
            inside: Mutex::default(),
            count: watch::Sender::new(0),
            carriers: OnceLock::new(),
        })
    }

    /// Lets a connection in, or not.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Visit> {
        let is_limited = !self.room.unlimited.iter().any(|network| network.contains(peer));
        let address = is_limited.then(|| owner(peer));
        let mut inside = self.inside.lock();
        let of_address = address.and_then(|address| inside.by_address.get(&address));
        if of_address.is_some_and(|count| *count >= self.room.per_address_max) {
            inside.ask_to_leave(|silent| silent.address == address)?;
        } else if inside.count >= self.room.connections_max {
            inside.ask_to_leave(|_| true)?;
        }
        inside.count += 1;
        inside.next_id += 1;
        if let Some(address) = address {
            *inside.by_address.entry(address).or_default() += 1;
        }
        let (id, leave) = (inside.next_id, Arc::new(Notify::new()));
        inside.silent.insert(id, Silent { address, leave: leave.clone() });
        self.count.send_replace(inside.count);
        Some(Visit { doorman: self.clone(), id, address, leave })
    }

    /// Waits until nobody is inside.
    pub async fn emptied(&self) {
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Inside {
    /// Asks the oldest silent one of some to leave; `None` if there is none.
    fn ask_to_leave(&mut self, is_one: impl Fn(&Silent) -> bool) -> Option<()> {
        let (id, _) = self.silent.iter().find(|(_, silent)| is_one(silent))?;
        let silent = self.silent.remove(&id.clone())?;
        silent.leave.notify_one();
        Some(())
    }
}

impl Visit {
    /// The client has said who it is: it may stay.
    pub fn has_spoken(&self) {
        self.doorman.inside.lock().silent.remove(&self.id);
    }

    /// Whether the client has said who it is.
    pub(super) fn is_known(&self) -> bool {
        !self.doorman.inside.lock().silent.contains_key(&self.id)
    }

    /// Who brings the connection what is pushed to it.
    pub(crate) fn carrier(&self) -> Arc<Carrier> {
        self.doorman.carriers.get_or_init(Carriers::new).for_newcomer()
    }

    /// Ends the connection, whatever it is doing.
    pub(crate) fn end(&self) {
        self.leave.notify_one();
    }

    /// Waits until somebody else needs the place.
    pub async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut inside = self.doorman.inside.lock();
        inside.count -= 1;
        inside.silent.remove(&self.id);
        if let Some(address) = self.address
            && let Some(count) = inside.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                inside.by_address.remove(&address);
            }
        }
        self.doorman.count.send_replace(inside.count);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn doorman(connections_max: usize, per_address_max: usize) -> Arc<Doorman> {
        let unlimited = vec!["127.0.0.0/8".parse().unwrap()];
        Doorman::new(Room { connections_max, per_address_max, unlimited })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn must_leave(visit: &Visit) -> bool {
        visit.asked_to_leave().now_or_never().is_some()
    }

    #[test]
    fn a_newcomer_takes_the_place_of_the_oldest_silent_one() {
        let doorman = doorman(3, 100);
        let guests: Vec<Visit> =
            ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|at| doorman.enter(ip(at)).unwrap()).into();
        guests[0].has_spoken();
        let fourth = doorman.enter(ip("192.0.2.4")).expect("the second leaves for it");
        assert_eq!(guests.iter().map(must_leave).collect::<Vec<_>>(), [false, true, false]);
        guests[2].has_spoken();
        fourth.has_spoken();
        assert!(doorman.enter(ip("192.0.2.5")).is_none(), "all of them have spoken");
        drop(guests);
        assert!(doorman.enter(ip("192.0.2.5")).is_some());
    }

    #[test]
    fn one_address_takes_only_its_share() {
        let doorman = doorman(100, 2);
        let guests: Vec<Visit> = (0..2).map(|_| doorman.enter(ip("192.0.2.1")).unwrap()).collect();
        guests.iter().for_each(Visit::has_spoken);
        assert!(doorman.enter(ip("192.0.2.1")).is_none());
        assert!(doorman.enter(ip("192.0.2.2")).is_some());
        // One customer's network has more IPv6 addresses than there are people.
        let first = doorman.enter(ip("2001:db8::1")).unwrap();
        let second = doorman.enter(ip("2001:db8::2")).unwrap();
        let _third = doorman.enter(ip("2001:db8::3")).expect("in place of the first");
        assert!(must_leave(&first) && !must_leave(&second));
        assert!(doorman.enter(ip("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn proxies_bring_as_many_as_there_is_room_for() {
        let doorman = doorman(5, 1);
        let guests: Vec<_> = (0..5).map(|_| doorman.enter(ip("127.0.0.1")).unwrap()).collect();
        guests.iter().for_each(Visit::has_spoken);
        assert!(doorman.enter(ip("127.0.0.1")).is_none());
    }

    #[tokio::test]
    async fn it_is_known_when_everybody_has_left() {
        let doorman = doorman(5, 5);
        let guest = doorman.enter(ip("127.0.0.1"));
        assert!(doorman.emptied().now_or_never().is_none());
        drop(guest);
        doorman.emptied().await;
    }
}
