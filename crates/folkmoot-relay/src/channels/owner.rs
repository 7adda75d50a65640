//! The owner of a part of the channels, where the relay has several nodes: it numbers and keeps
//! what is published and tells it to the nodes with subscribers. It lives on one node, whichever
//! the cluster says, and knows no connection.
//!
//! Each life begins by asking every node where its subscribers are, before anything else: so nobody
//! is forgotten when the owner moves or is lost. When it moves, what it keeps goes with it; when it
//! is lost with its node, histories and keys are lost too, and subscribers that were promised to
//! miss nothing are told to come back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use althing::{
    ActorError, ActorOptions, ActorRef, AskError, Context, MailboxKind, ReplyTo, Start, StopReason,
    actor,
};
use tokio::task::JoinSet;

use super::across::Across;
use super::pages::Pages;
use super::road::{Behind, Road};
use super::{
    Attach, Bulletin, Channels, Enlisted, EnlistedChannel, Found, Heard, HistoryPage, Position,
    Shipment, What,
};
use crate::epoch::Epochs;
use crate::nodes::{Nodes, Site, SiteCalls, node_of};
use crate::payload::publication_len;
use crate::stream::{Keep, Query, Stream};

/// How often what has expired is looked for, and which nodes are gone.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How long a node may take to say which subscribers it has; one that was lost is known to be so
/// before.
const ENLIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two questions to a node that does not answer.
const ENLIST_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long the last news may take when the owner moves.
const LAST_NEWS_TIMEOUT: Duration = Duration::from_secs(5);
/// Publications of one answer, in bytes: more would not fit into a frame between nodes.
const ANSWER_BYTES_MAX: usize = 32 << 20;

#[derive(Debug)]
pub(crate) struct Owner {
    shard: u32,
    nodes: Arc<Nodes>,
    /// Streams and keys; nobody is subscribed here.
    channels: Channels,
    /// By which news are told from those of former lives: it rises from life to life.
    life: u64,
    /// Nodes that have said where they are, by the life of the node.
    roads: HashMap<u64, Road>,
    /// Questions of nodes that have not said it yet.
    waiting: HashMap<u64, Vec<(Attach, ReplyTo<Found>)>>,
}

fn options() -> ActorOptions {
    // It is never unloaded: what it keeps is nowhere else.
    ActorOptions::default().mailbox(MailboxKind::Bounded(16 * 1024))
}

impl Owner {
    pub(crate) fn new(start: &Start<Self>, nodes: Arc<Nodes>) -> Result<Self, ActorError> {
        let shard = start.key_as()?;
        let channels = Channels::new();
        let life = nodes.next_life(start.activation().epoch);
        Ok(Self { shard, nodes, channels, life, roads: HashMap::new(), waiting: HashMap::new() })
    }

    /// Takes over what the former life has handed on; the names of its channels.
    fn arrive(&mut self, now: u64) -> Vec<Arc<str>> {
        let Some(shelf) = self.nodes.take_moved(self.shard) else { return Vec::new() };
        self.channels.epochs = Epochs::after(shelf.epochs);
        let known = shelf.channels.into_iter().map(|moved| {
            let name = moved.name.clone();
            self.channels.channels.entry(name.clone()).or_default().arrive(moved, now);
            name
        });
        known.collect()
    }

    /// A node has said where it is; it gets what it has missed.
    fn enroll(&mut self, site: ActorRef<Site>, enlisted: Enlisted, now: u64) {
        let node = node_of(&site);
        let road = Road::open(self.nodes.clone(), site, (self.shard, self.life));
        self.roads.insert(node, road);
        for EnlistedChannel { name, keep, position } in enlisted.channels {
            let channel = self.channels.channels.entry(name.clone()).or_default();
            channel.across.hearers().insert(node, enlisted.number);
            if let (Some(keep), Some(was)) = (keep, position) {
                let stream = channel.stream(now, keep, &self.channels.epochs);
                stream.expire(now);
                for what in since(stream, was) {
                    self.channels.outgoing.add_for(node, &name, what);
                }
            }
            self.channels.look_later(&name, now);
        }
    }

    /// Asks a node where it is, after all that it was told before.
    fn ask_where(&mut self, site: ActorRef<Site>, former: Option<Road>, ctx: &mut Context<Self>) {
        let (shard, life) = (self.shard, self.life);
        let asked = async move {
            if let Some(former) = former {
                former.end().await;
            }
            let outcome = site.enlist(shard, life).timeout(ENLIST_TIMEOUT).await;
            if !matches!(outcome, Ok(Some(_))) {
                tokio::time::sleep(ENLIST_AGAIN_AFTER).await;
            }
            (site, outcome)
        };
        ctx.pipe(asked, |(site, outcome)| Answered { site, outcome });
    }

    /// Sends what this turn has for nodes.
    fn send_news(&mut self, ctx: &mut Context<Self>) {
        for (node, news) in self.channels.outgoing.take() {
            let Entry::Occupied(road) = self.roads.entry(node) else { continue };
            if let Err(Behind) = road.get().send(news) {
                let road = road.remove();
                tracing::warn!(shard = self.shard, node, "a node is far behind; it begins anew");
                self.waiting.entry(node).or_default();
                self.ask_where(road.site.clone(), Some(road), ctx);
            }
        }
    }

