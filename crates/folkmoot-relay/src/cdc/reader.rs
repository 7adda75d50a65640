//! Reads one slot, connection after connection, and publishes what it says.
//!
//! What has arrived is published together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::pgoutput::{self, Change, Lsn, Relation, Unreadable};
use super::progress::{Place, Progress};
use super::wire::{MESSAGE_BYTES_MAX, Streamed, Wire};
use super::{Cdc, CdcError, RETRY_AFTER, Row, SILENCE_MAX, STATEMENT_TIMEOUT, Slot};
use crate::durable::RowKey;
use crate::feed;
use crate::metrics::ConsumerMetrics;
use crate::outbox::OutboxError;
use crate::server::Server;

/// How often the database hears how far we are.
const CONFIRM_EVERY: Duration = Duration::from_millis(200);
/// Between two looks at the publication, by a connection of their own.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Rows that are published together, at most, and their bytes.
const WAITING_LEN_MAX: usize = 500;
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Reads the stream, connection after connection.
pub(super) struct Reader {
    cdc: Cdc,
    server: Arc<Server>,
    metrics: Arc<ConsumerMetrics>,
    /// How far the database's log goes.
    server_end: Lsn,
    /// By the numbers that the stream gives them.
    relations: HashMap<u32, Relation>,
    /// The slot that `progress` is about.
    source: Arc<str>,
    progress: Progress,
    /// Rows that are read and not published.
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    /// Said already: it is said once, not at each attempt.
    is_down: bool,
}

#[derive(Debug)]
struct Waiting {
    place: Place,
    row: Row,
}

