//! Durable channels: a publication gets its number when it is handed to the disk, and is heard of
//! once it is there. One batch is under way at a time; what comes meanwhile makes up the next one.
//!
//! A batch that fails has changed nothing: no number was given to anybody, and all that waited
//! behind it is refused too, so that nothing overtakes what its publisher tries again.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use althing::Context;
use tokio::sync::oneshot;

use super::channels_messages::{Kept, Removed};
use super::handing_over::HandingOver;
use super::{Channels, KEYS_KEPT_MS, Position, Post, Posts};
use crate::durable::{Disk, KnownRows, Record, RowKey};
use crate::version::Version;

/// Publications in one batch, unless a single request has more.
const BATCH_LEN_MAX: usize = 4_096;
/// Publications that may wait for the disk; whoever brings more is refused for now.
const QUEUE_LEN_MAX: usize = 65_536;

/// What came of publications into durable channels: their places, or `None` if the disk does not
/// take them, which changed nothing.
pub(crate) type Written = Option<Vec<Position>>;

/// What is on its way to the disk.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    /// `None`: no channel is durable.
    pub(super) disk: Option<Disk>,
    pub(super) handing_over: HandingOver,
    rows: Arc<KnownRows>,
    waiting: VecDeque<Waiting>,
    /// Publications in `waiting`.
    waiting_len: usize,
    pub(super) in_flight: Option<Batch>,
    /// Removals of histories under way, which are still in their channels.
    pub(super) removals: usize,
}

impl Keeper {
    pub(super) fn new(disk: Disk, rows: Arc<KnownRows>) -> Self {
        Self { disk: Some(disk), rows, ..Self::default() }
    }
}

/// Publications of one request, in their order.
#[derive(Debug)]
struct Waiting {
    posts: Posts,
    reply: oneshot::Sender<Written>,
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    records: Arc<Vec<Record>>,
    requests: Vec<(Vec<Place>, oneshot::Sender<Written>)>,
}

/// Where a publication goes.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// It was there before.
    Known(Position),
    /// It is the record of this number.
    Record(usize),
}

impl Channels {
    /// Takes publications into durable channels in; they are heard of once they are on disk.
    pub(super) fn take_in(
        &mut self,
        posts: Posts,
        reply: oneshot::Sender<Written>,
        ctx: &mut Context<Self>,
    ) {
        let keeper = &mut self.keeper;
        if keeper.disk.is_none() || keeper.waiting_len >= QUEUE_LEN_MAX {
            // Whoever asked may have gone, here and below.
            let _ = reply.send(None);
            return;
        }
        keeper.waiting_len += posts.len();
        keeper.waiting.push_back(Waiting { posts, reply });
        self.write_next(ctx);
    }

    /// Hands the next batch to the disk, if none is under way.
    fn write_next(&mut self, ctx: &mut Context<Self>) {
        if self.keeper.in_flight.is_some() {
            return;
        }
        self.answer_disk(ctx);
        let Some(disk) = self.keeper.disk.clone() else { return };
        let mut plan = Plan::default();
        let now = ctx.now().0;
        while plan.records.len() < BATCH_LEN_MAX {
            let Some(Waiting { posts, reply }) = self.keeper.waiting.pop_front() else { break };
            self.keeper.waiting_len -= posts.len();
            let place = |(name, post)| self.place(name, post, now, &mut plan);
            let places = posts.into_iter().map(place).collect();
            plan.requests.push((places, reply));
        }
        if plan.requests.is_empty() {
            return;
        }
        let records = Arc::new(plan.records);
        self.keeper.in_flight = Some(Batch { records: records.clone(), requests: plan.requests });
        ctx.pipe(disk.keep(records), |is_kept| Kept { is_kept });
    }

