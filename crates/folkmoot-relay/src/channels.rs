//! The actors that own the channels. Each channel belongs to one of them, by its name, so all that
//! happens in a channel has one order: who subscribes gets what was published before in the reply
//! and what comes after as pushes, with nothing between them lost or doubled.
//!
//! A channel that nobody is subscribed to and that has no history takes no memory.

mod across;
mod branch;
mod channel;
mod coming;
mod delta;
mod hub;
mod keeping;
mod news;
mod owner;
mod recovery;
mod road;
mod subscribers;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorOptions, Context, MailboxKind, Wire, actor};
use bytes::Bytes;
use folkmoot_protocol::frame::{HistoryResult, PushKind, SubscribeResult, Unsubscribe};

use crate::connection::Connection;
use crate::durable::{Disk, KnownRows, Restored, RowKey};
use crate::epoch::{Epoch, Epochs};
use crate::payload::{Encoded, Payload};
use crate::stream::{Keep, Query};
use crate::tags::Filter;
use crate::version::Version;
use across::{Across, Outgoing};
pub(crate) use branch::Begun;
use branch::Branch;
use channel::{Channel, Subscriber};
use delta::Deltas;
pub(crate) use hub::{Hub, Refused, SHARDS, Someone};
use keeping::{Keeper, Written};
pub(crate) use news::{
    Attach, Bulletin, Enlisted, EnlistedChannel, Found, Heard, HistoryPage, Missing, MovedChannel,
    MovedKey, News, Shipment, What,
};
pub(crate) use owner::{Owner, OwnerCalls};
use tokio::sync::oneshot;

/// How often what has expired is looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How long the outcome of a publication with an idempotency key is known.
pub(crate) const KEYS_KEPT_MS: u64 = 5 * 60 * 1_000;

/// Where a publication went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Wire)]
pub(crate) struct Position {
    /// 0: in no history.
    pub(crate) offset: u64,
    pub(crate) epoch: Epoch,
}

/// What is to be published.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) payload: Arc<Payload>,
    /// `None`: it goes into no history.
    pub(crate) keep: Option<Keep>,
    /// The same key in the same channel is published once.
    pub(crate) key: Option<Arc<str>>,
    /// So is the same row, if the channel is durable.
    pub(crate) row: Option<RowKey>,
    /// Nothing that is older follows it in the same channel. Only what goes into a history has one.
    pub(crate) version: Option<Arc<Version>>,
    /// Whether it may go out as what has changed since the one before it.
    pub(crate) may_be_delta: bool,
}

/// Publications with their channels.
pub(crate) type Posts = Vec<(Arc<str>, Post)>;

/// A channel that was found on disk, and how much of it is kept.
pub(crate) type FoundChannel = (Arc<str>, Restored, Keep);

/// How much there is in channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Those that take memory.
    pub(crate) channels: usize,
    pub(crate) with_subscribers: usize,
    pub(crate) subscriptions: usize,
}

/// A subscription that is to be made.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) channel: Arc<str>,
    pub(crate) connection: Arc<Connection>,
    /// What the backend says of the connection in this channel.
    pub(crate) info: Bytes,
    pub(crate) has_presence: bool,
    /// Whether others hear of it, and whether it hears of others.
    pub(crate) tells_coming: bool,
    pub(crate) wants_comings: bool,
    pub(crate) keep: Option<Keep>,
    /// Where the client was, if it wants what it missed.
    pub(crate) since: Option<(u64, String)>,
    pub(crate) recovery_limit: usize,
    pub(crate) recovers_newest: bool,
    /// Which publications it wants; `None`: all.
    pub(crate) filter: Option<Box<Filter>>,
    /// What the reply says beside the position.
    pub(crate) result: SubscribeResult,
    pub(crate) answer: Answer,
}

/// How the client hears of a new subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// By the reply to its command of this number.
    Reply(u32),
    /// By a push.
    Push,
    /// In the reply to its connect command, which the caller makes.
    Connect,
}

impl Post {
    pub(crate) fn is_durable(&self) -> bool {
        self.keep.is_some_and(|keep| keep.is_durable)
    }
}

/// Some of those who are present in a channel.
#[derive(Debug, Default)]
pub(crate) struct Present {
    /// With what the backend says of each in this channel.
    pub(crate) who: Vec<(Arc<Connection>, Bytes)>,
    /// Before which place others are; `None`: these are the last.
    pub(crate) next: Option<usize>,
}

