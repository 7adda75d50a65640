//! One player: checks what its client asks for, lets a region settle it, and answers once it is
//! durable.
//!
//! Its state is the last event of its log plus a tile cache that can be looked up again, so that a
//! kill costs it nothing. One act is under way at a time. No handler waits for the log: the region
//! takes the act over, and `settled` comes back when it is durable. Should that be lost with a
//! killed actor, the client's connection asks again.

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, ReplyTo, Start, actor};

use super::errand::{Acted, Errand};
use super::region::Survey;
use super::settled::{Done, Setback, Settled, is_worth_a_retry};
use super::{BoardActorCalls, RegionActorCalls};
use crate::journal::Birth;
use crate::limits::{RETRY_FOR, RETRY_PAUSE};
use crate::map::Mark;
use crate::place::{ActSeq, Place, PlayerId};
use crate::rules::{Carry, Deed, Event, Intent, Player, Refusal};
use crate::sight::Sight;
use crate::wire::{Hints, Joined, Outcome};
use crate::world::World;

/// An actor named by its player's number.
#[derive(Debug)]
pub struct PlayerActor {
    world: Arc<World>,
    id: PlayerId,
    /// `None` until it has joined.
    life: Option<Life>,
    /// A join on its way to the log, and who asked for it.
    joining: Option<Box<(Joining, ReplyTo<Began>)>>,
}

/// The answer to a join.
pub(super) type Began = Result<Joined, Setback>;

/// What a new player brings along.
#[derive(Clone, Debug)]
pub struct Joining {
    /// Of the client.
    pub tag: u32,
    /// For the log.
    pub birth: Birth,
}

#[derive(Debug)]
struct Life {
    player: Player,
    sight: Sight,
    token: u64,
    name: Arc<str>,
    /// The act under way.
    errand: Option<Errand>,
}

impl PlayerActor {
    /// Builds a player from the log; one that the log does not know waits for its join.
    pub(super) async fn load(start: Start<Self>, world: Arc<World>) -> Result<Self, ActorError> {
        let id = PlayerId(start.key().parse()?);
        let Some(trail) = world.journal.find_player(id).await? else {
            return Ok(Self { world, id, life: None, joining: None });
        };
        let reader = world.journal.reader();
        let read = move || -> std::io::Result<(Option<Birth>, _)> {
            Ok((reader.read_event(trail.birth)?.1, reader.read_event(trail.last)?.0))
        };
        let (birth, last) = start.node().blocking(read).await?;
        let birth = birth.ok_or_else(|| ActorError::new("a player's first event is its join"))?;
        let life = Life {
            player: Player::after(last),
            sight: Sight::new(&world.arena),
            token: birth.token,
            name: birth.name.into(),
            errand: None,
        };
        Ok(Self { world, id, life: Some(life), joining: None })
    }

    fn life(&mut self) -> Result<&mut Life, Refusal> {
        self.life.as_mut().ok_or(Refusal::NoSuchPlayer)
    }

    /// The mark of a tile, from its own memory or from the region.
    async fn mark(&mut self, place: Place, ctx: &Context<Self>) -> Result<Mark, Refusal> {
        if let Some(mark) = self.life()?.sight.mark(place) {
            return Ok(mark);
        }
        let world = self.world.clone();
        let region = world.region(place.region());
        let survey: Survey = again(ctx, || region.survey(place.block())).await?;
        let life = self.life()?;
        life.sight.remember(place.block(), survey.marks, survey.stamp);
        Ok(survey.marks[place.in_block()])
    }

    /// Has an intent settled by the region it leads to, waits until it is durable, and takes over
    /// what happened.
    async fn settle_durably(&mut self, intent: Intent, ctx: &mut Context<Self>) -> Settled {
        let world = self.world.clone();
        let region = world.region(intent.to.region());
        let settled = again(ctx, || region.settle_durably(intent)).await?;
        if settled == Err(Setback::Stale) {
            ctx.stop();
        }
        let done = settled?;
        self.life()?.player.apply(&done.event);
        Ok(done)
    }

