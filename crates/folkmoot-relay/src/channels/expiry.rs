//! When what has expired is forgotten: each channel is looked at again when the first of what it
//! keeps is due, and one that nobody needs any more goes.

use std::sync::Arc;

use super::Channels;

impl Channels {
    /// Notes when a channel has something to forget, or forgets it.
    pub(super) fn look_later(&mut self, name: &Arc<str>, now: u64) {
        let Some(channel) = self.channels.get_mut(name) else { return };
        let before = channel.state().filter(|_| channel.is_durable);
        let (at, due) = (channel.expire(now, &mut self.epochs), channel.due);
        if let (Some((position, had_history)), Some(disk)) = (before, &self.keeper.disk) {
            match channel.state() {
                None => disk.forget(name.clone(), position.epoch),
                Some((_, false)) if had_history => disk.clear(name.clone(), position.offset),
                Some(_) => {}
            }
        }
        let is_over = at.is_none() && !channel.is_heard();
        let is_earlier = at.is_some_and(|at| due.is_none_or(|due| at < due));
        if !is_over && !is_earlier {
            // It is looked at soon enough.
            return;
        }
        if let Some(due) = due {
            self.due.remove(&(due, name.clone()));
        }
        channel.due = at;
        match at {
            Some(at) => drop(self.due.insert((at, name.clone()))),
            None => {
                self.channels.remove(name);
                self.detach(name);
            }
        }
    }

    /// Forgets what has expired.
    pub(super) fn forget_old(&mut self, now: u64) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.due.pop_first() else { return };
            if let Some(channel) = self.channels.get_mut(&name) {
                channel.due = None;
            }
            self.look_later(&name, now);
        }
    }
}
