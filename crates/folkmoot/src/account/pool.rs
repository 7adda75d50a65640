//! Where passwords are hashed. Each takes 19 MiB and a tenth of a second on purpose, so a flood of
//! attempts to sign in must neither fill the memory nor stand in the way of searches, thumbnails or
//! anybody who is signed in: a few at a time, a short queue of which nobody gets all, and an answer
//! for who does not fit.

use std::collections::HashMap;
use std::net::IpAddr;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::password;

/// Hashes under way at once; the other cores are for those who chat.
const AT_ONCE: usize = 2;
/// Attempts inside: a few seconds of work. Of one address, from which a whole company may come at
/// once, as many as are left for others. A right password may be repeated without end, and a few who
/// do that together must leave places, too.
const INSIDE_MAX: usize = 132;

#[derive(Debug)]
pub(crate) struct PasswordPool {
    places: Semaphore,
    inside: Mutex<Inside>,
}

/// Who works or waits.
#[derive(Debug, Default)]
struct Inside {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Default for PasswordPool {
    fn default() -> Self {
        Self { places: Semaphore::new(AT_ONCE), inside: Mutex::default() }
    }
}

/// Counts as inside until dropped, also when the caller goes away.
struct Visitor<'a> {
    inside: &'a Mutex<Inside>,
    from: IpAddr,
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        let mut inside = self.inside.lock();
        inside.all -= 1;
        if let Some(count) = inside.by_address.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                inside.by_address.remove(&self.from);
            }
        }
    }
}

impl PasswordPool {
    /// Hashes a new password for somebody at an address.
    pub(crate) async fn hash(&self, from: IpAddr, password: String) -> Result<String, RpcError> {
        self.run(from, move || password::hash(&password)).await
    }

    /// Whether `password`, from an address, is the one behind `stored`.
    pub(crate) async fn verify(
        &self,
        from: IpAddr,
        password: String,
        stored: Option<String>,
    ) -> Result<bool, RpcError> {
        self.run(from, move || password::verify(&password, stored.as_deref())).await
    }

    fn enter(&self, from: IpAddr) -> Result<Visitor<'_>, RpcError> {
        let mut inside = self.inside.lock();
        let of_address = inside.by_address.get(&from).copied().unwrap_or_default();
        let left = INSIDE_MAX - inside.all;
        for (is_full, limit, whose) in [
            (left == 0, INSIDE_MAX, "in all"),
            (of_address >= left, of_address, "from your address"),
        ] {
            if is_full {
                let text = format!(
                    "too many attempts to sign in at once: the limit is {limit} {whose}; try again \
                     in a moment"
                );
                return Err(RpcError::new(ErrorCode::TooManyRequests, text));
            }
        }
        inside.all += 1;
        inside.by_address.insert(from, of_address + 1);
        Ok(Visitor { inside: &self.inside, from })
    }

    async fn run<R: Send + 'static>(
        &self,
        from: IpAddr,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, RpcError> {
        let _visitor = self.enter(from)?;
        let _place = self.places.acquire().await.map_err(|_| ErrorCode::Internal)?;
        tokio::task::spawn_blocking(work).await.map_err(|_| ErrorCode::Internal.into())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::{Arc, OnceLock};

    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;

    fn address(n: usize) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(n as u32))
    }

    #[tokio::test]
    async fn a_flood_from_one_address_leaves_places_to_others() {
        let pool = PasswordPool::default();
        let visitors: Vec<_> = (0..200).filter_map(|_| pool.enter(address(1)).ok()).collect();
        assert_eq!(visitors.len(), INSIDE_MAX / 2);
        let refused = pool.enter(address(1)).err().unwrap();
        assert!(refused.message.contains("66 from your address"), "{refused:?}");
        assert!(pool.enter(address(2)).is_ok());
        drop(visitors);
        assert!(pool.inside.lock().by_address.is_empty());
        assert!(pool.enter(address(1)).is_ok(), "there is room again");
    }

    #[tokio::test]
    async fn floods_from_a_few_addresses_leave_places_to_others() {
        let pool = PasswordPool::default();
        let all_of = |n| std::iter::from_fn(|| pool.enter(address(n)).ok()).collect::<Vec<_>>();
        let mut visitors: Vec<_> = (1..=3).flat_map(all_of).collect();
        for other in 100..110 {
            visitors.push(pool.enter(address(other)).expect("there is a place"));
        }
        // A crowd takes all; the next place that is free is not theirs.
        visitors.extend((4..200).flat_map(all_of));
        assert!(pool.enter(address(300)).is_err());
        drop(visitors.swap_remove(0));
        assert!(pool.enter(address(1)).is_err());
        assert!(pool.enter(address(300)).is_ok());
    }

    #[tokio::test]
    async fn a_flood_is_refused_and_those_inside_are_served() {
        let pool = PasswordPool::default();
        // Nobody makes room before all have come.
        let all_came = Arc::new(OnceLock::new());
        let mut flood = join_all((0..200).map(|number| {
            let all_came = all_came.clone();
            pool.run(address(number), move || {
                all_came.wait();
                number
            })
        }));
        assert!((&mut flood).now_or_never().is_none());
        all_came.set(()).unwrap();
        let answers = flood.await;
        let served = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(served, INSIDE_MAX);
        let refused = answers.into_iter().find_map(Result::err).unwrap();
        assert_eq!(refused.code, ErrorCode::TooManyRequests);
        assert_eq!(pool.run(address(0), || 7).await, Ok(7), "there is room again");
    }
}