    async fn outcome(&mut self, done: &Done, ctx: &Context<Self>) -> Result<Outcome, Refusal> {
        let here = done.event.to;
        let life = self.life()?;
        life.sight.renew(here, done.stamp);
        if done.event.gain > 0 {
            let (name, score) = (life.name.clone(), done.event.score);
            // The board may be busy: a later event tells it the points again.
            self.world.board().scored(self.id, name, score).try_tell().ok();
        }
        let scent = self.mark(here, ctx).await?.scent();
        let hints = Hints { clue: done.shows_clue, camp: here == here.region().camp(), scent };
        Ok(Outcome::of(&done.event, hints))
    }

    /// Begins its life and tells who asked for it. A former life may have asked: then nobody waits,
    /// and the log knows all.
    async fn born(&mut self, done: Done, ctx: &mut Context<Self>) {
        let Some((Joining { tag, birth }, reply)) = self.joining.take().map(|joining| *joining)
        else {
            return;
        };
        let (token, name) = (birth.token, birth.name.into());
        let (player, sight) = (Player::after(done.event), Sight::new(&self.world.arena));
        self.life = Some(Life { player, sight, token, name, errand: None });
        let state = self.outcome(&done, ctx).await;
        reply.send(state.map(|state| Joined { tag, token, state }).map_err(Setback::from));
    }

    /// Checks an act and hands it to the region it leads to.
    async fn begin(&mut self, errand: &Errand, ctx: &Context<Self>) -> Result<(), Setback> {
        let act = errand.act;
        let life = self.life()?;
        if let Some(event) = life.player.settled(act.seq).copied() {
            return Ok(self.tell_again(errand, event, ctx).await?);
        }
        let is_under_way = life.errand.as_ref().is_some_and(|under_way| under_way.act == act);
        if !is_under_way {
            let now_ms = u64::try_from(ctx.elapsed().as_millis()).unwrap_or(u64::MAX);
            life.player.take_permit(now_ms)?;
        }
        let to = life.player.target(&act)?;
        let mark = self.mark(to, ctx).await?;
        let life = self.life()?;
        let intent = life.player.intend(act.deed, to, mark)?;
        life.errand = Some(errand.clone());
        let world = self.world.clone();
        let (region, me) = (world.region(to.region()), ctx.address());
        again(ctx, || region.settle(intent, me.clone())).await?
    }

    /// Tells what an act has come to already.
    async fn tell_again(
        &mut self,
        errand: &Errand,
        event: Event,
        ctx: &Context<Self>,
    ) -> Result<(), Refusal> {
        let world = self.world.clone();
        let region = world.region(event.to.region());
        let shows_clue = again(ctx, || region.shows_clue(event.to)).await?;
        let stamp = again(ctx, || region.survey(event.to.block())).await?.stamp;
        let outcome = self.outcome(&Done { event, shows_clue, stamp }, ctx).await?;
        errand.client.acted(&errand.act, &Acted { from: event.from, outcome });
        Ok(())
    }

    /// How things stand, for a client that comes or comes back.
    async fn joined(&mut self, tag: u32, ctx: &Context<Self>) -> Result<Joined, Refusal> {
        let event = *self.life()?.player.last();
        let world = self.world.clone();
        let region = world.region(event.to.region());
        let shows_clue = again(ctx, || region.shows_clue(event.to)).await?;
        let stamp = again(ctx, || region.survey(event.to.block())).await?.stamp;
        let state = self.outcome(&Done { event, shows_clue, stamp }, ctx).await?;
        Ok(Joined { tag, token: self.life()?.token, state })
    }
}

