//! One player: checks what its client asks for, writes it down, has a region settle it, and answers
//! once what came of it is in the store, too.
//!
//! One act is under way at a time, and it is in the store before a region hears of it. So a life
//! that is cut short is followed by one that asks the same region for the same thing, and no act
//! can happen in two regions.

use std::sync::Arc;

use althing::{ActorError, Context, ReplyTo, Start, Wire, actor};
use althing_store::{Saved, State};

use super::realm::Realm;
use super::region::{Landed, RegionActorCalls};
use crate::place::{ActSeq, Place, PlayerId};
use crate::rules::{Act, Carry, Deed, Event, Intent, Player, Refusal};

/// What is kept of a player.
#[derive(Debug, Default, Wire)]
pub(super) struct Past {
    /// Lets its client come back; 0 before it has joined.
    token: u64,
    name: String,
    /// The connection that plays it.
    session: u64,
    last: Option<Event>,
    /// The act that is under way.
    pending: Option<Intent>,
    has_left: bool,
}

impl State for Past {}

/// Who has joined, or come back.
#[derive(Clone, Debug, Wire)]
pub(super) struct Arrival {
    pub(super) token: u64,
    pub(super) session: u64,
}

/// What a client is told.
pub(super) type Told = Result<Landed, Refusal>;

/// An actor named by its player's number.
pub(super) struct PlayerActor {
    realm: Arc<Realm>,
    id: PlayerId,
    saved: Saved<Past>,
    /// As the rules have it; `None` before it has joined.
    player: Option<Player>,
    /// Who waits for what comes of the act that is under way.
    waiting: Vec<ReplyTo<Told>>,
    /// Who waits to know how things stand after it.
    returning: Vec<ReplyTo<Told>>,
    is_asking: bool,
}

impl PlayerActor {
    pub(super) async fn load(start: Start<Self>, realm: Arc<Realm>) -> Result<Self, ActorError> {
        let id = PlayerId(start.key().parse()?);
        let saved = Saved::<Past>::load(realm.store.clone(), &start).await?;
        let player = saved.last.map(Player::after);
        let (waiting, returning) = (Vec::new(), Vec::new());
        Ok(Self { realm, id, saved, player, waiting, returning, is_asking: false })
    }

    /// Checks an act, and writes down what is meant.
    fn begin(&mut self, act: &Act, ctx: &Context<Self>) -> Result<(), Refusal> {
        let player = self.player.as_mut().ok_or(Refusal::NoSuchPlayer)?;
        player.take_permit(u64::try_from(ctx.elapsed().as_millis()).unwrap_or(u64::MAX))?;
        let to = player.target(act)?;
        self.saved.pending = Some(player.intent(act.deed, to));
        Ok(())
    }

    /// Has the region settle what is under way, once it is written down.
    fn ask(&mut self, ctx: &mut Context<Self>) {
        let Some(intent) = self.saved.pending.filter(|_| !self.is_asking) else { return };
        self.is_asking = true;
        let realm = self.realm.clone();
        let asked = async move {
            let region = realm.region(intent.to.region());
            realm.again(|| region.settle(intent)).await
        };
        ctx.pipe(asked, |told| player_actor_messages::Settled { told: told.flatten() });
    }

    /// Whether it is this act that is under way.
    fn is_under_way(&self, act: &Act) -> bool {
        self.saved.pending.is_some_and(|intent| {
            let leads_there =
                intent.deed != Deed::Move || (intent.to.x(), intent.to.y()) == (act.x, act.y);
            intent.seq == act.seq && intent.deed == act.deed && leads_there
        })
    }

    /// Tells how things stand, as the region of the last event sees it.
    fn tell_last(&self, event: Event, reply: ReplyTo<Told>, ctx: &mut Context<Self>) {
        let realm = self.realm.clone();
        ctx.detach(async move {
            let region = realm.region(event.to.region());
            reply.send(realm.again(|| region.notice(event)).await);
        });
    }

    fn answer(&mut self, told: Told, ctx: &mut Context<Self>) {
        self.waiting.drain(..).for_each(|reply| _ = reply.send(told));
        for reply in std::mem::take(&mut self.returning) {
            match (told, self.saved.last) {
                (Err(refusal), Some(event)) if refusal != Refusal::Unavailable => {
                    self.tell_last(event, reply, ctx);
                }
                _ => _ = reply.send(told),
            }
        }
    }
}

