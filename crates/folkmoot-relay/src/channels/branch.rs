//! The subscribers that came to this node, where the relay has several: numbers and histories are
//! with the owner, perhaps on another node, and what it publishes comes as news.
//!
//! Whoever subscribes waits until the owner has said what was missed; what comes meanwhile is kept
//! for it, so that nothing is lost or doubled between the reply and the pushes. News of a former
//! life of the owner count for nothing: the next one asks first where this node is.

use std::sync::Arc;

use althing::ActorRef;
use folkmoot_protocol::DisconnectCode;
use folkmoot_protocol::frame::{PushKind, SubscribeResult, Unsubscribe};

use super::across::Waiting;
use super::channel::Subscriber;
use super::delta::{Deltas, push_whole};
use super::{
    Attach, Bulletin, Channels, Enlisted, EnlistedChannel, Found, Heard, Join, News, Owner,
    OwnerCalls, Position, What, coming, recovery,
};
use crate::connection::Connection;
use crate::nodes::Site;
use crate::payload::Encoded;

/// The SDKs subscribe again by themselves, and say where they were.
const LOST_ITS_PLACE: u32 = 2500;
/// Of the number of a question: the count within one life of the branch. Lives are above it.
const QUESTIONS_BITS: u32 = 40;

/// Where the news of these channels come from.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) owner: ActorRef<Owner>,
    /// This node, as owners know it.
    pub(super) site: ActorRef<Site>,
    /// The last life of the owner that was heard of, whose news count; 0: none.
    life: u64,
    /// Of the last question to the owner. It rises from life to life, too: the owner remembers which
    /// was the last, and an answer to a former life is none to this one.
    number: u64,
}

/// How a subscription begins.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It is not wanted any more.
    Gone,
    /// What was missed cannot be given, and without it the client wants none.
    Unrecoverable,
    Joined(Box<SubscribeResult>),
    /// The owner has to be asked first.
    Ask(Box<Attach>),
}

impl Branch {
    /// `begun` times it has begun before.
    pub(super) fn new(owner: ActorRef<Owner>, site: ActorRef<Site>, begun: u64) -> Self {
        Self { owner, site, life: 0, number: begun << QUESTIONS_BITS }
    }

    /// Has the owner tell all nodes something.
    pub(super) fn tell(&self, channel: &Arc<str>, what: What) {
        let news = Bulletin(vec![News { channel: channel.clone(), what }]);
        let Err(refused) = self.owner.pass_on(news).try_tell() else { return };
        let (owner, message) = (self.owner.clone(), refused.into_message());
        tokio::spawn(async move {
            if owner.send(message).tell().await.is_err() {
                tracing::warn!(owner = %owner.id(), "who came or left is not told");
            }
        });
    }
}

impl Channels {
    /// Those of this node; their owners may be elsewhere.
    /// `begun` times they have begun before.
    pub(crate) fn of_owner(owner: ActorRef<Owner>, site: ActorRef<Site>, begun: u64) -> Self {
        Self { branch: Some(Box::new(Branch::new(owner, site, begun))), ..Self::new() }
    }

    /// Nobody here is subscribed to a channel any more.
    pub(super) fn detach(&self, name: &Arc<str>) {
        let Some(branch) = &self.branch else { return };
        // An owner that has no room now tells more of the channel, and hears this again then.
        let _ = branch.owner.detach(branch.site.clone(), name.clone(), branch.number).try_tell();
    }

    pub(super) fn begin_join(&mut self, join: Join, now: u64) -> Begun {
        let Some(branch) = &mut self.branch else { return Begun::Gone };
        if !join.connection.has_place(&join.channel) {
            return Begun::Gone;
        }
        let name = join.channel.clone();
        let channel = self.channels.entry(name.clone()).or_default();
        let branched = channel.across.branched();
        if join.keep.is_none() && branched.is_attached {
            return self.settle_join(join, None, &[], now);
        }
        branch.number += 1;
        branched.keep = join.keep;
        let attach = Attach {
            site: branch.site.clone(),
            channel: name,
            number: branch.number,
            keep: join.keep,
            missed: join.missing(),
        };
        let from = branched.meanwhile.len();
        branched.waiting.push(Waiting { number: branch.number, join, from });
        Begun::Ask(Box::new(attach))
    }

