//! The thread that has the log: takes what has gathered, writes it with one sync, and answers when
//! that is on disk.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::compaction::{Compaction, Portion, Turn};
use super::log::Log;
use super::log::format::Body;
use super::replay::Replay;
use super::rows::Rows;
use super::{Found, Record, RowKey};
use crate::epoch::Epoch;

/// Jobs that share one sync, at most: those behind wait no longer than that many take.
const BATCH_MAX: usize = 1_024;
/// About how long a frame may be: it is read as a whole.
const FRAME_BYTES: usize = 8 << 20;
/// Between two attempts to begin a segment on a disk that takes nothing.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Something to do with the log.
pub(super) enum Job {
    Keep(Arc<Vec<Record>>, oneshot::Sender<bool>),
    /// Up to an offset, and who waits for it.
    Clear(Arc<str>, u64, Option<oneshot::Sender<bool>>),
    Forget(Arc<str>, Epoch),
    Confirm(Vec<RowKey>),
    Advance(Arc<str>, u64),
    /// Some durable channels of an owner. The next ones may come once this is dropped.
    HandOver(Portion, #[allow(dead_code)] Turn),
    /// So many owners have their channels.
    Restored(usize),
    Read(IsMeant, oneshot::Sender<Option<Found>>),
    Close(oneshot::Sender<()>),
}

/// Which channels are read.
pub(super) type IsMeant = Box<dyn Fn(&str) -> bool + Send + Sync>;

pub(super) struct Writer {
    log: Log,
    body: Body,
    compaction: Compaction,
    /// As all in the log comes to. Of channels, their owners know it.
    rows: Rows,
    progress: HashMap<Arc<str>, u64>,
    /// When the disk took nothing the last time. It is told once, not at each attempt.
    down_since: Option<Instant>,
}

impl Writer {
    /// With what the log comes to.
    pub(super) fn new(log: Log, compaction: Compaction, found: &Found) -> Self {
        let mut rows = Rows::default();
        found.rows.iter().for_each(|(row, channel)| rows.insert(row, channel));
        let progress = found.progress.clone();
        Self { log, body: Body::default(), compaction, rows, progress, down_since: None }
    }

    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let mut batch = vec![first];
            batch.extend(queue.try_iter().take(BATCH_MAX));
            let (closing, batch): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|job| matches!(job, Job::Close(_)));
            let (reading, batch): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|job| matches!(job, Job::Read(..)));
            self.write(batch);
            for job in reading {
                if let Job::Read(is_meant, reply) = job {
                    let _ = reply.send(self.read(&is_meant));
                }
            }
            if !closing.is_empty() {
                // The directory is free before anybody hears of it.
                drop(self);
                for job in closing {
                    if let Job::Close(reply) = job {
                        let _ = reply.send(());
                    }
                }
                return;
            }
            self.compact();
        }
    }

    /// Writes channels, rows and progress that were found elsewhere.
    pub(super) fn bring_over(&mut self, found: &Found) -> io::Result<()> {
        for (name, channel) in &found.channels {
            self.body.channel(name, channel);
            self.end_frame(FRAME_BYTES)?;
        }
        for (row, channel) in &found.rows {
            self.body.row(row, channel);
            self.end_frame(FRAME_BYTES)?;
        }
        for (source, to) in &found.progress {
            self.body.advanced(source, *to);
        }
        self.end_frame(0)?;
        self.log.sync()
    }

    fn read(&self, is_meant: &dyn Fn(&str) -> bool) -> Option<Found> {
        let mut replay = Replay::of(is_meant);
        match self.log.read(&mut |body| replay.frame(body)) {
            Ok(()) => Some(replay.found()),
            Err(error) => {
                tracing::error!(%error, "histories cannot be read");
                None
            }
        }
    }

    /// Nothing is answered before the sync. A batch that fails is refused whole.
    fn write(&mut self, batch: Vec<Job>) {
        if let Some(Job::Restored(owners)) =
            batch.iter().find(|job| matches!(job, Job::Restored(_)))
        {
            self.compaction.allow(*owners);
        }
        let is_written = self.try_write(&batch);
        if !is_written {
            self.compaction.give_up();
        }
        for job in batch {
            match job {
                Job::Keep(_, reply) | Job::Clear(_, _, Some(reply)) => {
                    let _ = reply.send(is_written);
                }
                _ if !is_written => {}
                Job::HandOver(Portion { owner, call, is_last: true, .. }, _) => {
                    self.compaction.handed_over(owner, call);
                }
                _ => {}
            }
        }
    }

    fn try_write(&mut self, batch: &[Job]) -> bool {
        if !self.is_ready() {
            return false;
        }
        let first = self.append(batch);
        // What has failed goes into a fresh segment, whose header says that it is not in the other.
        let written = first.or_else(|_| {
            self.log.begin()?;
            self.append(batch)
        });
        match written {
            Ok(()) => {
                if self.down_since.take().is_some() {
                    tracing::info!("histories are written again");
                }
                batch.iter().for_each(|job| self.note(job));
                true
            }
            Err(error) => {
                self.is_down(&error);
                false
            }
        }
    }

    /// Whether there is a segment to write to.
    fn is_ready(&mut self) -> bool {
        if !self.log.is_broken() {
            return true;
        }
        if self.down_since.is_some_and(|since| since.elapsed() < AGAIN_AFTER) {
            return false;
        }
        let begun = self.log.begin();
        if let Err(error) = &begun {
            self.is_down(error);
        }
        begun.is_ok()
    }

    fn is_down(&mut self, error: &io::Error) {
        if self.down_since.replace(Instant::now()).is_none() {
            tracing::error!(%error, "histories cannot be written");
        }
    }

    fn append(&mut self, batch: &[Job]) -> io::Result<()> {
        self.body.clear();
        let before = self.log.written();
        for job in batch {
            self.put(job)?;
        }
        self.end_frame(0)?;
        match self.log.written() == before {
            true => Ok(()),
            false => self.log.sync(),
        }
    }

    fn put(&mut self, job: &Job) -> io::Result<()> {
        match job {
            Job::Keep(records, _) => {
                for record in records.iter() {
                    self.body.published(record);
                    self.end_frame(FRAME_BYTES)?;
                }
            }
            Job::Clear(channel, up_to, _) => self.body.cleared(channel, *up_to),
            Job::Forget(channel, epoch) => self.body.forgotten(channel, *epoch),
            Job::Confirm(rows) => rows.iter().for_each(|row| self.body.confirmed(row)),
            Job::Advance(source, to) => self.body.advanced(source, *to),
            // One that is not wanted any more is in the segments that stay.
            Job::HandOver(Portion { call, .. }, _) if !self.compaction.wants(*call) => {}
            Job::HandOver(Portion { channels, .. }, _) => {
                for (name, channel) in channels {
                    self.body.channel(name, channel);
                    self.end_frame(FRAME_BYTES)?;
                }
            }
            Job::Restored(_) | Job::Read(..) | Job::Close(_) => {}
        }
        Ok(())
    }

    /// Writes the frame, if it has come to so many bytes and is not empty.
    fn end_frame(&mut self, at_least: usize) -> io::Result<()> {
        if self.body.len() < at_least.max(1) {
            return Ok(());
        }
        let written = self.log.write(self.body.bytes());
        self.body.clear();
        written
    }

    /// Notes what the log comes to, besides channels.
    fn note(&mut self, job: &Job) {
        match job {
            Job::Keep(records, _) => {
                for record in records.iter() {
                    if let Some(row) = &record.post.row {
                        self.rows.insert(row, &record.channel);
                    }
                }
            }
            Job::Confirm(rows) => {
                for row in rows {
                    self.rows.remove(row);
                }
            }
            Job::Advance(source, to) => {
                self.rows.remove_before(source, *to);
                self.progress.insert(source.clone(), *to);
            }
            _ => {}
        }
    }

    /// Begins a compaction if one is due, and ends the one that everything is there for.
    fn compact(&mut self) {
        let outcome = self.try_compact();
        if let Err(error) = outcome {
            // What is there stays, and it is tried again when something else is written.
            tracing::warn!(%error, "the log of histories cannot be made smaller");
            self.compaction.give_up();
        }
    }

    fn try_compact(&mut self) -> io::Result<()> {
        if !self.log.is_broken() && self.compaction.is_due(self.log.len(), self.log.segments()) {
            let first = self.log.begin()?;
            self.write_ledger()?;
            self.compaction.begin(first);
        }
        if let Some(first) = self.compaction.done() {
            self.log.remove_before(first)?;
            self.compaction.rests(self.log.len());
        }
        Ok(())
    }

    /// What segments that will go say of rows and progress, once more.
    fn write_ledger(&mut self) -> io::Result<()> {
        let found = Found {
            rows: self.rows.all().map(|(row, channel)| (row.clone(), channel.clone())).collect(),
            progress: self.progress.clone(),
            ..Found::default()
        };
        self.body.clear();
        self.bring_over(&found)
    }
}