    /// Lets a node hear of a channel, and says what its client has missed.
    fn take(&mut self, attach: Attach, now: u64) -> Found {
        let Attach { site, channel: name, number, keep, missed } = attach;
        let channel = self.channels.channels.entry(name.clone()).or_default();
        channel.across.hearers().insert(node_of(&site), number);
        let nothing = Found { life: 0, position: None, missed: Vec::new(), is_all: false };
        let found = keep.map_or(nothing, |keep| {
            let stream = channel.stream(now, keep, &self.channels.epochs);
            stream.expire(now);
            let found = stream.find(&missed, |_| true);
            let len: usize = found.missed.iter().map(publication_len).sum();
            match len > ANSWER_BYTES_MAX {
                true => Found { missed: Vec::new(), is_all: false, ..found },
                false => found,
            }
        });
        self.channels.look_later(&name, now);
        Found { life: self.life, ..found }
    }

    /// Hands what is kept to the node that the owner moves to.
    async fn hand_over(&mut self, ctx: &Context<Self>) {
        let Some(heir) = self.nodes.heir_of(&ctx.id()).await else {
            tracing::warn!(shard = self.shard, "nobody takes over what channels keep");
            return;
        };
        let epochs = self.channels.epochs.current().number();
        let channels = std::mem::take(&mut self.channels.channels);
        let moved = channels.into_iter().map(|(name, channel)| channel.leave(name));
        let mut pages = Pages::new(moved, self.life, epochs);
        let mut number = 0;
        loop {
            let (page, is_last) = pages.next(number);
            if let Err(error) = heir.adopt(self.shard, page).timeout(ENLIST_TIMEOUT).await {
                tracing::warn!(shard = self.shard, %error, "what channels keep is not taken over");
                return;
            }
            number += 1;
            if is_last {
                return;
            }
        }
    }
}

/// What a node has missed that was there.
fn since(stream: &Stream, was: Position) -> Vec<What> {
    let at = Position { offset: stream.top(), epoch: stream.epoch() };
    let missed = stream.since(was.offset, &was.epoch.to_string(), usize::MAX);
    if !missed.is_all {
        return vec![What::Anew(at)];
    }
    let published = missed.publications.into_iter().map(|one| {
        let offset = one.offset;
        What::Published(Heard { payload: Arc::new(one.into()), offset, may_be_delta: false })
    });
    published.collect()
}