    /// The owner has answered the question of this number.
    pub(super) fn finish_join(
        &mut self,
        name: &Arc<str>,
        number: u64,
        found: Found,
        now: u64,
    ) -> Begun {
        let Some(branch) = &mut self.branch else { return Begun::Gone };
        let Some(channel) = self.channels.get_mut(name) else { return Begun::Gone };
        let Some((join, since)) = channel.across.branched().take(number) else {
            return Begun::Gone;
        };
        if found.life < branch.life {
            // Between that life and this one something may have been published.
            let begun = self.begin_join(join, now);
            self.look_later(name, now);
            return begun;
        }
        branch.life = found.life;
        self.settle_join(join, Some(found), &since, now)
    }

    /// The owner has not answered.
    pub(super) fn give_up_join(&mut self, name: &Arc<str>, client: &str, now: u64) {
        if self.branch.is_none() {
            return;
        }
        if let Some(channel) = self.channels.get_mut(name) {
            channel.across.branched().give_up(client);
            self.look_later(name, now);
        }
    }

    /// Makes a subscription, and pushes what came while the owner was asked.
    fn settle_join(&mut self, join: Join, found: Option<Found>, since: &[What], now: u64) -> Begun {
        let name = join.channel.clone();
        if !join.connection.hold(&name) {
            self.look_later(&name, now);
            return Begun::Gone;
        }
        let channel = self.channels.entry(name.clone()).or_default();
        let mut result = join.result.clone();
        let mut top = 0;
        let branched = channel.across.branched();
        branched.is_attached = true;
        if let Some(found) = found {
            if let (Some(position), None) = (found.position, branched.position) {
                branched.position = Some(after(position, since));
            }
            top = found.position.map_or(0, |position| position.offset);
            recovery::recover(&join, found, &mut result);
        }
        if join.refuses(&result) {
            join.connection.forget(&name);
            self.look_later(&name, now);
            return Begun::Unrecoverable;
        }
        let Join { connection, answer, filter, .. } = join;
        coming::tell(answer, &connection, &name, &result);
        let comes = join.tells_coming.then(|| connection.seen(&join.info));
        let subscriber = Subscriber {
            deltas: Deltas::of(&result, channel),
            connection,
            info: join.info,
            has_presence: join.has_presence,
            tells_coming: join.tells_coming,
            wants_comings: join.wants_comings,
            filter,
            is_positioned: result.positioned || result.recoverable,
            is_by_server: answer.is_by_server(),
            since: top,
        };
        for what in since {
            push_to(&subscriber, &name, what);
        }
        channel.add(subscriber);
        // Only now: whoever is refused or gone before has not come, and would never leave. It hears of
        // itself, too.
        if let (Some(branch), Some(info)) = (&self.branch, comes) {
            branch.tell(&name, What::Came(info));
        }
        self.look_later(&name, now);
        Begun::Joined(Box::new(result))
    }

    /// Takes in what a life of the owner tells.
    pub(super) fn take_news(&mut self, life: u64, news: Vec<News>, now: u64) {
        let Some(branch) = &mut self.branch else { return };
        if life < branch.life {
            return;
        }
        branch.life = life;
        for News { channel, what } in news {
            self.take_one(&channel, what, now);
        }
    }

    fn take_one(&mut self, name: &Arc<str>, what: What, now: u64) {
        let Some(channel) = self.channels.get_mut(name) else { return self.detach(name) };
        let branched = channel.across.branched();
        match &what {
            What::Published(heard) => match branched.place(heard) {
                Place::Known => return,
                Place::Next => {}
                Place::Beyond => {
                    // Something between is missing, though nothing should be.
                    tracing::warn!(channel = %name, "news of a channel are missing");
                    self.lose_place(name, now);
                }
            },
            What::Anew(position) => {
                branched.position = Some(*position);
                channel.subscribers.iter_mut().for_each(|subscriber| subscriber.since = 0);
                self.lose_place(name, now);
            }
            What::Came(_) | What::Left(_) => {}
        }
        let Some(channel) = self.channels.get_mut(name) else { return };
        channel.across.branched().note(&what);
        match what {
            What::Published(heard) => channel.publish(name, &heard),
            What::Came(info) => channel.tell_coming(name, info),
            What::Left(info) => channel.tell_leaving(name, info),
            What::Anew(_) => {}
        }
        self.keep_within(name);
    }