    /// The place of one publication. All before the batch are in their channels already.
    fn place(&mut self, name: Arc<str>, post: Post, now: u64, plan: &mut Plan) -> Place {
        // What was published before must not make a channel that nothing would forget.
        let known = self.channels.get(&name).zip(post.key.as_ref());
        let known = known.and_then(|(channel, key)| channel.repeats(key, now));
        if let Some(position) = known {
            return Place::Known(position);
        }
        if post.row.as_ref().is_some_and(|row| self.keeper.rows.has(row, &name)) {
            return Place::Known(Position::default());
        }
        let Some(keep) = post.keep else { return Place::Known(Position::default()) };
        if let Some(place) = self.newer(&name, &post, plan) {
            return place;
        }
        let number = plan.records.len();
        if let Some(key) = &post.key {
            match plan.keys.entry((name.clone(), key.clone())) {
                Entry::Occupied(first) => return Place::Record(*first.get()),
                Entry::Vacant(place) => drop(place.insert(number)),
            }
        }
        if let Some(row) = &post.row {
            match plan.rows.entry((name.clone(), row.clone())) {
                Entry::Occupied(first) => return Place::Record(*first.get()),
                Entry::Vacant(place) => drop(place.insert(number)),
            }
        }
        let channel = self.channels.entry(name.clone()).or_default();
        let Position { offset, epoch } = channel.next_place(now, keep, &self.epochs);
        if let Some(version) = &post.version {
            plan.versions.insert(name.clone(), (version.clone(), number));
        }
        let key_until = now + KEYS_KEPT_MS;
        plan.records.push(Record { channel: name, epoch, offset, post, keep, at: now, key_until });
        Place::Record(number)
    }

    /// Where a channel is, if it has the version of a publication or a newer one.
    fn newer(&self, name: &Arc<str>, post: &Post, plan: &Plan) -> Option<Place> {
        let version = post.version.as_ref()?;
        match plan.versions.get(name) {
            Some((known, number)) => version.is_outdated(known).then_some(Place::Record(*number)),
            None => self.channels.get(name)?.has_newer(version).map(Place::Known),
        }
    }

    /// Removes the publications of a channel, first on disk.
    pub(super) fn remove(
        &mut self,
        channel: Arc<str>,
        reply: oneshot::Sender<bool>,
        ctx: &mut Context<Self>,
    ) {
        let known = self.channels.get_mut(&channel);
        let Some((known, (up_to, _))) = known.and_then(|it| it.state().map(|state| (it, state)))
        else {
            // There is nothing. Whoever asked may have gone, here and below.
            let _ = reply.send(true);
            return;
        };
        let Some(disk) = self.keeper.disk.as_ref().filter(|_| known.is_durable) else {
            known.clear(up_to);
            let _ = reply.send(true);
            return;
        };
        self.keeper.removals += 1;
        let removed = disk.remove(channel.clone(), up_to.offset);
        ctx.pipe(removed, move |is_removed| Removed { channel, up_to, is_removed, reply });
    }

    /// The disk has removed publications up to there, or nothing.
    pub(super) fn settle_removal(
        &mut self,
        name: &Arc<str>,
        up_to: Option<Position>,
        ctx: &mut Context<Self>,
    ) {
        self.keeper.removals -= 1;
        if let (Some(known), Some(up_to)) = (self.channels.get_mut(name), up_to) {
            known.clear(up_to);
        }
        self.look_later(name, ctx.now().0);
        self.answer_disk(ctx);
    }

    /// The batch under way is on disk, or was refused.
    pub(super) fn settle(&mut self, is_kept: bool, ctx: &mut Context<Self>) {
        let Some(batch) = self.keeper.in_flight.take() else { return };
        for record in batch.records.iter() {
            if let Some(channel) = self.channels.get_mut(&record.channel) {
                channel.in_flight -= 1;
            }
            if is_kept {
                let position = self.enter(&record.channel, &record.post, record.at);
                debug_assert_eq!(position, Position { offset: record.offset, epoch: record.epoch });
                if let Some(row) = &record.post.row {
                    self.keeper.rows.insert(row, &record.channel);
                }
            }
            self.look_later(&record.channel, ctx.now().0);
        }
        let position = |place| match place {
            Place::Known(position) => position,
            Place::Record(number) => {
                let Record { offset, epoch, .. } = batch.records[number];
                Position { offset, epoch }
            }
        };
        for (places, reply) in batch.requests {
            let positions = || places.into_iter().map(position).collect();
            let _ = reply.send(is_kept.then(positions));
        }
        if !is_kept {
            self.keeper.waiting_len = 0;
            for Waiting { reply, .. } in self.keeper.waiting.drain(..) {
                let _ = reply.send(None);
            }
        }
        self.write_next(ctx);
    }
}

/// The number of an owner among all.
pub(super) fn owner_of(ctx: &Context<Channels>) -> usize {
    ctx.key().parse().expect("owners are named by their numbers")
}

/// A batch that is being made up.
#[derive(Default)]
struct Plan {
    records: Vec<Record>,
    requests: Vec<(Vec<Place>, oneshot::Sender<Written>)>,
    keys: HashMap<(Arc<str>, Arc<str>), usize>,
    rows: HashMap<(Arc<str>, RowKey), usize>,
    versions: HashMap<Arc<str>, (Arc<Version>, usize)>,
}
