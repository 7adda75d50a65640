//! The thread that owns the file: write what has gathered, sync once, then answer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use althing::ActorRef;

use super::index::Index;
use super::record;
use super::{Asker, Entry, Offset, Receipt, Shared};
use crate::actors::{CourierActorCalls, Done, PlayerActor, ROUND_LEN};

/// Pause between the starts of two syncs under load: it bounds what syncing costs where it is
/// quick. Two milliseconds saved a seventh of the server's CPU per event, and cost a millisecond of
/// the median and of the 99th percentile.
const SYNC_EVERY: Duration = Duration::from_micros(500);

/// Starts the thread; it ends with the log, or with its first failure.
pub(super) fn start(
    shared: Arc<Shared>,
    file: Arc<File>,
    index: Index,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("event-log".to_owned()).spawn(move || {
        let end = shared.bytes.load(Ordering::Relaxed);
        let mut writer = Writer { shared, file, index, end, buffer: Vec::new(), rounds: 0 };
        writer.run();
    })
}

struct Writer {
    shared: Arc<Shared>,
    file: Arc<File>,
    index: Index,
    end: u64,
    buffer: Vec<u8>,
    /// Rounds sent off: couriers take turns.
    rounds: usize,
}

impl Writer {
    fn run(&mut self) {
        let mut synced_at: Option<Instant> = None;
        while let Some(entries) = self.gather(synced_at) {
            synced_at = Some(Instant::now());
            if let Err(cause) = self.commit(entries) {
                tracing::error!(%cause, "the event log cannot be written");
                self.shared.failure.send_replace(Some(Arc::new(cause)));
                return;
            }
        }
    }

    /// Waits for entries; `None` once the log is closed and empty.
    fn gather(&self, synced_at: Option<Instant>) -> Option<(Vec<Entry>, u64)> {
        if let Some(at) = synced_at {
            std::thread::sleep(SYNC_EVERY.saturating_sub(at.elapsed()));
        }
        let mut queue = self.shared.queue.lock();
        while queue.entries.is_empty() {
            if queue.closed {
                return None;
            }
            self.shared.filled.wait(&mut queue);
        }
        Some((std::mem::take(&mut queue.entries), queue.tickets))
    }

    fn commit(&mut self, (entries, ticket): (Vec<Entry>, u64)) -> io::Result<()> {
        self.buffer.clear();
        let mut events = 0;
        for entry in &entries {
            let offset = Offset(self.end + self.buffer.len() as u64);
            match entry {
                Entry::Event { event, birth, .. } => {
                    events += 1;
                    let birth = birth.as_deref();
                    record::encode(&mut self.buffer, |out| record::write_event(out, event, birth));
                    self.index.note(offset, event);
                }
                Entry::Snapshot { region, image } => {
                    record::encode(&mut self.buffer, |out| {
                        record::write_snapshot(out, *region, image);
                    });
                    self.index.note_snapshot(offset, *region);
                }
                Entry::Answer(_) | Entry::FindPlayer(..) | Entry::FindRegion(..) => {}
            }
        }
        if !self.buffer.is_empty() {
            self.file.write_all_at(&self.buffer, self.end)?;
            self.file.sync_data()?;
            self.end += self.buffer.len() as u64;
            self.shared.bytes.store(self.end, Ordering::Relaxed);
            self.shared.events.fetch_add(events, Ordering::Relaxed);
            self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.durable.store(ticket, Ordering::Release);
        self.answer(entries);
        Ok(())
    }

    /// Answers; whoever no longer waits is passed over.
    fn answer(&mut self, entries: Vec<Entry>) {
        let mut round = Vec::new();
        for entry in entries {
            match entry {
                Entry::Event { receipt: Some(Receipt { asker, done }), .. }
                | Entry::Answer(Receipt { asker, done }) => match asker {
                    Asker::Player(player) => round.push((player, done)),
                    Asker::Reply(reply) => drop(reply.send(Ok(done))),
                },
                Entry::Event { receipt: None, .. } | Entry::Snapshot { .. } => {}
                Entry::FindPlayer(player, answer) => drop(answer.send(self.index.player(player))),
                Entry::FindRegion(region, answer) => drop(answer.send(self.index.region(region))),
            }
            if round.len() == ROUND_LEN {
                self.send_off(std::mem::take(&mut round));
            }
        }
        if !round.is_empty() {
            self.send_off(round);
        }
    }

    fn send_off(&mut self, round: Vec<(ActorRef<PlayerActor>, Done)>) {
        let couriers = self.shared.couriers.get().map_or(&[][..], Vec::as_slice);
        let Some(courier) = couriers.get(self.rounds % couriers.len().max(1)) else { return };
        self.rounds += 1;
        // A courier with a thousand rounds before it: clients ask again for what it does not bring.
        if let Err(why) = courier.deliver(round).try_tell() {
            tracing::warn!(%why, "a courier takes no more");
        }
    }
}
