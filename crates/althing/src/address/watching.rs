//! Takes actors off the lists that others keep of them: who watches, who is linked, whose child it
//! is.

use std::sync::Arc;

use crate::address::place::AnyPlace;
use crate::address::tie::{TieNumber, remove_until};

/// Takes a watcher off an actor's list, unless it has begun to watch later.
pub(crate) fn forget_watcher(place: &Arc<dyn AnyPlace>, watcher: u64, number: TieNumber) {
    let mut inner = place.header().mailbox.lock();
    let extras = inner.extras.as_mut();
    let gone = extras.and_then(|extras| remove_until(&mut extras.watchers, watcher, number));
    // Released before dropping: the last reference to an actor may go.
    drop(inner);
    drop(gone);
}

/// Takes an actor of whose end the watcher hears off the list of those that it watches, unless it
/// watches the next life already. The caller holds the watcher's claim, so that no handler of it
/// begins another watch meanwhile.
pub(crate) fn end_watch(watcher: &Arc<dyn AnyPlace>, ended: u64) {
    let header = watcher.header();
    let watched = header.mailbox.lock().extras().watched.get(&ended).cloned();
    let watches_on = watched.and_then(|watched| watched.other.upgrade()).is_some_and(|place| {
        let inner = place.header().mailbox.lock();
        inner.extras.as_ref().is_some_and(|extras| extras.watchers.contains_key(&header.serial()))
    });
    if !watches_on {
        // Even a weak reference keeps the memory of a place.
        header.mailbox.lock().extras().watched.remove(&ended);
    }
}

/// Takes an actor whose life has ended off the list of those that another one is linked to, unless
/// the link is later.
pub(crate) fn forget_link(place: &Arc<dyn AnyPlace>, ended: u64, number: TieNumber) {
    let mut inner = place.header().mailbox.lock();
    let extras = inner.extras.as_mut();
    let gone = extras.and_then(|extras| remove_until(&mut extras.linked, ended, number));
    // Released before dropping, as above.
    drop(inner);
    drop(gone);
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
