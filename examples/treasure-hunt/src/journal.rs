//! The event log: what is acknowledged is in it, and who comes back from the dead is rebuilt from
//! it.
//!
//! `append` queues an event and returns; one thread writes and syncs whatever has gathered, and
//! only then answers. Questions for an actor's past go through the same queue, so that they see
//! every event appended before them: a new life of an actor finds all that its former life did. A
//! failed write ends the process (`failed`): nobody may trust the file after it.

mod index;
pub(crate) mod record;
mod writer;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use althing::{ActorRef, ReplyTo};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{oneshot, watch};

pub use index::{PlayerTrail, RegionTrail};
pub use record::{Birth, FILE_HEADER_LEN, Record, Records, read_file_header};

use crate::actors::{CourierActor, Done, PlayerActor, Settled};
use crate::place::{ActSeq, PlayerId, RegionId};
use crate::rules::{Deed, Event, RegionImage};

/// Name of the log in the data directory.
pub const LOG_NAME: &str = "events.log";

/// Position in the order of appending; rises with each append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Where a record begins in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset(pub(crate) u64);

/// What is told once an event is durable, and to whom.
#[derive(Debug)]
pub struct Receipt {
    /// Whom.
    pub asker: Asker,
    /// What.
    pub done: Done,
}

/// Who waits for an event.
#[derive(Debug)]
pub enum Asker {
    /// A player, which goes on meanwhile; a courier tells it.
    Player(ActorRef<PlayerActor>),
    /// A question, which is answered.
    Reply(ReplyTo<Settled>),
}

/// The player's next event has another number: who appends is not up to date, and must not go on.
#[derive(Debug)]
pub struct Fenced {
    /// Given back as it was.
    pub receipt: Option<Receipt>,
}

/// What the log has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalUse {
    /// Events in the file.
    pub events: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Syncs since the start.
    pub syncs: u64,
}

/// The log of one data directory; closed by `close`, or when dropped.
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    path: PathBuf,
    file: Arc<File>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    durable: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
    failure: watch::Sender<Option<Arc<io::Error>>>,
    couriers: OnceLock<Vec<ActorRef<CourierActor>>>,
}

#[derive(Debug)]
struct Queue {
    entries: Vec<Entry>,
    /// Number of each player's last appended event.
    last_seq: HashMap<PlayerId, ActSeq>,
    tickets: u64,
    closed: bool,
}

#[derive(Debug)]
enum Entry {
    Event { event: Event, birth: Option<Box<Birth>>, receipt: Option<Receipt> },
    Snapshot { region: RegionId, image: Box<RegionImage> },
    Answer(Receipt),
    FindPlayer(PlayerId, oneshot::Sender<Option<PlayerTrail>>),
    FindRegion(RegionId, oneshot::Sender<RegionTrail>),
}

/// Who was in the world when the log was last closed.
#[derive(Debug, Default)]
pub struct Left {
    /// Players that have not left, by last number used.
    pub players: Vec<PlayerId>,
    /// The highest player number ever used.
    pub player_max: u32,
}