/// A part of all channels.
#[derive(Debug)]
pub(crate) struct Channels {
    channels: HashMap<Arc<str>, Channel>,
    /// When to look at which channel again; each is there at most once.
    due: BTreeSet<(u64, Arc<str>)>,
    epochs: Epochs,
    keeper: Keeper,
    /// What it begins with.
    found: Vec<FoundChannel>,
    /// For nodes that have subscribers, by node, where this is an owner's part.
    outgoing: Outgoing,
    /// Where publications come from, on one node of several; `None`: the relay is alone.
    branch: Option<Box<Branch>>,
}

fn options() -> ActorOptions {
    // It is never unloaded: what it keeps is nowhere else.
    ActorOptions::default().mailbox(MailboxKind::Bounded(16 * 1024))
}

impl Channels {
    pub(crate) fn new() -> Self {
        Self {
            channels: HashMap::new(),
            due: BTreeSet::new(),
            epochs: Epochs::new(),
            keeper: Keeper::default(),
            found: Vec::new(),
            outgoing: Outgoing::default(),
            branch: None,
        }
    }

    /// With channels that were found on disk.
    pub(crate) fn with(self, found: Vec<FoundChannel>) -> Self {
        Self { found, ..self }
    }

    fn take_over(&mut self, found: Vec<FoundChannel>, now: u64) {
        for (name, restored, keep) in found {
            self.channels.entry(name.clone()).or_default().restore(restored, keep);
            self.look_later(&name, now);
        }
    }

    /// Some of which are durable.
    pub(crate) fn on_disk(disk: Disk, rows: Arc<KnownRows>) -> Self {
        Self { keeper: Keeper::new(disk, rows), ..Self::new() }
    }

    fn publish_one(&mut self, name: &Arc<str>, post: &Post, now: u64) -> Position {
        let is_kept = post.keep.is_some() || post.key.is_some();
        let known = self.channels.get(name);
        if known.is_none() && !is_kept {
            // Nobody hears it and nothing is kept of it.
            return Position::default();
        }
        let key = post.key.as_ref();
        if let Some(position) = known.zip(key).and_then(|(channel, key)| channel.repeats(key, now))
        {
            return position;
        }
        let version = post.version.as_ref();
        if let Some(position) = known.zip(version).and_then(|(channel, it)| channel.has_newer(it)) {
            return position;
        }
        let position = self.enter(name, post, now);
        self.look_later(name, now);
        position
    }

    /// Takes a publication into its channel and tells its subscribers.
    fn enter(&mut self, name: &Arc<str>, post: &Post, now: u64) -> Position {
        let channel = self.channels.entry(name.clone()).or_default();
        let position = channel.push(post, now, &self.epochs);
        if channel.is_heard() {
            let heard = Heard {
                payload: post.payload.clone(),
                offset: position.offset,
                may_be_delta: post.may_be_delta,
            };
            channel.publish(name, &heard);
            if let Across::Owned(nodes) = &channel.across {
                self.outgoing.add(nodes, name, || What::Published(heard.clone()));
            }
        } else {
            channel.base = None;
        }
        if post.version.is_some() {
            channel.version.clone_from(&post.version);
        }
        if let Some(key) = &post.key {
            channel.remember(key.clone(), position, now + KEYS_KEPT_MS);
        }
        position
    }

    /// Notes when a channel has something to forget, or forgets it.
    fn look_later(&mut self, name: &Arc<str>, now: u64) {
        let Some(channel) = self.channels.get_mut(name) else { return };
        let before = channel.state().filter(|_| channel.is_durable);
        let (at, due) = (channel.expire(now, &mut self.epochs), channel.due);
        if let (Some((position, had_history)), Some(disk)) = (before, &self.keeper.disk) {
            match channel.state() {
                None => disk.forget(name.clone(), position.epoch),
                Some((_, false)) if had_history => disk.clear(name.clone(), position.offset),
                Some(_) => {}
            }
        }
        let is_over = at.is_none() && !channel.is_heard();
        let is_earlier = at.is_some_and(|at| due.is_none_or(|due| at < due));
        if !is_over && !is_earlier {
            // It is looked at soon enough.
            return;
        }
        if let Some(due) = due {
            self.due.remove(&(due, name.clone()));
        }
        channel.due = at;
        match at {
            Some(at) => drop(self.due.insert((at, name.clone()))),
            None => {
                self.channels.remove(name);
                self.detach(name);
            }
        }
    }

