//! The actor that keeps the index up with the store: reads what changed, in the order of the log,
//! and commits it in batches. Nobody who sends a message waits for it.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Handler, StopReason, actor};
use folkmoot_threads::QuietThread;

use super::index::{Index, IndexError};
use crate::ports::Feed;
use crate::storage::contract::ChangeFeed;
use crate::storage::{Lsn, ReadError, RoomId};

/// After a spoilt index could not be emptied, as on a full disk.
const CLEAR_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// How often it looks for changes by itself. A commit syncs half a dozen small files, so a quiet
/// server does that once a second at most; a search asks for one of its own.
const PAUSE: Duration = Duration::from_secs(1);
/// Messages read at once.
const PAGE_LEN: u32 = 1_000;
/// Messages committed at once while there is much to catch up with: larger segments, fewer merges.
const COMMIT_LEN: usize = 20_000;

/// Looks whether something changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follow;

/// Whether the index that was there at the start is what was written.
#[derive(Debug)]
pub(crate) struct Checked(Result<(), IndexError>);

#[derive(Debug)]
pub(crate) struct Follower {
    feed: Feed,
    index: Arc<Index>,
    /// All that writes to the index runs there.
    thread: QuietThread,
    /// Read so far; the index's own mark is what is committed of it.
    read: Lsn,
    uncommitted: usize,
    progress: Progress,
    /// Whether a `Follow` of its own is on the way.
    is_queued: bool,
}

/// How it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The last page had everything.
    CaughtUp,
    /// There is more than a page to read.
    Behind,
    /// The last try failed; said once.
    Failing,
}

/// Why a page did not get into the index; it is tried again.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Index(#[from] IndexError),
}

impl Follower {
    /// # Errors
    /// If the system starts no more threads.
    pub(crate) fn new(feed: Feed, index: Arc<Index>) -> io::Result<Self> {
        let (read, thread) = (index.mark(), QuietThread::start("folkmoot-search")?);
        let progress = Progress::Behind;
        Ok(Self { feed, index, thread, read, uncommitted: 0, progress, is_queued: false })
    }

    /// Takes one page of changes in.
    async fn advance(&mut self, ctx: &mut Context<Self>) {
        match self.page().await {
            Ok(progress) => self.progress = progress,
            Err(error) => {
                let is_shutdown = matches!(error, FollowError::Read(ReadError::ShuttingDown));
                if self.progress != Progress::Failing && !is_shutdown {
                    tracing::error!(%error, "the search index cannot follow; trying again");
                }
                self.progress = Progress::Failing;
                let index = self.index.clone();
                self.read = self.thread.run(move || index.roll_back()).await;
                self.uncommitted = 0;
            }
        }
        if self.progress == Progress::Behind && !self.is_queued {
            // Through the mailbox, so that questions get their turn between two pages.
            self.is_queued = ctx.address().send(Follow).try_tell().is_ok();
        }
    }

    async fn page(&mut self) -> Result<Progress, FollowError> {
        let page = self.feed.changes().message_changes(self.read, PAGE_LEN).await?;
        let (up_to, is_last) = (page.up_to, page.is_last);
        let uncommitted = self.uncommitted + page.messages.len();
        let commits = uncommitted >= COMMIT_LEN || (is_last && uncommitted > 0);
        if uncommitted > 0 {
            let index = self.index.clone();
            let done = self.thread.run(move || {
                index.add(&page.messages)?;
                if commits { index.commit(up_to) } else { Ok(()) }
            });
            done.await?;
        } else {
            self.index.pass(up_to);
        }
        self.read = up_to;
        self.uncommitted = if commits { 0 } else { uncommitted };
        Ok(if is_last { Progress::CaughtUp } else { Progress::Behind })
    }
}

/// Reads the whole index, on a thread of its own: following does not wait for it.
async fn checked(index: Arc<Index>) -> Checked {
    let thread = match QuietThread::start("folkmoot-check") {
        Ok(thread) => thread,
        Err(error) => return Checked(Err(error.into())),
    };
    Checked(thread.run(move || index.check()).await)
}

#[actor(name = "folkmoot.search")]
impl Follower {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        // After a restart: what the one before had not committed is gone.
        let index = self.index.clone();
        self.read = self.thread.run(move || index.roll_back()).await;
        ctx.every(PAUSE, Follow);
        if !self.index.is_checked() {
            ctx.pipe(checked(self.index.clone()), |checked| checked);
        }
        Ok(())
    }

    /// Takes one page in, unless the index has come to `to`; what is left takes another one.
    pub(crate) async fn catch_up(&mut self, to: Lsn, ctx: &mut Context<Self>) -> Progress {
        if self.index.mark() < to && self.progress != Progress::Failing {
            self.advance(ctx).await;
        }
        self.progress
    }

    /// Takes a room out of the index, for good once this returns: its messages are gone from the
    /// store, so that no later page brings them back.
    pub(crate) async fn forget_room(&mut self, room: RoomId) -> Result<(), Arc<IndexError>> {
        let (index, read) = (self.index.clone(), self.read);
        let done = self.thread.run(move || {
            index.forget_room(room)?;
            index.commit(read)
        });
        done.await.map_err(Arc::new)?;
        self.uncommitted = 0;
        Ok(())
    }

    /// Takes messages of a room out of the index, for good once this returns: they are gone from the
    /// store.
    pub(crate) async fn forget_messages(
        &mut self,
        room: RoomId,
        seqs: Range<u64>,
    ) -> Result<(), Arc<IndexError>> {
        let (index, read) = (self.index.clone(), self.read);
        let done = self.thread.run(move || {
            index.forget_messages(room, seqs)?;
            index.commit(read)
        });
        done.await.map_err(Arc::new)?;
        self.uncommitted = 0;
        Ok(())
    }

    async fn stopping(&mut self, _: StopReason) {
        // Waits for the index's threads, which would write into a directory that is given free.
        let index = self.index.clone();
        self.thread.run(move || index.roll_back()).await;
    }
}

impl Handler<Follow> for Follower {
    type Reply = ();

    async fn handle(&mut self, _: Follow, ctx: &mut Context<Self>) {
        self.is_queued = false;
        self.advance(ctx).await;
    }
}

impl Handler<Checked> for Follower {
    type Reply = ();

    async fn handle(&mut self, Checked(checked): Checked, ctx: &mut Context<Self>) {
        let index = self.index.clone();
        let Err(error) = checked else {
            self.thread.run(move || index.trust()).await;
            return;
        };
        tracing::error!(%error, "the search index is spoilt; it is made anew");
        match self.thread.run(move || index.clear()).await {
            Ok(()) => (self.read, self.uncommitted) = (Lsn(0), 0),
            Err(left) => {
                tracing::error!(%left, "the spoilt search index cannot be emptied; trying again");
                ctx.after(CLEAR_AGAIN_AFTER, Checked(Err(error)));
            }
        }
        self.advance(ctx).await;
    }
}