#[actor(name = "hunt.player", wire, durable = saved)]
impl PlayerActor {
    /// A former life may have ended over an act.
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.ask(ctx);
        Ok(())
    }

    /// Brings the player into the world, once, however often its client asks.
    #[delayed]
    pub(super) async fn join(
        &mut self,
        arrival: Arrival,
        name: String,
        place: Place,
        reply: ReplyTo<Told>,
        ctx: &mut Context<Self>,
    ) {
        let is_taken = self.saved.token != 0 && self.saved.token != arrival.token;
        if is_taken || self.saved.has_left {
            reply.send(Err(Refusal::NotYours));
            return;
        }
        if let Some(event) = self.saved.last {
            return self.tell_last(event, reply, ctx);
        }
        self.waiting.push(reply);
        if self.saved.pending.is_none() {
            let Arrival { token, session } = arrival;
            let (deed, player, seq) = (Deed::Join, self.id, ActSeq(1));
            let carry = Carry::default();
            let join = Intent { deed, player, seq, from: place, to: place, score: 0, carry };
            let pending = Some(join);
            let past = Past { token, name, session, pending, ..Past::default() };
            *self.saved = past;
        }
        self.ask(ctx);
    }

    /// Lets a client that knows the secret play on, once what is under way is settled.
    #[delayed]
    pub(super) async fn resume(
        &mut self,
        arrival: Arrival,
        reply: ReplyTo<Told>,
        ctx: &mut Context<Self>,
    ) {
        let Some(event) = self.saved.last.filter(|_| !self.saved.has_left) else {
            reply.send(Err(Refusal::NoSuchPlayer));
            return;
        };
        if self.saved.token != arrival.token {
            reply.send(Err(Refusal::WrongToken));
            return;
        }
        self.saved.session = arrival.session;
        if self.saved.pending.is_none() {
            return self.tell_last(event, reply, ctx);
        }
        self.returning.push(reply);
        self.ask(ctx);
    }

    /// Does what the client asks for; asked again with the same number, it tells the same.
    #[delayed]
    pub(super) async fn act(
        &mut self,
        token: u64,
        act: Act,
        reply: ReplyTo<Told>,
        ctx: &mut Context<Self>,
    ) {
        if token != self.saved.token {
            reply.send(Err(Refusal::NotYours));
            return;
        }
        if let Some(event) = self.saved.last.filter(|event| event.seq == act.seq) {
            return self.tell_last(event, reply, ctx);
        }
        let begun = match self.saved.pending {
            Some(_) if self.is_under_way(&act) => Ok(()),
            Some(_) => Err(Refusal::Busy),
            None if self.saved.has_left => Err(Refusal::NoSuchPlayer),
            None => self.begin(&act, ctx),
        };
        match begun {
            Ok(()) => {
                self.waiting.push(reply);
                self.ask(ctx);
            }
            Err(refusal) => _ = reply.send(Err(refusal)),
        }
    }

    /// Leaves the world, as one whose connection has been away for too long, unless another one
    /// plays it now. False: something is under way, and it has to be asked again.
    pub(super) async fn dismiss(&mut self, session: u64, ctx: &mut Context<Self>) -> bool {
        let is_played = self.saved.session != session || self.saved.has_left;
        let Some(player) = self.player.as_ref().filter(|_| !is_played) else { return true };
        if self.saved.pending.is_none() {
            let leaving = player.leaving();
            self.saved.pending = Some(leaving);
        }
        self.ask(ctx);
        false
    }

    /// Hears from the region what came of the act, or that nobody knows.
    #[wire(skip)]
    async fn settled(&mut self, told: Told, ctx: &mut Context<Self>) {
        self.is_asking = false;
        match told {
            Ok(Landed { event, .. }) => {
                self.saved.pending = None;
                self.saved.last = Some(event);
                self.saved.has_left = event.deed == Deed::Leave;
                match &mut self.player {
                    Some(player) => player.apply(&event),
                    None => self.player = Some(Player::after(event)),
                }
            }
            // It may have happened: whoever asks next asks for the same.
            Err(Refusal::Unavailable) => {}
            Err(_) => self.saved.pending = None,
        }
        self.answer(told, ctx);
    }
}
