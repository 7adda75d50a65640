//! Takes actors off the lists that others keep of them: who watches, who is linked, whose child it
//! is.

use std::sync::{Arc, Weak};

use crate::address::place::AnyPlace;
use crate::address::tie::{TieNumber, Ties, remove_until};
use crate::remote::outgoing::{left_by_all, ship_unwatch};

/// Takes a watcher off an actor's list, unless it has begun to watch later.
pub(crate) fn forget_watcher(place: &Arc<dyn AnyPlace>, watcher: u64, number: TieNumber) {
    let mut inner = place.header().mailbox.lock();
    let extras = inner.extras.as_mut();
    let gone = extras.and_then(|extras| remove_until(&mut extras.watchers, watcher, number));
    let until = gone.as_ref().and_then(|_| left_by_all(&inner));
    // Released before dropping: the last reference to an actor may go.
    drop(inner);
    drop(gone);
    ship_unwatch(place, until);
}

/// Takes a watcher whose life is over off the lists of all that it watched.
pub(crate) fn leave_watched(place: &Arc<dyn AnyPlace>, watched: &Ties<Weak<dyn AnyPlace>>) {
    for watch in watched.values() {
        if let Some(watched) = watch.other.upgrade() {
            forget_watcher(&watched, place.header().serial(), watch.number);
        }
    }
}

/// Takes an actor of whose end the watcher hears off the list of those that it watches, unless it
/// has begun to watch the next life: the news are of the watch of that number.
pub(crate) fn end_watch(watcher: &Arc<dyn AnyPlace>, ended: u64, number: TieNumber) {
    let mut inner = watcher.header().mailbox.lock();
    let extras = inner.extras.as_mut();
    let gone = extras.and_then(|extras| remove_until(&mut extras.watched, ended, number));
    // Released before dropping. Even a weak reference keeps the memory of a place.
    drop(inner);
    drop(gone);
}

/// Takes an actor whose life has ended off the list of those that another one is linked to, unless
/// the link is later.
pub(crate) fn forget_link(place: &Arc<dyn AnyPlace>, ended: u64, number: TieNumber) {
    let mut inner = place.header().mailbox.lock();
    let extras = inner.extras.as_mut();
    let gone = extras.and_then(|extras| remove_until(&mut extras.linked, ended, number));
    let until = gone.as_ref().and_then(|_| left_by_all(&inner));
    // Released before dropping, as above.
    drop(inner);
    drop(gone);
    ship_unwatch(place, until);
}

/// Takes an actor off the list of its parent's children.
pub(crate) fn leave_parent(parent: &Arc<dyn AnyPlace>, child: &Arc<dyn AnyPlace>) {
    let mut inner = parent.header().mailbox.lock();
    let Some(extras) = &mut inner.extras else { return };
    let gone = extras.children.remove(&child.header().serial());
    // Released before dropping: the last reference to an actor may go.
    drop(inner);
    drop(gone);
}
