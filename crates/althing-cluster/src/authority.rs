//! The authority: who is a member and who owns what, decided in one place and kept in a store.
//!
//! Any number of processes are candidates, and one of them leads. It answers nothing before the
//! record is stored. While nobody leads nobody is evicted and nothing moves; nodes freeze when
//! their leases have run out and go on when somebody leads again.

mod candidate;
mod config;
#[cfg(test)]
mod conformance;
mod conversation;
mod desk;
#[cfg(feature = "etcd")]
mod etcd;
mod file;
mod ledger;
#[cfg(feature = "postgres")]
mod postgres;
mod storage;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

#[cfg(test)]
pub(crate) use self::candidate::{Candidate, Done, Effect};
pub use self::config::{AuthorityConfig, RecordStore};
use self::conversation::Port;
use self::desk::{Desk, Input};
#[cfg(test)]
pub(crate) use self::storage::{Claimant, Lead, Replaced, patience};
use crate::lease::Timing;
use crate::tls::{Guard, Refusals, Tls, look_on};
use crate::transport;
use crate::worker::Worker;

/// Shortest lease: the scheduler of a busy machine takes a tenth of a second now and then.
const LEASE_MIN: Duration = Duration::from_millis(600);

/// The default lease. Short enough that a lost node is replaced within 6 s, long enough for a pause
/// of the machine; with etcd, whose times are whole seconds, a new leader would come too late for a
/// shorter one.
pub const LEASE_DEFAULT: Duration = Duration::from_secs(5);

/// A candidate for being the authority of one cluster; it ends when this is dropped.
///
/// It may share a process with a node or have its own. With a store that several processes reach
/// there may be any number of candidates: while one of them lives, and the store does, the cluster
/// has an authority. Members are told of some of them, see
/// [`MemberConfig::authorities`](crate::MemberConfig::authorities).
pub struct Authority {
    address: SocketAddr,
    desk: Arc<Desk>,
    guard: Arc<Guard>,
    _worker: Worker,
}

impl Authority {
    /// Serves the cluster of that name at `listen`, with its record in `directory`, which one
    /// process has at a time.
    ///
    /// While there are members, the lease does not become shorter: they may believe in the one
    /// that they were given.
    ///
    /// # Errors
    /// The address is taken, another authority has the directory, its record is damaged, or
    /// `lease` is shorter than 600 ms, or the certificate cannot be used.
    pub fn start(
        cluster: &str,
        directory: &Path,
        listen: SocketAddr,
        lease: Duration,
        tls: Tls,
    ) -> io::Result<Self> {
        let config = AuthorityConfig::new(cluster, RecordStore::directory(directory), tls);
        Self::serve(config.listen(listen).lease(lease))
    }

    /// Makes this process a candidate. With a directory it leads when this returns; with any other
    /// store it goes on trying, and whether it leads is told by [`Authority::is_leading`].
    ///
    /// # Errors
    /// The address is taken, the lease is shorter than 600 ms, another process has the directory,
    /// its record is damaged, or the certificate cannot be used.
    pub fn serve(config: AuthorityConfig) -> io::Result<Self> {
        let AuthorityConfig { cluster, store, listen, advertised, lease, tls } = config;
        if lease < LEASE_MIN {
            let text = format!("a lease of {lease:?} is shorter than {LEASE_MIN:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let timing = Timing { lease };
        let guard = Guard::open(&tls, &cluster, None)?;
        let listener = transport::bind(listen, &guard)?;
        let address = listener.local_addr()?;
        let storage = store.open(&cluster, timing.leads())?;
        let worker = Worker::start("althing-authority")?;
        let listener = {
            let _runtime = worker.handle().enter();
            TcpListener::from_std(listener)?
        };
        let (desk, inputs) = Desk::new(timing);
        // Any 64 bits that no other process has.
        let id = RandomState::new().build_hasher().finish();
        let me =
            storage::Claimant { id, address: advertised.unwrap_or_else(|| address.to_string()) };
        worker.spawn(desk::run(desk.clone(), storage, me, timing, inputs));
        worker.spawn(look_on(guard.clone()));
        let port = Port { desk: desk.clone(), guard: guard.clone(), cluster };
        worker.spawn(conversation::serve(Arc::new(port), listener));
        let authority = Self { address, desk, guard, _worker: worker };
        if !store.is_shared() {
            authority.wait_until_it_leads()?;
        }
        Ok(authority)
    }

    fn wait_until_it_leads(&self) -> io::Result<()> {
        let (mut leads, mut trouble) =
            (self.desk.is_leading.subscribe(), self.desk.trouble.subscribe());
        let (told, hear) = std::sync::mpsc::channel();
        self._worker.spawn(async move {
            tokio::select! {
                _ = leads.wait_for(|leads| *leads) => { _ = told.send(None); }
                Ok(why) = trouble.wait_for(Option::is_some) => { _ = told.send((*why).clone()); }
            }
        });
        match hear.recv() {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(io::Error::other(why)),
            Err(_) => Err(io::Error::other("the authority's thread has ended")),
        }
    }

    /// Where nodes reach it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How long a lease lasts.
    pub fn lease(&self) -> Duration {
        self.desk.lease()
    }

    /// Whether this process is the authority, and each change of that.
    pub fn is_leading(&self) -> watch::Receiver<bool> {
        self.desk.is_leading.subscribe()
    }

    /// Connections that came to nothing because one side did not trust the other.
    pub fn refusals(&self) -> Refusals {
        self.guard.strangers.counts()
    }

    /// Ends, and lets another candidate lead at once; without this, others wait until the lead has
    /// run out.
    pub async fn resign(self) {
        let (resigned, end) = oneshot::channel();
        if self.desk.inputs.send(Input::Resign { resigned }).await.is_ok() {
            _ = end.await;
        }
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("address", &self.address)
            .field("is_leading", &*self.desk.is_leading.borrow())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Authority;
    use super::Tls;
    use super::file::Directory;
    use super::storage::{Replaced, Storage};
    use crate::record::{Member, Record, Stage};

    #[tokio::test]
    async fn a_lease_does_not_become_shorter_than_members_believe() {
        let place = tempfile::tempdir().expect("a directory");
        let member = Member {
            incarnation: 1,
            name: "one".to_owned(),
            address: String::new(),
            stage: Stage::Active,
            since: 0,
            frame_len_max: 0,
            labels: crate::label::Labels::default(),
        };
        let record =
            Record { writes: 1, lease_ms: 9_000, members: vec![member], ..Record::empty() };
        let directory = Directory::open(place.path()).expect("nobody has it");
        let stored = directory.replace(0, &record).await;
        assert_eq!(stored.expect("there is room"), Replaced::Done);
        drop(directory);
        let start = |seconds| {
            let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let lease = Duration::from_secs(seconds);
            let tls = Tls::insecure_plaintext();
            Authority::start("test", place.path(), listen, lease, tls).expect("it starts")
        };
        assert_eq!(start(2).lease(), Duration::from_secs(9));
        assert_eq!(start(12).lease(), Duration::from_secs(12));
    }
}
