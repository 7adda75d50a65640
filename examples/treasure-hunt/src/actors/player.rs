//! One player: checks what its client asks for, lets a region settle it, and answers once it is durable.
//!
//! Its state is the last event of its log plus a tile cache that can be looked up again, so that a kill costs it nothing.
//! One act runs at a time; the handler waits for the region, which waits for the log.

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Start, actor};

use super::region::Survey;
use super::settled::{Done, Setback, Settled, is_worth_a_retry};
use super::{BoardActorCalls, RegionActorCalls};
use crate::journal::Birth;
use crate::limits::{RETRY_FOR, RETRY_PAUSE};
use crate::map::Mark;
use crate::place::{ActSeq, Place, PlayerId};
use crate::rules::{Act, Carry, Deed, Intent, Player, Refusal};
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
}

#[derive(Debug)]
struct Life {
    player: Player,
    sight: Sight,
    token: u64,
    name: Arc<str>,
}

impl PlayerActor {
    /// Builds a player from the log; one that the log does not know waits for its join.
    pub(super) async fn load(start: Start<Self>, world: Arc<World>) -> Result<Self, ActorError> {
        let id = PlayerId(start.key().parse()?);
        let Some(trail) = world.journal.find_player(id).await? else {
            return Ok(Self { world, id, life: None });
        };
        let reader = world.journal.reader();
        let read =
            move || Ok((reader.read_event(trail.birth)?.1, reader.read_event(trail.last)?.0));
        let (birth, last): (Option<Birth>, _) = start
            .node()
            .blocking(read)
            .await
            .map_err(|why: std::io::Error| ActorError::new(why))?;
        let birth = birth.ok_or_else(|| ActorError::new("a player's first event is its join"))?;
        let life = Life {
            player: Player::after(last),
            sight: Sight::new(&world.arena),
            token: birth.token,
            name: birth.name.into(),
        };
        Ok(Self { world, id, life: Some(life) })
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

    /// Has an intent settled by the region it leads to, and takes over what happened.
    async fn settle(&mut self, intent: Intent, ctx: &mut Context<Self>) -> Settled {
        let world = self.world.clone();
        let region = world.region(intent.to.region());
        let settled = again(ctx, || region.settle(intent, None)).await?;
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
    /// Brings the player into the world; once, however often it is asked.
    pub async fn join(
        &mut self,
        tag: u32,
        place: Place,
        birth: Birth,
        ctx: &mut Context<Self>,
    ) -> Result<Joined, Setback> {
        if self.life.is_none() {
            let intent = Intent {
                deed: Deed::Join,
                player: self.id,
                seq: ActSeq(1),
                from: place,
                to: place,
                score: 0,
                carry: Carry::default(),
            };
            let world = self.world.clone();
            let region = world.region(place.region());
            let settled =
                again(ctx, || region.settle(intent, Some(Box::new(birth.clone())))).await?;
            if settled == Err(Setback::Stale) {
                ctx.stop();
            }
            let (token, name) = (birth.token, birth.name.into());
            let sight = Sight::new(&self.world.arena);
            self.life = Some(Life { player: Player::after(settled?.event), sight, token, name });
        }
        Ok(self.joined(tag, ctx).await?)
    }

    /// Lets a client that knows the secret play on.
    pub async fn resume(&mut self, token: u64, ctx: &mut Context<Self>) -> Result<Joined, Refusal> {
        if self.life()?.token != token {
            return Err(Refusal::WrongToken);
        }
        self.joined(self.id.0, ctx).await
    }

    /// Does what the client asks for; asked again with the same number, answers the same.
    pub async fn act(&mut self, act: Act, ctx: &mut Context<Self>) -> Result<Acted, Setback> {
        let now_ms = u64::try_from(ctx.elapsed().as_millis()).unwrap_or(u64::MAX);
        let life = self.life()?;
        if let Some(event) = life.player.settled(act.seq).copied() {
            let region = event.to.region();
            let world = self.world.clone();
            let shows_clue = again(ctx, || world.region(region).shows_clue(event.to)).await?;
            let stamp = again(ctx, || world.region(region).survey(event.to.block())).await?.stamp;
            let outcome = self.outcome(&Done { event, shows_clue, stamp }, ctx).await?;
            return Ok(Acted { from: event.from, outcome });
        }
        life.player.take_permit(now_ms)?;
        let to = life.player.target(&act)?;
        let from = life.player.place();
        let mark = self.mark(to, ctx).await?;
        let intent = self.life()?.player.intend(act.deed, to, mark)?;
        let done = self.settle(intent, ctx).await?;
        let outcome = self.outcome(&done, ctx).await?;
        if act.deed == Deed::Leave {
            self.gone(ctx);
        }
        Ok(Acted { from, outcome })
    }

    /// Leaves the world, as one whose connection has been away for too long. True once it has.
    pub async fn leave(&mut self, ctx: &mut Context<Self>) -> Result<(), Setback> {
        // A life that was cut short may have left an event behind that takes the number of the leaving.
        while let Some(life) = &self.life {
            let intent = life.player.leaving();
            if self.settle(intent, ctx).await?.event.deed == Deed::Leave {
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

/// What an act came to, and where it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acted {
    /// Where the player stood before.
    pub from: Place,
    /// For the client.
    pub outcome: Outcome,
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
