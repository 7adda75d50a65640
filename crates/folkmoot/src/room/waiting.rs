//! Judges commands, one user's in the order in which they came: one about which the room has to be
//! told something first waits for it beside the room, and so do the later ones of the same user.

use std::collections::{HashMap, VecDeque};

use althing::{Context, Handler};
use futures_util::future::join_all;

use super::RoomError;
use super::actor::{Reply, Room};
use super::command::{Decision, Refusal, Request};
use super::load::{self, Brought};
use super::people::Missing;
use super::settle::now;
use super::view::Done;
use crate::storage::record::RoomEvent;
use crate::storage::{ReadError, Seq, UserId};

/// Commands appended but not durable: about a hundred group syncs of a busy room.
const PENDING_MAX: usize = 16_384;

/// Commands of one user that may wait: what many connections of a bot send before its first is
/// judged.
const WAITING_MAX: usize = 4_096;
/// How often a command is told something that is out of date already: more than once means that
/// people come and go by the hundred while one looks.
const ATTEMPTS_MAX: u32 = 8;

#[derive(Debug)]
struct Waiter {
    request: Request,
    reply: Reply,
    attempts: u32,
    /// The message it is about has changed since it was asked for.
    is_overtaken: bool,
    /// What others have reacted with to that message since then.
    reacted: Vec<String>,
}

impl Waiter {
    fn new(request: Request, reply: Reply, attempts: u32) -> Self {
        Self { request, reply, attempts, is_overtaken: false, reacted: Vec::new() }
    }
}

/// The commands that wait, by user. Whoever is in here has a question under way about the first.
#[derive(Debug, Default)]
pub(super) struct Waiting(HashMap<UserId, VecDeque<Waiter>>);

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A message is not what it was: what is being read of it may be what it was.
    pub(super) fn overtake(&mut self, seq: Seq) {
        self.asking_about(seq).for_each(|first| first.is_overtaken = true);
    }

    /// Somebody reacts to a message: what is being read of it may lack that.
    pub(super) fn react(&mut self, seq: Seq, emoji: &str) {
        self.asking_about(seq).for_each(|first| first.reacted.push(emoji.to_owned()));
    }

    fn asking_about(&mut self, seq: Seq) -> impl Iterator<Item = &mut Waiter> {
        let asking = self.0.values_mut().filter_map(VecDeque::front_mut);
        asking.filter(move |first| first.request.command.about() == Some(seq))
    }
}

/// What the first command of `by` waited for.
#[derive(Debug)]
pub(super) struct Told {
    by: UserId,
    brought: Result<Brought, ReadError>,
}

impl Handler<Told> for Room {
    type Reply = ();

    async fn handle(&mut self, told: Told, ctx: &mut Context<Self>) {
        let by = told.by;
        if let Some(missing) = self.take_told(told, ctx) {
            self.find_out(by, missing, ctx);
        }
    }
}

impl Room {
    /// Judges all that waits, before the room stops or moves to another node: nobody else could,
    /// and what came later goes there with the mailbox.
    pub(super) async fn judge_what_waits(&mut self, ctx: &mut Context<Self>) {
        // Their questions are under way, and are asked again: the answers would come too late.
        let lines = std::mem::take(&mut self.waiting.0);
        let asks = |(by, line)| self.judge_line(by, line, ctx).map(|missing| (by, missing));
        let mut asked: Vec<(UserId, Missing)> = lines.into_iter().filter_map(asks).collect();
        while !asked.is_empty() {
            let (store, room, now) = (self.ports.streams(), self.id, now(ctx));
            let questions = asked.into_iter().map(|(by, missing)| async move {
                Told { by, brought: load::bring(store, room, by, missing, now).await }
            });
            let all_told = join_all(questions).await;
            let take = |told: Told| {
                let by = told.by;
                self.take_told(told, ctx).map(|missing| (by, missing))
            };
            asked = all_told.into_iter().filter_map(take).collect();
        }
    }

    /// Gives the first command of a user what it waited for, and judges the user's commands as far
    /// as nothing is missing for them.
    fn take_told(&mut self, told: Told, ctx: &mut Context<Self>) -> Option<Missing> {
        let Told { by, brought } = told;
        let mut line = self.waiting.0.remove(&by)?;
        let mut first = line.pop_front()?;
        match brought {
            Ok(Brought { gone: Some(seq), .. }) => {
                first.reply.send(Err(RoomError::Refused(Refusal::NoMessage(seq))));
            }
            Ok(Brought { facts, named, original, .. }) => {
                if let Some(state) = &mut self.state {
                    state.people.take_in(facts);
                }
                first.request.named.get_or_insert(named);
                // Who answers what was deleted meanwhile would bring its text back.
                let mut original = original.filter(|_| !first.is_overtaken);
                if let Some(original) = &mut original {
                    original.note_reactions(std::mem::take(&mut first.reacted));
                }
                first.request.original = original;
                line.push_front(first);
            }
            Err(error) => {
                first.reply.send(Err(RoomError::Read(error)));
            }
        }
        self.judge_line(by, line, ctx)
    }