#[actor(name = "hunt.player")]
impl PlayerActor {
    /// Brings the player into the world; once, however often it is asked. Answers when that is
    /// durable.
    #[delayed]
    pub async fn join(
        &mut self,
        place: Place,
        joining: Joining,
        reply: ReplyTo<Began>,
        ctx: &mut Context<Self>,
    ) {
        if self.life.is_some() {
            reply.send(self.joined(joining.tag, ctx).await.map_err(Setback::from));
            return;
        }
        let intent = Intent {
            deed: Deed::Join,
            player: self.id,
            seq: ActSeq(1),
            from: place,
            to: place,
            score: 0,
            carry: Carry::default(),
        };
        let birth = joining.birth.clone();
        // One that is asked twice answers the last one; the first has given up.
        self.joining = Some(Box::new((joining, reply)));
        let world = self.world.clone();
        let (region, me) = (world.region(place.region()), ctx.address());
        let begin = || region.begin(intent, Box::new(birth.clone()), me.clone());
        let begun = again(ctx, begin).await.map_err(Setback::from).flatten();
        if let Err(setback) = begun
            && let Some(joining) = self.joining.take()
        {
            joining.1.send(Err(setback));
            if setback == Setback::Stale {
                ctx.stop();
            }
        }
    }

    /// Lets a client that knows the secret play on.
    pub async fn resume(&mut self, token: u64, ctx: &mut Context<Self>) -> Result<Joined, Refusal> {
        if self.life()?.token != token {
            return Err(Refusal::WrongToken);
        }
        self.joined(self.id.0, ctx).await
    }

    /// Begins what the client asks for; asked again with the same number, the client is told the
    /// same.
    pub async fn act(&mut self, errand: Errand, ctx: &mut Context<Self>) {
        match self.begin(&errand, ctx).await {
            Ok(()) => {}
            // A new life is up to date; the connection will ask it.
            Err(Setback::Stale) => ctx.stop(),
            Err(Setback::Refused(refusal)) => {
                if let Some(life) = &mut self.life {
                    life.errand = None;
                }
                errand.refuse(refusal);
            }
        }
    }

    /// Hears from the log that an act is durable, and tells the client. News that came before, or
    /// to a former life, is passed over.
    pub async fn settled(&mut self, done: Done, ctx: &mut Context<Self>) {
        if done.event.deed == Deed::Join {
            return self.born(done, ctx).await;
        }
        let Some(life) = &mut self.life else { return ctx.stop() };
        if life.player.last().seq.next() != done.event.seq {
            return;
        }
        life.player.apply(&done.event);
        let errand = life.errand.take().filter(|errand| errand.act.seq == done.event.seq);
        let told = self.outcome(&done, ctx).await;
        let is_leaving = done.event.deed == Deed::Leave;
        if let Some(errand) = errand {
            match told {
                Ok(outcome) => {
                    errand.client.acted(&errand.act, &Acted { from: done.event.from, outcome });
                }
                Err(refusal) => errand.refuse(refusal),
            }
        }
        if is_leaving {
            self.gone(ctx);
        }
    }

    /// Leaves the world, as one whose connection has been away for too long. True once it has.
    pub async fn leave(&mut self, ctx: &mut Context<Self>) -> Result<(), Setback> {
        // A life that was cut short may have left an event behind that takes the number of the
        // leaving.
        while let Some(life) = &self.life {
            let intent = life.player.leaving();
            if self.settle_durably(intent, ctx).await?.event.deed == Deed::Leave {
                break;
            }
        }
        self.gone(ctx);
        Ok(())
    }

    /// Gives everything back; the tile cache goes as a whole.
    fn gone(&mut self, ctx: &mut Context<Self>) {
        self.life = None;
        self.world.board().left(self.id).try_tell().ok();
        self.world.attendance.dismiss(self.id);
        ctx.stop();
    }
}

/// Asks a region until it answers: one that is killed over a question is rebuilt and asked again.
async fn again<'a, T, C>(
    ctx: &Context<PlayerActor>,
    mut ask: impl FnMut() -> C,
) -> Result<T, Refusal>
where
    C: Future<Output = Result<T, althing::AskError>> + Send + 'a,
{
    let until = ctx.elapsed() + RETRY_FOR;
    let mut pause = Duration::ZERO;
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if !is_worth_a_retry(&error) || ctx.elapsed() > until => {
                tracing::warn!(%error, "a region does not answer");
                return Err(Refusal::Unavailable);
            }
            Err(_) => {}
        }
        if !pause.is_zero() {
            ctx.node().sleep(pause).await;
        }
        pause = RETRY_PAUSE;
    }
}