    /// Forgets what has expired.
    fn forget_old(&mut self, now: u64) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.due.pop_first() else { return };
            if let Some(channel) = self.channels.get_mut(&name) {
                channel.due = None;
            }
            self.look_later(&name, now);
        }
    }

    fn page_of(&mut self, name: &Arc<str>, query: &Query, keep: Keep, now: u64) -> HistoryResult {
        let known = self.channels.entry(name.clone()).or_default();
        let stream = known.stream(now, keep, &self.epochs);
        stream.expire(now);
        let publications = stream.page(query);
        let (epoch, offset) = (stream.epoch().to_string(), stream.top());
        self.look_later(name, now);
        HistoryResult { publications, epoch, offset }
    }

    fn leave(&mut self, name: &Arc<str>, client: &str, now: u64) -> Option<Subscriber> {
        let channel = self.channels.get_mut(name)?;
        let gone = channel.remove(client)?;
        gone.connection.forget(name);
        if gone.tells_coming {
            let info = gone.connection.seen(&gone.info);
            match &self.branch {
                Some(branch) => branch.tell(name, What::Left(info)),
                None => channel.tell_leaving(name, info),
            }
        }
        self.look_later(name, now);
        Some(gone)
    }
}

#[actor(name = "relay.channels", options = options)]
impl Channels {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.every(SWEEP_EVERY, Sweep);
        let found = std::mem::take(&mut self.found);
        self.take_over(found, ctx.now().0);
        Ok(())
    }

    pub(crate) async fn publish(
        &mut self,
        channel: Arc<str>,
        post: Post,
        ctx: &mut Context<Self>,
    ) -> Position {
        let now = ctx.now().0;
        self.publish_one(&channel, &post, now)
    }

    pub(crate) async fn publish_all(
        &mut self,
        posts: Vec<(Arc<str>, Post)>,
        ctx: &mut Context<Self>,
    ) -> Vec<Position> {
        let now = ctx.now().0;
        posts.iter().map(|(channel, post)| self.publish_one(channel, post, now)).collect()
    }

    /// Publishes into durable channels; `reply` hears of it once they are on disk.
    pub(crate) async fn store(
        &mut self,
        posts: Posts,
        reply: oneshot::Sender<Written>,
        ctx: &mut Context<Self>,
    ) {
        self.take_in(posts, reply, ctx);
    }

    /// The disk has answered.
    async fn kept(&mut self, is_kept: bool, ctx: &mut Context<Self>) {
        self.settle(is_kept, ctx);
    }

    pub(crate) async fn restore(&mut self, found: Vec<FoundChannel>, ctx: &mut Context<Self>) {
        self.take_over(found, ctx.now().0);
    }

    #[cfg(test)]
    pub(crate) async fn fail_by_panic(&mut self) {
        panic!("a test wants it");
    }

    /// Makes a subscription, and tells its client of it before anything of the channel follows.
    /// `None`: it is not wanted any more, because it was taken back or its connection has ended.
    pub(crate) async fn join(
        &mut self,
        join: Join,
        ctx: &mut Context<Self>,
    ) -> Option<SubscribeResult> {
        let now = ctx.now().0;
        let name = join.channel.clone();
        // Decided here and not by who asks: whoever takes it back tells this actor afterwards.
        if !join.connection.hold(&name) {
            return None;
        }
        let channel = self.channels.entry(name.clone()).or_default();
        let mut result = join.result.clone();
        if let Some(keep) = join.keep {
            let stream = channel.stream(now, keep, &self.epochs);
            stream.expire(now);
            let found = stream.find(&join.missing_here(), |payload| join.wants(&payload.tags));
            recovery::recover(&join, found, &mut result);
        }
        let Join { connection, answer, filter, .. } = join;
        coming::tell(answer, &connection, &name, &result);
        if join.tells_coming {
            channel.tell_coming(&name, connection.seen(&join.info));
        }
        let deltas = Deltas::of(&result, channel);
        channel.add(Subscriber {
            connection,
            info: join.info,
            has_presence: join.has_presence,
            tells_coming: join.tells_coming,
            wants_comings: join.wants_comings,
            deltas,
            filter,
            is_positioned: result.positioned || result.recoverable,
            since: 0,
        });
        self.look_later(&name, now);
        Some(result)
    }

    /// Begins a subscription on one node of several.
    pub(crate) async fn begin(&mut self, join: Join, ctx: &mut Context<Self>) -> Begun {
        self.begin_join(join, ctx.now().0)
    }

    /// Goes on with a subscription whose owner has answered.
    pub(crate) async fn finish(
        &mut self,
        channel: Arc<str>,
        number: u64,
        found: Found,
        ctx: &mut Context<Self>,
    ) -> Begun {
        self.finish_join(&channel, number, found, ctx.now().0)
    }

    /// The owner has not answered, or nobody waits for it any more.
    pub(crate) async fn give_up(
        &mut self,
        channel: Arc<str>,
        client: Arc<str>,
        ctx: &mut Context<Self>,
    ) {
        self.give_up_join(&channel, &client, ctx.now().0);
    }

    /// What the owner of these channels tells in one of its lives.
    pub(crate) async fn hear(&mut self, life: u64, news: Vec<News>, ctx: &mut Context<Self>) {
        self.take_news(life, news, ctx.now().0);
    }

    /// The owner of these channels begins a life.
    pub(crate) async fn enlist(&mut self, life: u64) -> Option<Enlisted> {
        self.enlist_for(life)
    }

    /// Ends a subscription; says whether there was one.
    pub(crate) async fn part(
        &mut self,
        channel: Arc<str>,
        client: Arc<str>,
        ctx: &mut Context<Self>,
    ) -> bool {
        self.give_up_join(&channel, &client, ctx.now().0);
        self.leave(&channel, &client, ctx.now().0).is_some()
    }

    /// Ends a subscription that its client did not ask to end, and tells it why.
    pub(crate) async fn expel(
        &mut self,
        channel: Arc<str>,
        client: Arc<str>,
        why: Unsubscribe,
        ctx: &mut Context<Self>,
    ) -> bool {
        let Some(gone) = self.leave(&channel, &client, ctx.now().0) else { return false };
        let mut push = Encoded::new(&channel, PushKind::Unsubscribe(why));
        gone.connection.push(push.bytes(gone.connection.format));
        true
    }

    /// Some of those who are present, before a place in their list.
    pub(crate) async fn present(&self, channel: Arc<str>, before: usize) -> Present {
        let channel = self.channels.get(&channel);
        channel.map(|channel| channel.present(before)).unwrap_or_default()
    }

    /// A part of the history, and the position.
    pub(crate) async fn history(
        &mut self,
        channel: Arc<str>,
        query: Query,
        keep: Keep,
        ctx: &mut Context<Self>,
    ) -> HistoryResult {
        self.page_of(&channel, &query, keep, ctx.now().0)
    }

    pub(crate) async fn remove_history(&mut self, channel: Arc<str>) {
        let Some(known) = self.channels.get_mut(&channel) else { return };
        known.clear();
        let position = known.state().filter(|_| known.is_durable);
        if let (Some((position, _)), Some(disk)) = (position, &self.keeper.disk) {
            disk.clear(channel, position.offset);
        }
    }

    pub(crate) async fn list(&self, pattern: Option<regex::Regex>) -> Vec<(Arc<str>, usize)> {
        let has_subscribers = self.channels.iter().filter(|(_, one)| one.has_subscribers());
        has_subscribers
            .filter(|(name, _)| pattern.as_ref().is_none_or(|pattern| pattern.is_match(name)))
            .map(|(name, one)| (name.clone(), one.subscribers()))
            .collect()
    }

    /// How much there is.
    pub(crate) async fn count(&self) -> Count {
        let subscriptions = self.channels.values().map(Channel::subscribers);
        Count {
            channels: self.channels.len(),
            with_subscribers: subscriptions.clone().filter(|count| *count > 0).count(),
            subscriptions: subscriptions.sum(),
        }
    }

    /// Forgets what has expired.
    #[derive(Clone)]
    async fn sweep(&mut self, ctx: &mut Context<Self>) {
        self.forget_old(ctx.now().0);
    }
}

use channels_messages::Sweep;

#[cfg(test)]
mod tests;