    /// Judges commands of one user in their order, until something is missing for one: it and those
    /// behind it wait.
    fn judge_line(
        &mut self,
        by: UserId,
        mut line: VecDeque<Waiter>,
        ctx: &mut Context<Self>,
    ) -> Option<Missing> {
        while let Some(next) = line.pop_front() {
            if let Some(back) = self.judge(next, ctx) {
                let (waiter, missing) = *back;
                line.push_front(waiter);
                self.waiting.0.insert(by, line);
                return Some(missing);
            }
        }
        None
    }

    /// Judges a command when those of the same user before it are judged.
    pub(super) fn take(&mut self, request: Request, reply: Reply, ctx: &mut Context<Self>) {
        let by = request.by;
        let waiter = Waiter::new(request, reply, 0);
        if let Some(line) = self.waiting.0.get_mut(&by) {
            match line.len() < WAITING_MAX {
                true => line.push_back(waiter),
                false => drop(waiter.reply.send(Err(RoomError::Busy))),
            }
            return;
        }
        if let Some(back) = self.judge(waiter, ctx) {
            let (waiter, missing) = *back;
            self.waiting.0.insert(by, VecDeque::from([waiter]));
            self.find_out(by, missing, ctx);
        }
    }

    /// Asks the store beside the room.
    fn find_out(&self, by: UserId, missing: Missing, ctx: &mut Context<Self>) {
        let (store, room, now) = (self.ports.streams().clone(), self.id, now(ctx));
        let brought = async move { load::bring(&store, room, by, missing, now).await };
        ctx.pipe(brought, move |brought| Told { by, brought });
    }

    /// Judges a command; gives it back if the room has to be told something first.
    fn judge(&mut self, waiter: Waiter, ctx: &mut Context<Self>) -> Option<Box<(Waiter, Missing)>> {
        let Waiter { mut request, reply, attempts, .. } = waiter;
        if let Some(error) = self.stream.broken() {
            reply.send(Err(RoomError::Append(error.clone())));
            return None;
        }
        if self.stream.pending_len() >= PENDING_MAX {
            reply.send(Err(RoomError::Busy));
            return None;
        }
        let decision = match self.meet(request.by, None) {
            Ok(state) => state.decide(&request, now(ctx)).map_err(RoomError::Refused),
            Err(error) => Err(error),
        };
        match decision {
            Err(RoomError::Refused(Refusal::Unloaded(mut missing))) if attempts < ATTEMPTS_MAX => {
                // Asked for again with the rest: it may change before that is there.
                let original = request.original.take().map(|original| original.quote.seq);
                missing.original = original.or(missing.original);
                let waiter = Waiter::new(request, reply, attempts + 1);
                return Some(Box::new((waiter, *missing)));
            }
            Err(RoomError::Refused(Refusal::Unloaded(_))) => {
                reply.send(Err(RoomError::Busy));
            }
            Ok(decision) => self.carry_out(decision, request, reply, ctx),
            Err(error) => self.answer(Err(error), reply),
        }
        None
    }

    fn carry_out(
        &mut self,
        decision: Decision,
        request: Request,
        reply: Reply,
        ctx: &mut Context<Self>,
    ) {
        match decision {
            // Whoever comes in while a ban is stored would be a banned member.
            Decision::Append(RoomEvent::Joined { user, .. })
                if self.pending_bans.contains(&user) =>
            {
                reply.send(Err(RoomError::Refused(Refusal::Banned)));
            }
            Decision::Append(event) => {
                self.append(event, Vec::new(), request.client, reply, ctx);
            }
            Decision::Change { event, unmentioned } => {
                self.append(event, unmentioned, request.client, reply, ctx);
            }
            Decision::Repeat(first) => self.repeat(first, reply),
            // One after the other, or the store might take them in another order.
            Decision::Ban { user, .. } if self.pending_bans.contains(&user) => {
                reply.send(Err(RoomError::Busy));
            }
            Decision::Ban { user, on } => self.store_ban(request.by, user, on, reply, ctx),
            Decision::Nothing => {
                let (at, offset) = (now(ctx), self.stream.last());
                self.answer(Ok(Done { at, offset, seq: None, is_repeat: true }), reply);
            }
        }
    }
}