impl Reader {
    pub(super) fn new(cdc: Cdc, server: Arc<Server>) -> Self {
        let metrics = server.metrics.consumer(&cdc.name);
        Self {
            cdc,
            server,
            metrics,
            server_end: 0,
            relations: HashMap::new(),
            source: "".into(),
            progress: Progress::default(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            is_down: false,
        }
    }

    /// Publishes until the server stops. The database hears then how far that is: otherwise whoever
    /// reads the slot next would publish again what it has not heard of.
    pub(super) async fn run(mut self) {
        let mut stopping = self.server.stopping();
        while let Err(error) = self.follow(&mut stopping).await {
            let consumer = &self.cdc.name;
            self.metrics.is_up.store(false, Ordering::Relaxed);
            if let CdcError::Taken(_) = error {
                // Of several nodes all but one wait so.
                tracing::debug!(%error, %consumer, "the changes are not read here");
            } else if !self.is_down {
                tracing::error!(%error, %consumer, "the changes cannot be read");
                self.is_down = true;
            }
            let _ = timeout(RETRY_AFTER, stopping.wait_for(|stops| *stops)).await;
        }
    }

    /// Publishes as long as one connection lasts, or until the server stops.
    async fn follow(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<(), CdcError> {
        let mut wire = tokio::select! {
            opened = self.open() => opened?,
            _ = stopping.wait_for(|stops| *stops) => return Ok(()),
        };
        let (mut confirmed, mut confirm_at) = (0, Instant::now());
        let (mut heard, mut is_asked, mut ends) = (Instant::now(), false, false);
        let mut look_at = Instant::now() + LOOK_EVERY;
        while !ends || self.progress.is_amid() {
            let is_idle = confirmed == self.progress.done();
            let until = if is_idle { heard + SILENCE_MAX } else { confirm_at };
            let next = tokio::select! {
                next = timeout_at(until.min(look_at), wire.next()) => next,
                _ = stopping.wait_for(|stops| *stops), if !ends => {
                    ends = true;
                    continue;
                }
            };
            match next {
                Ok(streamed) => {
                    heard = Instant::now();
                    is_asked |= self.hear(streamed?).await?;
                }
                Err(_) if is_idle && Instant::now() >= until => return Err(CdcError::Silent),
                Err(_) => {}
            }
            if !wire.has_more() || self.is_full() || ends {
                self.publish().await;
            }
            if is_asked || confirmed != self.progress.done() && Instant::now() >= confirm_at {
                self.confirm(&mut wire).await?;
                (confirmed, is_asked) = (self.progress.done(), false);
                confirm_at = Instant::now() + CONFIRM_EVERY;
            }
            if Instant::now() >= look_at {
                self.cdc.look().await?;
                look_at = Instant::now() + LOOK_EVERY;
            }
        }
        self.confirm(&mut wire).await?;
        if let Err(error) = wire.end().await {
            tracing::debug!(%error, consumer = %self.cdc.name, "the stream has no end");
        }
        Ok(())
    }

    /// A connection on which the slot is read from where it was left.
    async fn open(&mut self) -> Result<Wire, CdcError> {
        let prepared = timeout(STATEMENT_TIMEOUT, self.cdc.prepare()).await;
        let slot = prepared.unwrap_or(Err(OutboxError::Timeout.into()))?;
        self.follow_slot(slot).await?;
        let mut wire = Wire::connect(&self.cdc.database).await?;
        let settings = &self.cdc.settings;
        wire.replicate(&settings.slot_name, &settings.publication_name).await?;
        if std::mem::take(&mut self.is_down) {
            tracing::info!(consumer = %self.cdc.name, "the changes are read again");
        }
        self.metrics.is_up.store(true, Ordering::Relaxed);
        // What the former connection has brought and was not published comes again.
        self.progress.begin_anew();
        self.waiting.clear();
        self.waiting_bytes = 0;
        Ok(wire)
    }

    /// Takes in what was sent; says whether the database wants to hear how far we are.
    async fn hear(&mut self, streamed: Streamed) -> Result<bool, CdcError> {
        match streamed {
            Streamed::Change { end, message } => {
                self.server_end = self.server_end.max(end);
                self.take(pgoutput::read(message)?).await?;
                Ok(false)
            }
            Streamed::CutChange { end, head, len } => {
                self.server_end = self.server_end.max(end);
                self.pass_over(head, len).await?;
                Ok(false)
            }
            Streamed::Keepalive { end, wants_reply } => {
                self.server_end = self.server_end.max(end);
                self.progress.pass(end);
                if self.progress.is_between() {
                    self.publish().await;
                }
                Ok(wants_reply)
            }
        }
    }

    /// Tells the database that what is published need not be kept.
    async fn confirm(&mut self, wire: &mut Wire) -> Result<(), CdcError> {
        if let Some(ledger) = &self.server.ledger {
            ledger.advance(&self.source, self.progress.done());
        }
        Ok(wire.confirm(self.progress.done()).await?)
    }

    async fn take(&mut self, change: Change) -> Result<(), CdcError> {
        match change {
            Change::Begin { commit, at_ms } => {
                self.metrics.committed_ms.store(at_ms, Ordering::Relaxed);
                self.progress.begin(commit);
            }
            Change::Relation(relation) => {
                self.relations.insert(relation.id, relation);
            }
            Change::Insert { relation, values } => self.insert(relation, &values).await?,
            Change::Commit { end } => self.progress.commit(end),
            Change::Other => {}
        }
        Ok(())
    }

    /// Takes a row up, unless it was published before the connection was lost.
    async fn insert(&mut self, relation: u32, values: &[Option<Bytes>]) -> Result<(), CdcError> {
        let Some(place) = self.progress.next_row()? else { return Ok(()) };
        let relation = self.relations.get(&relation).ok_or(Unreadable)?;
        if !self.cdc.is_outbox(relation) {
            return Ok(());
        }
        match Row::read(relation, values) {
            Ok(row) => {
                self.waiting_bytes += row.payload.len();
                self.waiting.push(Waiting { place, row });
            }
            Err(column) => {
                let row = Row::cut(relation, values);
                self.cdc.fits().await?;
                self.publish().await;
                let text = format!("the row has no `{column}`: the table was another one");
                self.set_aside(place, &row, RpcError::new(ErrorCode::BadRequest, text)).await;
            }
        }
        Ok(())
    }

    /// Sets a row aside that cannot be read, once all before it are published.
    async fn set_aside(&mut self, place: Place, row: &Row, error: RpcError) {
        self.cdc.set_aside(row, &error).await;
        self.metrics.rows.count::<()>(&Err(error));
        self.progress.row_is_out(place);
    }

    /// Sets a row aside that is too long to be read, once all before it are published.
    async fn pass_over(&mut self, head: Bytes, len: usize) -> Result<(), CdcError> {
        let Some((relation, values)) = pgoutput::read_head(head)? else { return Ok(()) };
        self.publish().await;
        if let Some(place) = self.progress.next_row()? {
            let relation = self.relations.get(&relation).ok_or(Unreadable)?;
            if !self.cdc.is_outbox(relation) {
                self.progress.row_is_out(place);
                return Ok(());
            }
            let row = Row::cut(relation, &values);
            let text = format!("a row of {len} bytes is over the limit of {MESSAGE_BYTES_MAX}");
            self.set_aside(place, &row, RpcError::new(ErrorCode::TooLarge, text)).await;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_LEN_MAX || self.waiting_bytes >= WAITING_BYTES_MAX
    }

    /// Publishes all that was read.
    async fn publish(&mut self) {
        while !self.waiting.is_empty() {
            let methods: Vec<_> =
                self.waiting.iter().map(|one| String::from_utf8_lossy(&one.row.method)).collect();
            let rows: Vec<feed::Row<'_>> = self
                .waiting
                .iter()
                .zip(&methods)
                .map(|(Waiting { place: (commit, number), row }, method)| feed::Row {
                    key: RowKey { source: self.source.clone(), id: *commit, part: *number },
                    method,
                    payload: &row.payload,
                })
                .collect();
            let outcomes = feed::publish(&self.server, &self.metrics, &rows).await;
            let mut done = 0;
            for (one, outcome) in self.waiting.iter().zip(outcomes) {
                match outcome {
                    Ok(()) => {}
                    // Nothing may overtake it.
                    Err(error) if error.code.is_temporary() => {
                        sleep(RETRY_AFTER).await;
                        break;
                    }
                    Err(error) => self.cdc.set_aside(&one.row, &error).await,
                }
                self.progress.row_is_out(one.place);
                done += 1;
            }
            self.waiting.drain(..done);
        }
        self.waiting_bytes = 0;
        self.progress.all_is_out();
        if self.progress.is_between() {
            self.metrics.committed_ms.store(0, Ordering::Relaxed);
        }
        let behind = self.server_end.saturating_sub(self.progress.done());
        self.metrics.lag_bytes.store(behind, Ordering::Relaxed);
    }

    /// Goes on where this slot was left, be it by an earlier process.
    async fn follow_slot(&mut self, slot: Slot) -> Result<(), CdcError> {
        let Slot { source, confirmed, end } = slot;
        if self.source != source {
            let ledger = self.server.ledger.as_ref();
            let done = ledger.map_or(0, |ledger| ledger.progress(&source));
            (self.progress, self.source) = (Progress::from(done), source);
        }
        let done = self.progress.done();
        if done > end {
            self.cdc.rename_slot().await?;
            return Err(CdcError::WentBack { done, end });
        }
        self.progress.is_out_to(confirmed);
        Ok(())
    }
}