#[actor(name = "relay.owner", wire, options = options)]
impl Owner {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.every(SWEEP_EVERY, Sweep);
        let now = ctx.now().0;
        let known = self.arrive(now);
        let (shard, life) = (self.shard, self.life);
        let mut asked = JoinSet::new();
        for site in self.nodes.everyone().await {
            asked.spawn(async move {
                let outcome = site.enlist(shard, life).timeout(ENLIST_TIMEOUT).await;
                (site, outcome)
            });
        }
        while let Some(answered) = asked.join_next().await {
            match answered? {
                (site, Ok(Some(enlisted))) => self.enroll(site, enlisted, now),
                (site, outcome) => {
                    tracing::debug!(shard, ?outcome, "a node has not said where it is");
                    self.waiting.entry(node_of(&site)).or_default();
                    self.ask_where(site, None, ctx);
                }
            }
        }
        // Only now it is known which of them somebody hears.
        known.iter().for_each(|name| self.channels.look_later(name, now));
        self.send_news(ctx);
        Ok(())
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, reason: StopReason) {
        let roads = std::mem::take(&mut self.roads);
        let ended = async {
            for road in roads.into_values().map(|road| tokio::spawn(road.end())) {
                let _ = road.await;
            }
        };
        if tokio::time::timeout(LAST_NEWS_TIMEOUT, ended).await.is_err() {
            tracing::warn!(shard = self.shard, "some nodes have not read the last news");
        }
        if reason == StopReason::Moved {
            self.hand_over(ctx).await;
        }
    }

    /// Begins, if it has not begun.
    pub(crate) async fn wake(&self) {}

    pub(crate) async fn publish_all(
        &mut self,
        posts: Shipment,
        ctx: &mut Context<Self>,
    ) -> Vec<Position> {
        let now = ctx.now().0;
        let publish = |(name, post)| self.channels.publish_one(&name, &post, now);
        let positions = posts.0.into_iter().map(publish).collect();
        self.send_news(ctx);
        positions
    }

    #[delayed]
    pub(crate) async fn attach(
        &mut self,
        attach: Attach,
        reply: ReplyTo<Found>,
        ctx: &mut Context<Self>,
    ) {
        let node = node_of(&attach.site);
        if self.roads.contains_key(&node) {
            reply.send(self.take(attach, ctx.now().0));
            return;
        }
        let site = attach.site.clone();
        let is_first = !self.waiting.contains_key(&node);
        self.waiting.entry(node).or_default().push((attach, reply));
        if is_first {
            self.ask_where(site, None, ctx);
        }
    }

    /// A node has said where it is, or nothing.
    #[wire(skip)]
    async fn answered(
        &mut self,
        site: ActorRef<Site>,
        outcome: Result<Option<Enlisted>, AskError>,
        ctx: &mut Context<Self>,
    ) {
        let (node, now) = (node_of(&site), ctx.now().0);
        match outcome {
            Ok(Some(enlisted)) => {
                self.enroll(site, enlisted, now);
                for (attach, reply) in self.waiting.remove(&node).into_iter().flatten() {
                    reply.send(self.take(attach, now));
                }
                self.send_news(ctx);
            }
            Ok(None) | Err(_) if self.nodes.has(node) => self.ask_where(site, None, ctx),
            Ok(None) | Err(_) => {
                self.waiting.remove(&node);
                // It may have been a hearer before it was behind.
                self.forget_nodes(now);
            }
        }
    }

    /// Nobody on a node is subscribed any more, unless it has asked again since.
    pub(crate) async fn detach(
        &mut self,
        site: ActorRef<Site>,
        channel: Arc<str>,
        number: u64,
        ctx: &mut Context<Self>,
    ) {
        if let Some(known) = self.channels.channels.get_mut(&channel) {
            known.across.hearers().remove(node_of(&site), number);
            self.channels.look_later(&channel, ctx.now().0);
        }
    }

    /// Tells all nodes with subscribers what a node knows.
    pub(crate) async fn pass_on(&mut self, news: Bulletin, ctx: &mut Context<Self>) {
        for news in news.0 {
            let known = self.channels.channels.get(&news.channel);
            if let Some(Across::Owned(nodes)) = known.map(|channel| &channel.across) {
                self.channels.outgoing.add(nodes, &news.channel, || news.what.clone());
            }
        }
        self.send_news(ctx);
    }

    /// A part of the history, and the position.
    pub(crate) async fn history(
        &mut self,
        channel: Arc<str>,
        query: Query,
        keep: Keep,
        ctx: &mut Context<Self>,
    ) -> HistoryPage {
        let mut page = self.channels.page_of(&channel, &query, keep, ctx.now().0);
        let mut len = 0;
        let fits = page.publications.iter().take_while(|one| {
            len += publication_len(one);
            len <= ANSWER_BYTES_MAX
        });
        let fits = fits.count().max(1);
        page.publications.truncate(fits);
        let (publications, epoch, offset) = (page.publications, page.epoch, page.offset);
        HistoryPage { publications, epoch, offset }
    }

    pub(crate) async fn remove_history(&mut self, channel: Arc<str>) {
        let known = self.channels.channels.get_mut(&channel);
        if let Some((known, (up_to, _))) = known.and_then(|it| it.state().map(|state| (it, state)))
        {
            known.clear(up_to);
        }
    }

    #[cfg(test)]
    #[wire(skip)]
    pub(crate) async fn fail_by_panic(&mut self) {
        panic!("a test wants it");
    }

    /// As if too much waited for a node, which reads it until the other end is dropped.
    #[cfg(test)]
    #[wire(skip)]
    pub(crate) async fn fall_behind(
        &mut self,
        node: u64,
        until: tokio::sync::oneshot::Receiver<()>,
        ctx: &mut Context<Self>,
    ) {
        let site = self.roads.remove(&node).expect("it has said where it is").site;
        self.waiting.entry(node).or_default();
        let (shard, life) = (self.shard, self.life);
        let asked = async move {
            let _ = until.await;
            let outcome = site.enlist(shard, life).timeout(ENLIST_TIMEOUT).await;
            (site, outcome)
        };
        ctx.pipe(asked, |(site, outcome)| Answered { site, outcome });
    }

    /// The nodes that hear of a channel.
    #[cfg(test)]
    #[wire(skip)]
    pub(crate) async fn hearers(&mut self, channel: Arc<str>) -> Vec<u64> {
        let known = self.channels.channels.get(&channel);
        match known.map(|channel| &channel.across) {
            Some(Across::Owned(nodes)) => nodes.nodes(),
            _ => Vec::new(),
        }
    }

    /// Forgets what has expired, and nodes that are gone.
    #[wire(skip)]
    #[derive(Clone)]
    async fn sweep(&mut self, ctx: &mut Context<Self>) {
        let now = ctx.now().0;
        let nodes = self.nodes.clone();
        let known = self.roads.len();
        self.roads.retain(|node, _| nodes.has(*node));
        if self.roads.len() < known {
            self.forget_nodes(now);
        }
        self.channels.forget_old(now);
    }
}

impl Owner {
    /// Forgets nodes that are gone as hearers.
    fn forget_nodes(&mut self, now: u64) {
        let names: Vec<_> = self.channels.channels.keys().cloned().collect();
        for name in names {
            let Some(channel) = self.channels.channels.get_mut(&name) else { continue };
            let (roads, waiting) = (&self.roads, &self.waiting);
            let is_there = |node| roads.contains_key(&node) || waiting.contains_key(&node);
            if let Across::Owned(nodes) = &mut channel.across {
                nodes.retain(is_there);
            }
            self.channels.look_later(&name, now);
        }
    }
}

use owner_messages::{Answered, Sweep};
