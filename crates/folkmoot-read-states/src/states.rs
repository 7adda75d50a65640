//! All read states of a node: shards in memory, a store behind them, a log between.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::block::ReadState;
use crate::change::Change;
use crate::error::ReadStatesError;
use crate::flush;
use crate::log::{Log, Record};
use crate::replay;
use crate::shard::{Admission, Applied, Limits, Load, Shard};
use crate::sizes::Sizes;
use crate::store::RowStore;
use crate::table::spread;

/// How much is kept, and when it is stored.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of entries and of the tables that lead to them, about. The default holds 8 million
    /// entries of users with 40 rooms each: 192 MiB. As much again may wait for a store that is away.
    pub bytes_max: usize,
    /// How long a change may wait for the store; 30 s by default.
    pub store_after: Duration,
    /// Where the log lives. Without it, a crash forgets what the store does not have yet.
    pub log: Option<PathBuf>,
    /// Users evicted with changes, and changes to users not in memory, that wait for the store; a
    /// change that would be one more is refused. 1,000,000 by default.
    pub waiting_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bytes_max: 192 << 20,
            store_after: Duration::from_secs(30),
            log: None,
            waiting_max: 1_000_000,
        }
    }
}

/// Locks. More than threads that meet; few enough that each has a fair share of the memory.
const SHARDS: usize = 64;
/// Bytes of evicted users of a shard that may wait for the store, however little memory there is; else as many as
/// of those in memory.
const LEAVING_BYTES_MIN: usize = 128 * 1024;
const SHARD_BITS: u32 = SHARDS.trailing_zeros();

/// Reads and changes read states; a clone is another handle on the same ones. The last one that is
/// dropped ends the background work; `store_all` stores everything before that.
#[derive(Clone)]
pub struct ReadStates {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) shards: Box<[Mutex<Shard>]>,
    pub(crate) store: Arc<dyn RowStore>,
    pub(crate) log: Option<Log>,
    /// Somebody waits for the store: it should not wait for its time.
    pub(crate) hurry: Arc<Notify>,
    /// Held while rows are on their way to the store: what a round finds unstored is stored when
    /// it ends, by itself and nobody else.
    pub(crate) storing: tokio::sync::Mutex<()>,
    /// Another process has the rows: nothing that is here counts any more.
    pub(crate) is_taken_over: AtomicBool,
    pub(crate) clock: Clock,
}

/// Milliseconds since a moment of its own.
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now_ms(&self) -> u64 {
        // An hour ahead, so that "before" can be asked of the first moment.
        3_600_000 + self.0.elapsed().as_millis() as u64
    }
}

/// A change that was made in memory. [`ReadStates::durable`] waits until a crash cannot undo it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it may be lost in a crash until it is durable"]
pub struct Changed {
    state: Option<ReadState>,
    position: Option<u64>,
}

impl Changed {
    /// The one that is durable last.
    pub(crate) fn last(changes: Vec<Self>) -> Option<Self> {
        changes.into_iter().max_by_key(|changed| changed.position)
    }

    /// What is known of the room now; `None` if the user is not in memory.
    pub fn state(&self) -> Option<ReadState> {
        self.state
    }
}