    /// Whoever has waited for too long is given up.
    fn keep_within(&mut self, name: &Arc<str>) {
        let Some(channel) = self.channels.get_mut(name) else { return };
        if channel.across.branched().keep_within() {
            tracing::warn!(channel = %name, "subscriptions have waited for too long");
        }
    }

    /// Subscribers that were promised to miss nothing have to come back; the others go on. Who was
    /// subscribed by the server comes back with the whole connection: SDKs and listeners would take
    /// the end of such a subscription as final.
    fn lose_place(&mut self, name: &Arc<str>, now: u64) {
        let Some(channel) = self.channels.get_mut(name) else { return };
        let positioned = channel.subscribers.iter().filter(|subscriber| subscriber.is_positioned);
        let lost: Vec<(Arc<Connection>, bool)> = positioned
            .map(|subscriber| (subscriber.connection.clone(), subscriber.is_by_server))
            .collect();
        for (connection, is_by_server) in lost {
            self.leave(name, &connection.id, now);
            if is_by_server {
                connection.outbox.close(DisconnectCode::InsufficientState);
                continue;
            }
            let reason = "insufficient state".to_owned();
            let why = Unsubscribe { code: LOST_ITS_PLACE, reason };
            let mut push = Encoded::new(name, PushKind::Unsubscribe(why));
            connection.push(push.bytes(connection.format));
        }
    }

    /// A life of the owner begins: where this node is in its channels. What former lives tell
    /// counts no more.
    /// A former life may ask late: `None`.
    pub(super) fn enlist_for(&mut self, life: u64) -> Option<Enlisted> {
        let branch = self.branch.as_mut().filter(|branch| branch.life <= life)?;
        branch.life = life;
        let channels = self.channels.iter_mut().map(|(name, channel)| {
            let branched = channel.across.branched();
            branched.is_attached = true;
            branched.forget_meanwhile();
            let (keep, position) = (branched.keep, branched.position);
            EnlistedChannel { name: name.clone(), keep, position }
        });
        Some(Enlisted { number: branch.number, channels: channels.collect() })
    }
}

/// How a publication follows what was pushed before.
enum Place {
    Next,
    /// It was pushed, or is in what clients are told when they subscribe.
    Known,
    Beyond,
}

impl super::across::Branched {
    /// Takes the place of a publication.
    fn place(&mut self, heard: &Heard) -> Place {
        let Some(position) = self.position.as_mut().filter(|_| heard.offset > 0) else {
            return Place::Next;
        };
        if heard.offset <= position.offset {
            return Place::Known;
        }
        let is_next = heard.offset == position.offset + 1;
        position.offset = heard.offset;
        if is_next { Place::Next } else { Place::Beyond }
    }
}

/// Where a channel is after what has come since it was asked about.
fn after(position: Position, since: &[What]) -> Position {
    let offsets = since.iter().filter_map(|what| match what {
        What::Published(heard) => Some(heard.offset),
        _ => None,
    });
    Position { offset: offsets.chain([position.offset]).max().unwrap_or_default(), ..position }
}

fn push_to(subscriber: &Subscriber, name: &Arc<str>, what: &What) {
    let connection = &subscriber.connection;
    let kind = match what {
        What::Published(heard) => return push_whole(subscriber, name, heard),
        What::Came(info) => {
            PushKind::Join(folkmoot_protocol::frame::Join { info: Some(info.clone()) })
        }
        What::Left(info) if info.client != *connection.id => {
            PushKind::Leave(folkmoot_protocol::frame::Leave { info: Some(info.clone()) })
        }
        What::Left(_) | What::Anew(_) => return,
    };
    if subscriber.wants_comings {
        connection.push(Encoded::new(name, kind).bytes(connection.format));
    }
}
