//! The authority: who is a member and who owns what, decided in one place and kept on its disk.
//!
//! It answers nothing before the record is on the disk. Where writing fails it knows nothing until
//! it has read the file again: the record may count or not. While it is away nobody is evicted and
//! nothing moves; nodes freeze when their leases have run out and go on when it is back.

mod file;
mod ledger;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

use self::file::Kept;
pub(crate) use self::ledger::Ledger;
use crate::clock;
use crate::lease::Timing;
use crate::protocol::{
    Answer, Broken, GREETING_LEN_MAX, Greeting, RECORD_LEN_MAX, Request, VERSION, read, write,
};
use crate::record::Record;
use crate::transport::{self, GREETING_TIMEOUT};
use crate::worker::Worker;

/// Connections at one time: each node has one.
const CONNECTIONS_MAX: usize = 1_024;

/// A node renews far more often.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Shortest lease: the scheduler of a busy machine takes a tenth of a second now and then.
const LEASE_MIN: Duration = Duration::from_millis(600);

/// The default lease. Short enough that a lost node is replaced within 8 s, long enough for a pause
/// of the machine.
pub const LEASE_DEFAULT: Duration = Duration::from_secs(6);

/// The running authority of one cluster; it ends when this is dropped.
///
/// It may share a process with a node or have its own. Exactly one process serves a directory at a
/// time; another one is refused.
pub struct Authority {
    address: SocketAddr,
    lease: Duration,
    _worker: Worker,
}

struct Desk {
    cluster: String,
    timing: Timing,
    kept: Kept,
    /// `None` when it is unknown what the disk has.
    ledger: Mutex<Option<Ledger>>,
    news: watch::Sender<Arc<Record>>,
}

impl Authority {
    /// Serves the cluster of that name at `listen`, with its record in `directory`.
    ///
    /// While there are members, the lease does not become shorter: they may believe in the one
    /// that they were given.
    ///
    /// # Errors
    /// The address is taken, another authority has the directory, its record is damaged, or
    /// `lease` is shorter than 600 ms.
    pub fn start(
        cluster: &str,
        directory: &Path,
        listen: SocketAddr,
        lease: Duration,
    ) -> io::Result<Self> {
        if lease < LEASE_MIN {
            let text = format!("a lease of {lease:?} is shorter than {LEASE_MIN:?}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let kept = Kept::open(directory)?;
        let mut record = kept.load()?;
        let given = Duration::from_millis(record.lease_ms);
        let lease = if record.members.is_empty() { lease } else { lease.max(given) };
        record.lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        kept.store(&record)?;
        let timing = Timing { lease };
        let ledger = Ledger::new(timing, record, clock::now());
        let news = watch::Sender::new(Arc::new(ledger.record().clone()));
        let ledger = Mutex::new(Some(ledger));
        let desk = Arc::new(Desk { cluster: cluster.to_owned(), timing, kept, ledger, news });
        let listener = transport::bind(listen)?;
        let address = listener.local_addr()?;
        let worker = Worker::start("althing-authority")?;
        let listener = {
            let _runtime = worker.handle().enter();
            TcpListener::from_std(listener)?
        };
        worker.spawn(serve(desk.clone(), listener));
        worker.spawn(tick(desk));
        Ok(Self { address, lease, _worker: worker })
    }

    /// Where nodes reach it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How long a lease lasts.
    pub fn lease(&self) -> Duration {
        self.lease
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Desk {
    /// Decides; what is decided is on the disk before it is returned.
    fn decide<T>(&self, decide: impl FnOnce(&mut Ledger, Duration) -> T) -> io::Result<T> {
        let mut slot = self.ledger.lock();
        let now = clock::now();
        let mut ledger = match slot.take() {
            Some(ledger) => ledger,
            None => Ledger::new(self.timing, self.kept.load()?, now),
        };
        let before = ledger.record().view;
        let decision = decide(&mut ledger, now);
        if ledger.record().view != before {
            // An error leaves the slot empty.
            self.kept.store(ledger.record())?;
            self.news.send_replace(Arc::new(ledger.record().clone()));
        }
        *slot = Some(ledger);
        Ok(decision)
    }
}

async fn tick(desk: Arc<Desk>) {
    loop {
        sleep(desk.timing.renew_every() / 4).await;
        if let Err(error) = desk.decide(Ledger::tick) {
            tracing::error!(%error, "the authority cannot keep its record");
        }
    }
}

async fn serve(desk: Arc<Desk>, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let stream = transport::accept(&listener).await;
        let desk = desk.clone();
        tokio::spawn(async move {
            if let Err(why) = converse(&desk, stream).await {
                tracing::debug!(%why, "a conversation with the authority ended");
            }
            drop(permit);
        });
    }
}

async fn converse(desk: &Desk, mut stream: TcpStream) -> Result<(), Broken> {
    let greeting = read::<Greeting>(&mut stream, GREETING_LEN_MAX);
    let greeting = timeout(GREETING_TIMEOUT, greeting).await.map_err(|_| Broken::Silent)??;
    if greeting.version != VERSION || greeting.cluster != desk.cluster {
        return Err(Broken::Refused("another version or another cluster".to_owned()));
    }
    let (mut from, mut to) = tokio::io::split(stream);
    let (answers, mut answered) = mpsc::channel(16);
    let listening = async {
        loop {
            let request = read::<Request>(&mut from, RECORD_LEN_MAX);
            let request = timeout(SILENCE_MAX, request).await.map_err(|_| Broken::Silent)??;
            let answer = desk.decide(|ledger, now| ledger.request(now, request))?;
            if answers.send(answer).await.is_err() {
                return Ok(());
            }
        }
    };
    let mut news = desk.news.subscribe();
    news.mark_unchanged();
    let telling = async {
        loop {
            let answer = tokio::select! {
                Some(answer) = answered.recv() => answer,
                Ok(()) = news.changed() => {
                    let record = (**news.borrow_and_update()).clone();
                    Answer::News { record }
                }
                else => return Ok(()),
            };
            write(&mut to, &answer).await?;
        }
    };
    tokio::select! {
        ended = listening => ended,
        ended = telling => ended,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Authority, Kept};
    use crate::record::{Member, Record, Stage};

    #[test]
    fn a_lease_does_not_become_shorter_than_members_believe() {
        let directory = tempfile::tempdir().expect("a directory");
        let member = Member {
            incarnation: 1,
            name: "one".to_owned(),
            address: String::new(),
            stage: Stage::Active,
            since: 0,
            frame_len_max: 0,
        };
        let record = Record { lease_ms: 9_000, members: vec![member], ..Record::empty() };
        Kept::open(directory.path()).and_then(|kept| kept.store(&record)).expect("there is room");
        let start = |seconds| {
            let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let lease = Duration::from_secs(seconds);
            Authority::start("test", directory.path(), listen, lease).expect("it starts")
        };
        assert_eq!(start(2).lease(), Duration::from_secs(9));
        assert_eq!(start(12).lease(), Duration::from_secs(12));
    }
}
