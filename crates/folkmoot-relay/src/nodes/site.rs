//! One node, as the others reach it: what owners of channels tell its subscribers, who is present
//! here, and what is to be done to users wherever they are connected.
//!
//! News are handed on in their order, each to the channels it is for. Whatever may take long, or
//! asks an owner in its turn, is done beside that: an owner that begins waits for this.

use std::sync::{Arc, Weak};

use althing::{
    ActorError, ActorOptions, ActorRef, Context, MailboxKind, ReplyTo, SendError, Wire, actor,
};
use bytes::Bytes;
use folkmoot_gateway::{Delivered, Emulated};
use folkmoot_protocol::Format;
use folkmoot_protocol::frame::ClientInfo;

use super::{Page, UserCommand, UserOutcome};
use crate::api::Info;
use crate::channels::{Bulletin, Channels, ChannelsCalls, Enlisted};
use crate::nodes::Nodes;
use crate::server::Server;

/// This node.
#[derive(Debug)]
pub(crate) struct Site {
    server: Weak<Server>,
    nodes: Arc<Nodes>,
    /// The subscribers of this node, by their channels' owners.
    shards: Arc<[ActorRef<Channels>]>,
}

/// Some of those who are present in a channel on one node.
#[derive(Debug, Clone, Wire)]
pub(crate) struct PresentThere {
    pub(crate) who: Vec<ClientInfo>,
    /// Before which place others are; `None`: these are the last.
    pub(crate) next: Option<usize>,
}

/// A channel, and how many are subscribed on one node.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Listed {
    pub(crate) channel: Arc<str>,
    pub(crate) clients: usize,
}

fn options() -> ActorOptions {
    ActorOptions::default().mailbox(MailboxKind::Bounded(16 * 1024))
}

impl Site {
    pub(crate) fn new(
        server: Weak<Server>,
        nodes: Arc<Nodes>,
        shards: Arc<[ActorRef<Channels>]>,
    ) -> Self {
        Self { server, nodes, shards }
    }

    fn shard(&self, shard: u32) -> Option<&ActorRef<Channels>> {
        self.shards.get(shard as usize)
    }
}

#[actor(name = "relay.site", wire, options = options)]
impl Site {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        // Whoever has failed is in no group any more; the first time, the node is no member yet.
        if self.nodes.is_serving() {
            self.nodes.show(&ctx.address())?;
        }
        Ok(())
    }

    /// Answers a node that has joined: from here on it is one of those that this node asks.
    pub(crate) async fn greet(&self) {}

    /// What an owner tells in one of its lives.
    pub(crate) async fn hear(&mut self, shard: u32, life: u64, news: Bulletin) {
        let Some(channels) = self.shard(shard) else { return };
        let mut news = news.0;
        // One without room makes this node read more slowly; nothing is passed over.
        while let Err(SendError::Timeout(message)) = channels.hear(life, news).tell().await {
            news = message.news;
        }
    }

    /// Answers when all that an owner told before was read.
    pub(crate) async fn last_word(&mut self, shard: u32) {
        if let Some(channels) = self.shard(shard) {
            // It counts its subscribers, behind what it was told.
            let _ = channels.count().await;
        }
    }

    /// An owner begins a life: where this node is in its channels. `None`: it cannot say that now.
    pub(crate) async fn enlist(&mut self, shard: u32, life: u64) -> Option<Enlisted> {
        let enlisted = self.shard(shard)?.enlist(life).await.ok()??;
        self.nodes.forget_moved(shard, life);
        Some(enlisted)
    }

    /// A part of what an owner that moves here keeps.
    pub(crate) async fn adopt(&mut self, shard: u32, page: Page) {
        self.nodes.adopt(shard, page);
    }

    /// Some of those who are present here, before a place in their list.
    #[delayed]
    pub(crate) async fn present(
        &mut self,
        shard: u32,
        channel: Arc<str>,
        before: usize,
        reply: ReplyTo<PresentThere>,
        ctx: &mut Context<Self>,
    ) {
        let Some(channels) = self.shard(shard).cloned() else { return };
        ctx.detach(async move {
            // Without an answer the reply is dropped, which is told.
            if let Ok(page) = channels.present(channel, before).await {
                let who = page.who.iter().map(|(connection, info)| connection.seen(info));
                reply.send(PresentThere { who: who.collect(), next: page.next });
            }
        });
    }

    /// The channels of one owner with subscribers here; those that match, if there is a pattern.
    #[delayed]
    pub(crate) async fn list(
        &mut self,
        shard: u32,
        pattern: String,
        reply: ReplyTo<Vec<Listed>>,
        ctx: &mut Context<Self>,
    ) {
        let Some(channels) = self.shard(shard).cloned() else { return };
        let pattern = match pattern.as_str() {
            "" => None,
            pattern => match regex::Regex::new(pattern) {
                Ok(pattern) => Some(pattern),
                Err(_) => return,
            },
        };
        ctx.detach(async move {
            if let Ok(listed) = channels.list(pattern).await {
                let listed = listed.into_iter();
                reply.send(listed.map(|(channel, clients)| Listed { channel, clients }).collect());
            }
        });
    }

    /// What this node tells of itself.
    #[delayed]
    pub(crate) async fn info(&mut self, reply: ReplyTo<Info>, ctx: &mut Context<Self>) {
        let Some(server) = self.server.upgrade() else { return };
        ctx.detach(async move {
            if let Ok(info) = crate::api::info(&server).await {
                reply.send(info);
            }
        });
    }

    /// Does something to those of a user's connections that are here.
    #[delayed]
    pub(crate) async fn command(
        &mut self,
        command: UserCommand,
        reply: ReplyTo<UserOutcome>,
        ctx: &mut Context<Self>,
    ) {
        let Some(server) = self.server.upgrade() else { return };
        ctx.detach(async move {
            reply.send(command.run(&server).await.into());
        });
    }

    /// Takes a command of a client whose session may be here; whether it is.
    #[delayed]
    pub(crate) async fn emulate(
        &mut self,
        is_protobuf: bool,
        body: Bytes,
        reply: ReplyTo<bool>,
        ctx: &mut Context<Self>,
    ) {
        let Some(server) = self.server.upgrade() else { return };
        ctx.detach(async move {
            let format = if is_protobuf { Format::Protobuf } else { Format::Json };
            let delivered = match Emulated::read(format, body) {
                Some(request) => server.emulation.here().deliver(request).await,
                None => Delivered::Nowhere,
            };
            reply.send(delivered == Delivered::There);
        });
    }
}