impl Journal {
    /// Opens or creates the log in `directory` and reads it once. A torn record at its end, which
    /// nobody was told of, is cut off.
    ///
    /// # Errors
    /// The directory cannot be used, or the log belongs to a world of another seed.
    pub fn open(directory: &Path, seed: u64) -> io::Result<(Self, Left)> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(LOG_NAME);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        file.try_lock().map_err(|why| {
            io::Error::other(format!("{} is in use by another server: {why}", path.display()))
        })?;
        record::begin_file(&file, seed)?;
        let (index, end, events) = index::Index::read(&file)?;
        file.set_len(end)?;
        let left = Left { players: index.players().collect(), player_max: index.player_max() };
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                entries: Vec::new(),
                last_seq: index.last_seqs().collect(),
                tickets: 0,
                closed: false,
            }),
            filled: Condvar::new(),
            durable: AtomicU64::new(0),
            events: AtomicU64::new(events),
            bytes: AtomicU64::new(end),
            syncs: AtomicU64::new(0),
            failure: watch::Sender::new(None),
            couriers: OnceLock::new(),
        });
        let file = Arc::new(file);
        let writer = writer::start(shared.clone(), file.clone(), index)?;
        Ok((Self { shared, writer: Mutex::new(Some(writer)), path, file }, left))
    }

    /// Says who tells players what is durable; once, before any of them appends.
    pub fn deliver_by(&self, couriers: Vec<ActorRef<CourierActor>>) {
        self.shared.couriers.set(couriers).expect("couriers are named once");
    }

    /// Queues an event; its receipt is answered once the event is durable.
    ///
    /// # Errors
    /// `Fenced` if the event's number is not the player's next; nothing was queued.
    pub fn append(
        &self,
        event: Event,
        birth: Option<Box<Birth>>,
        receipt: Option<Receipt>,
    ) -> Result<Ticket, Fenced> {
        let mut queue = self.shared.queue.lock();
        if !queue.follows(&event) {
            return Err(Fenced { receipt });
        }
        Ok(self.push(&mut queue, Entry::Event { event, birth, receipt }))
    }

    /// Answers once everything appended so far is durable.
    pub fn answer_after(&self, receipt: Receipt) {
        self.push(&mut self.shared.queue.lock(), Entry::Answer(receipt));
    }

    /// Queues what lasts of a region, so that its rebuilding need not read what came before. One
    /// with more clues on it than a record holds is rebuilt from the events since the last that fit.
    pub fn snapshot(&self, region: RegionId, image: Box<RegionImage>) {
        if !record::fits(&image) {
            return;
        }
        self.push(&mut self.shared.queue.lock(), Entry::Snapshot { region, image });
    }

    fn push(&self, queue: &mut Queue, entry: Entry) -> Ticket {
        queue.tickets += 1;
        // Nobody would answer an entry of a closed log: dropped, it tells so itself.
        if !queue.closed {
            queue.entries.push(entry);
        }
        if queue.entries.len() == 1 {
            self.shared.filled.notify_one();
        }
        Ticket(queue.tickets)
    }

    /// The last ticket whose event is durable.
    pub fn durable(&self) -> Ticket {
        Ticket(self.shared.durable.load(Ordering::Acquire))
    }

    /// Where a player's birth and last event are; `None` if it has left or never came.
    ///
    /// # Errors
    /// The log is closed.
    pub async fn find_player(&self, player: PlayerId) -> io::Result<Option<PlayerTrail>> {
        let (answer, found) = oneshot::channel();
        self.push(&mut self.shared.queue.lock(), Entry::FindPlayer(player, answer));
        found.await.map_err(|_| closed())
    }

    /// Where the records that rebuild a region are.
    ///
    /// # Errors
    /// The log is closed.
    pub async fn find_region(&self, region: RegionId) -> io::Result<RegionTrail> {
        let (answer, found) = oneshot::channel();
        self.push(&mut self.shared.queue.lock(), Entry::FindRegion(region, answer));
        found.await.map_err(|_| closed())
    }

    /// A reader of durable records. Its reads block; run them on the pool.
    pub fn reader(&self) -> LogReader {
        LogReader { file: self.file.clone() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it has done so far.
    pub fn usage(&self) -> JournalUse {
        let shared = &self.shared;
        JournalUse {
            events: shared.events.load(Ordering::Relaxed),
            bytes: shared.bytes.load(Ordering::Relaxed),
            syncs: shared.syncs.load(Ordering::Relaxed),
        }
    }

    /// Writes what has gathered and lets go of the file; blocks until then. What is appended later
    /// is never answered.
    pub fn close(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.filled.notify_one();
        if let Some(writer) = self.writer.lock().take() {
            // It reports its failures itself; a panic of it is one.
            writer.join().ok();
            self.file.unlock().ok();
        }
    }

    /// Resolves when a write has failed, with the cause; never otherwise.
    pub async fn failed(&self) -> Arc<io::Error> {
        let mut failure = self.shared.failure.subscribe();
        match failure.wait_for(Option::is_some).await.map(|found| found.clone()) {
            Ok(Some(cause)) => cause,
            _ => std::future::pending().await,
        }
    }
}

impl Queue {
    /// Whether the event is its player's next, and remembers it.
    fn follows(&mut self, event: &Event) -> bool {
        if event.deed == Deed::Tide {
            return true;
        }
        let last = self.last_seq.get(&event.player);
        let follows = match event.deed {
            Deed::Join => last.is_none(),
            _ => last.is_some_and(|last| last.next() == event.seq),
        };
        match event.deed {
            _ if !follows => {}
            Deed::Leave => drop(self.last_seq.remove(&event.player)),
            _ => drop(self.last_seq.insert(event.player, event.seq)),
        }
        follows
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

/// Reads single records.
#[derive(Clone, Debug)]
pub struct LogReader {
    file: Arc<File>,
}

impl LogReader {
    /// The record at `offset`.
    ///
    /// # Errors
    /// The file cannot be read, or its record is damaged.
    pub fn read(&self, offset: Offset) -> io::Result<Record> {
        record::read_at(&self.file, offset)
    }

    /// The event at `offset`.
    ///
    /// # Errors
    /// As `read`; also if the record is a snapshot.
    pub fn read_event(&self, offset: Offset) -> io::Result<(Event, Option<Birth>)> {
        match self.read(offset)? {
            Record::Event(event, birth) => Ok((event, birth)),
            Record::Snapshot(..) => Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("record at {} is a snapshot, not an event", offset.0),
            )),
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(ErrorKind::BrokenPipe, "the event log is closed")
}

#[cfg(test)]
mod tests;