impl ReadStates {
    /// Opens what the store has, with what the log has beyond it. Call it in a tokio runtime, which
    /// then does the background work.
    ///
    /// # Errors
    /// The store or the log cannot be read, or the store takes nothing of what the log has and that is more than may
    /// wait.
    pub async fn open(store: Arc<dyn RowStore>, options: Options) -> Result<Self, ReadStatesError> {
        let (log, earlier) = match &options.log {
            None => (None, None),
            Some(directory) => {
                let directory = directory.clone();
                let (log, earlier) = replay::blocking(move || Log::open(&directory)).await?;
                (Some(log), Some(earlier))
            }
        };
        let of_log = earlier.as_ref().map_or(0, |earlier| earlier.version);
        let version = store.take_over(of_log).await?;
        let limits = Limits {
            bytes_max: options.bytes_max / SHARDS,
            leaving_max: (options.waiting_max / SHARDS).max(1),
            leaving_bytes_max: (options.bytes_max / SHARDS).max(LEAVING_BYTES_MIN),
            deltas_max: (options.waiting_max / SHARDS).max(1),
        };
        let shared = Arc::new(Shared {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(limits, version))).collect(),
            store,
            log,
            hurry: Arc::default(),
            storing: tokio::sync::Mutex::default(),
            is_taken_over: AtomicBool::new(false),
            clock: Clock(Instant::now()),
        });
        if let Some(earlier) = earlier {
            replay::replay(&shared, earlier).await?;
        }
        let hurry = shared.hurry.clone();
        tokio::spawn(flush::run(Arc::downgrade(&shared), hurry, options.store_after));
        Ok(Self { shared })
    }

    /// Changes what is known of a user in a room, in microseconds: a user who is not in memory is
    /// not loaded for it.
    ///
    /// # Errors
    /// `TooManyRooms`, `Busy` and `TakenOver`; nothing was changed then.
    #[inline]
    pub fn change(&self, user: u64, room: u64, change: Change) -> Result<Changed, ReadStatesError> {
        self.change_by(user, room, change, Admission::Asked)
    }

    #[inline]
    fn change_by(
        &self,
        user: u64,
        room: u64,
        change: Change,
        admission: Admission,
    ) -> Result<Changed, ReadStatesError> {
        self.shared.check_ours()?;
        let mut shard = self.shared.shard(user).lock();
        let clock = &self.shared.clock;
        let had_due = shard.leaving_due_len() > 0;
        let applied = shard.change(user, room, change, admission, clock);
        let is_first_to_leave = !had_due && shard.leaving_due_len() > 0;
        // Under the shard's lock: a user's records are in the log in their order.
        let changed = applied.map(|Applied { state, version }| {
            let position = self.shared.log.as_ref().map(|log| match version {
                Some(version) => log.append(&Record { user, room, version, change }),
                // It says so because of an earlier one, which may not be on the disk yet.
                None => log.position(),
            });
            Changed { state, position }
        });
        drop(shard);
        if is_first_to_leave {
            self.shared.hurry.notify_one();
        }
        changed
    }

    /// A message mentions users in a room: changes all of them, or none. Who is named more than once
    /// is mentioned once.
    ///
    /// # Errors
    /// As `change`; nothing was changed then.
    pub fn mention(
        &self,
        users: &[u64],
        room: u64,
        message: u64,
    ) -> Result<Vec<Changed>, ReadStatesError> {
        let mut named = HashSet::with_capacity(users.len());
        let users: Vec<u64> = users.iter().copied().filter(|user| named.insert(*user)).collect();
        for user in &users {
            self.shared.shard(*user).lock().admits(*user, room)?;
        }
        let change = Change::Mention { message };
        let changed =
            users.iter().map(|user| self.change_by(*user, room, change, Admission::Given));
        changed.collect()
    }

    /// Waits until a crash cannot undo a change. Without a log it returns at once.
    ///
    /// # Errors
    /// The log cannot be written.
    ///
    /// # Cancel safety
    /// The change is made, whether this is awaited or not.
    pub async fn durable(&self, changed: Changed) -> Result<(), ReadStatesError> {
        let (Some(log), Some(position)) = (&self.shared.log, changed.position) else {
            return Ok(());
        };
        Ok(log.durable(position).await?)
    }

    /// What memory has of a user in a room; `None` if the user is not in memory or the room is not
    /// known.
    #[inline]
    pub fn in_memory(&self, user: u64, room: u64) -> Option<ReadState> {
        self.shared.shard(user).lock().read_one(user, room).flatten()
    }

    /// All read states of a user, in no particular order: what a client needs when it connects. Brings the user
    /// into memory.
    ///
    /// # Errors
    /// `Store`, `TakenOver`, and `Busy` when nobody can be evicted.
    pub async fn all(&self, user: u64) -> Result<Vec<ReadState>, ReadStatesError> {
        self.with_loaded(user, |shard| shard.read(user)).await
    }

    /// What is known of a user in one room; all zero if nothing is.
    ///
    /// # Errors
    /// As `all`.
    pub async fn one(&self, user: u64, room: u64) -> Result<ReadState, ReadStatesError> {
        let found = self.with_loaded(user, |shard| shard.read_one(user, room)).await?;
        Ok(found.unwrap_or(ReadState { room, ..ReadState::default() }))
    }

    async fn with_loaded<T>(
        &self,
        user: u64,
        read: impl Fn(&mut Shard) -> Option<T>,
    ) -> Result<T, ReadStatesError> {
        loop {
            self.shared.check_ours()?;
            if let Some(found) = read(&mut self.shared.shard(user).lock()) {
                return Ok(found);
            }
            self.shared.load(user).await?;
        }
    }

    /// How much is kept now.
    pub fn sizes(&self) -> Sizes {
        let mut sum = Sizes::default();
        for shard in &self.shared.shards {
            let sizes = shard.lock().sizes();
            sum.users += sizes.users;
            sum.bytes += sizes.bytes;
            sum.waiting += sizes.waiting;
            sum.waiting_bytes += sizes.waiting_bytes;
            sum.refused += sizes.refused;
        }
        sum.log_bytes = self.shared.log.as_ref().map_or(0, Log::bytes);
        sum
    }

    /// Stores everything that was changed before the call.
    ///
    /// # Errors
    /// The store or the log failed, or the store refused some rows and has all others; what was not
    /// stored stays in memory, and in the log.
    pub async fn store_all(&self) -> Result<(), ReadStatesError> {
        // In a task of its own: rows that are on their way are answered for, whoever gives up.
        let shared = self.shared.clone();
        match tokio::spawn(async move { flush::round(&shared).await }).await {
            Ok(done) => done,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl Shared {
    #[inline]
    pub(crate) fn shard(&self, user: u64) -> &Mutex<Shard> {
        &self.shards[(spread(user) >> (u64::BITS - SHARD_BITS)) as usize]
    }

    #[inline]
    fn check_ours(&self) -> Result<(), ReadStatesError> {
        if self.is_taken_over.load(Relaxed) { Err(ReadStatesError::TakenOver) } else { Ok(()) }
    }

    /// Brings a user into memory.
    pub(crate) async fn load(&self, user: u64) -> Result<(), ReadStatesError> {
        let begun = self.shard(user).lock().begin_load(user);
        match begun {
            Load::There => return Ok(()),
            Load::Others(ended) => {
                ended.await;
                return Ok(());
            }
            Load::Yours => {}
        }
        let loading = Loading { shared: self, user };
        let row = self.store.load(user).await?;
        std::mem::forget(loading);
        let mut shard = self.shard(user).lock();
        let loaded = shard.loaded(user, row);
        let is_wanted = shard.leaving_due_len() > 0 || loaded.is_err();
        drop(shard);
        if is_wanted {
            self.hurry.notify_one();
        }
        loaded
    }
}

/// Lets others load a user when the load is given up.
struct Loading<'a> {
    shared: &'a Shared,
    user: u64,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.shared.shard(self.user).lock().not_loaded(self.user);
    }
}
