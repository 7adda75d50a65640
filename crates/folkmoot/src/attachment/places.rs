//! How many uploads are taken in at once: in all, because beyond it a disk gets slower and not
//! faster, and of one user, so that nobody can keep the places of everybody.

use std::collections::HashMap;
use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use parking_lot::Mutex;

use crate::storage::UserId;

/// Files that come in one request each, at once.
const WHOLE: usize = 64;
/// Files that come in pieces, at once: most of them wait for a slow line, with a quarter of a MiB in
/// memory.
const IN_PIECES: usize = 256;
/// Of one user: as many as a browser sends at a time.
const OF_USER_MAX: usize = 6;

#[derive(Debug)]
pub(crate) struct Places {
    all_max: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_user: HashMap<UserId, usize>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<Mutex<Taken>>,
    user: UserId,
}

impl Places {
    /// Of files that come in one request each.
    pub(crate) fn of_whole_files() -> Self {
        Self { all_max: WHOLE, taken: Arc::default() }
    }

    /// Of files that come in pieces.
    pub(crate) fn of_pieces() -> Self {
        Self { all_max: IN_PIECES, taken: Arc::default() }
    }

    /// Takes a place for an upload of `user`, or says why there is none.
    pub(crate) fn take(&self, user: UserId) -> Result<Place, RpcError> {
        let refused = |text: String| Err(RpcError::new(ErrorCode::TooManyRequests, text));
        let mut taken = self.taken.lock();
        if taken.by_user.get(&user).is_some_and(|count| *count >= OF_USER_MAX) {
            return refused(format!("{OF_USER_MAX} of your uploads are under way; try again"));
        }
        if taken.all >= self.all_max {
            return refused("too many uploads at once; try again".to_owned());
        }
        taken.all += 1;
        *taken.by_user.entry(user).or_default() += 1;
        drop(taken);
        Ok(Place { taken: self.taken.clone(), user })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.all -= 1;
        if let Some(count) = taken.by_user.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                taken.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_places_to_others() {
        let places = Places::of_whole_files();
        let (anna, bob) = (UserId::from_u64(1), UserId::from_u64(2));
        let of_anna: Vec<_> = (0..OF_USER_MAX).map(|_| places.take(anna).unwrap()).collect();
        assert!(places.take(anna).is_err());
        assert!(places.take(bob).is_ok());
        drop(of_anna);
        assert!(places.take(anna).is_ok());
        assert!(places.taken.lock().by_user.is_empty());
    }

    #[test]
    fn all_together_take_what_a_disk_can_bear() {
        let places = Places::of_whole_files();
        let users = (1..=WHOLE as u64).map(UserId::from_u64);
        let taken: Vec<_> = users.map(|user| places.take(user).unwrap()).collect();
        assert!(places.take(UserId::from_u64(999)).is_err());
        drop(taken);
        assert!(places.take(UserId::from_u64(999)).is_ok());
    }
}
