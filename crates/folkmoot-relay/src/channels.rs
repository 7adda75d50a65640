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
mod expiry;
mod handing_over;
mod hub;
mod join;
mod keeping;
mod news;
mod owner;
mod pages;
mod post;
mod recovery;
mod road;
mod subscribers;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorOptions, Context, MailboxKind, actor};
use bytes::Bytes;
use folkmoot_protocol::frame::{HistoryResult, PushKind, SubscribeResult, Unsubscribe};

use crate::connection::Connection;
use crate::durable::{Disk, KnownRows, Restored, Turn};
use crate::epoch::Epochs;
use crate::payload::Encoded;
use crate::stream::{Keep, Query};
use across::Outgoing;
pub(crate) use branch::Begun;
use branch::Branch;
use channel::{Channel, Subscriber};
pub(crate) use hub::{Hub, Refused, SHARDS, Someone};
pub(crate) use join::{Answer, Join, NotMade};
use keeping::{Keeper, Written};
pub(crate) use news::{
    Attach, Bulletin, Enlisted, EnlistedChannel, Found, Heard, HistoryPage, Missing, MovedChannel,
    MovedKey, News, Shipment, What,
};
pub(crate) use owner::{Owner, OwnerCalls};
pub(crate) use post::{Position, Post};
use tokio::sync::oneshot;

/// How often what has expired is looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How long the outcome of a publication with an idempotency key is known.
pub(crate) const KEYS_KEPT_MS: u64 = 5 * 60 * 1_000;

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
            self.channels.entry(name.clone()).or_default().restore(restored, keep, now);
            self.look_later(&name, now);
        }
    }

    /// Some of which are durable.
    pub(crate) fn on_disk(disk: Disk, rows: Arc<KnownRows>) -> Self {
        Self { keeper: Keeper::new(disk, rows), ..Self::new() }
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

    /// It may hand over to the disk what it keeps, or a part of that.
    async fn granted(&mut self, turn: Turn, ctx: &mut Context<Self>) {
        self.take_turn(turn, ctx);
    }

    pub(crate) async fn restore(&mut self, found: Vec<FoundChannel>, ctx: &mut Context<Self>) {
        self.take_over(found, ctx.now().0);
    }

    #[cfg(test)]
    pub(crate) async fn fail_by_panic(&mut self) {
        panic!("a test wants it");
    }

    /// Makes a subscription, and tells its client of it before anything of the channel follows.
    pub(crate) async fn join(
        &mut self,
        join: Join,
        ctx: &mut Context<Self>,
    ) -> Result<SubscribeResult, NotMade> {
        self.join_here(join, ctx.now().0)
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

    /// Ends a subscription that its client did not ask to end, and tells it why. One that waits for
    /// its owner is not made.
    pub(crate) async fn expel(
        &mut self,
        channel: Arc<str>,
        client: Arc<str>,
        why: Unsubscribe,
        ctx: &mut Context<Self>,
    ) -> bool {
        self.give_up_join(&channel, &client, ctx.now().0);
        let Some(gone) = self.leave(&channel, &client, ctx.now().0) else { return false };
        let mut push = Encoded::new(&channel, PushKind::Unsubscribe(why));
        gone.connection.push(push.bytes(gone.connection.format));
        true
    }

    /// The backend says something else of a subscriber in this channel.
    pub(crate) async fn inform(&mut self, channel: Arc<str>, client: Arc<str>, info: Bytes) {
        let known = self.channels.get_mut(&channel);
        if let Some(subscriber) = known.and_then(|channel| channel.subscribers.get_mut(&client)) {
            subscriber.info = info;
        }
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

    /// Removes the publications of a channel; `reply` hears of it once the disk has it, too.
    pub(crate) async fn remove_history(
        &mut self,
        channel: Arc<str>,
        reply: oneshot::Sender<bool>,
        ctx: &mut Context<Self>,
    ) {
        self.remove(channel, reply, ctx);
    }

    /// The disk has answered.
    async fn removed(
        &mut self,
        channel: Arc<str>,
        up_to: Position,
        is_removed: bool,
        reply: oneshot::Sender<bool>,
        ctx: &mut Context<Self>,
    ) {
        self.settle_removal(&channel, is_removed.then_some(up_to), ctx);
        // Whoever asked may have gone.
        let _ = reply.send(is_removed);
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
        self.answer_disk(ctx);
    }
}

use channels_messages::Sweep;

#[cfg(test)]
mod tests;
