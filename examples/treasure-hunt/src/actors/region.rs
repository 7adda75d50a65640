//! One region: orders what happens on its ground, lets the log have it, and shows it to whoever
//! watches.
//!
//! It decides and appends in one step and answers through the log, so that it never waits and never
//! answers before an event is durable. Watchers get what is durable, once a tick, as one frame for
//! all of them.

mod load;

use std::collections::VecDeque;
use std::sync::Arc;

use althing::{
    ActorError, ActorRef, Context, ReplyTo, Sequence, TimerId, Topic, TopicOptions, actor,
};
use bytes::Bytes;

use super::player::PlayerActor;
use super::settled::{Done, Setback, Settled};
use crate::journal::{Asker, Birth, Fenced, Receipt, Ticket};
use crate::limits::{SNAPSHOT_EVERY, VIEW_TICK};
use crate::map::{Mark, Scent, Terrain};
use crate::place::{BlockId, Place, RegionId};
use crate::rules::{Deed, Event, Intent, Region};
use crate::sight::{Block, Stamp};
use crate::wire::{Change, write_snapshot, write_view};
use crate::world::World;

/// Why showing a view cannot be refused.
const NO_OTHER_PUBLISHER: &str = "nobody claims the topics of regions";

/// An actor named by its region's number.
#[derive(Debug)]
pub struct RegionActor {
    world: Arc<World>,
    region: Region,
    scent: Arc<Scent>,
    stamp: Stamp,
    topic: Topic<View>,
    /// What watchers have not been shown yet.
    news: VecDeque<(Ticket, Change)>,
    tick: Option<TimerId>,
    since_snapshot: u32,
}

/// What watchers of a region get, as bytes of the wire.
#[derive(Clone, Debug)]
pub struct View {
    /// Which.
    pub region: RegionId,
    /// The frames.
    pub bytes: Bytes,
}

/// The marks of a block.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// The marks.
    pub marks: Block,
    /// Their state.
    pub stamp: Stamp,
}

/// All there is to see of a region, and the last view that is in it.
#[derive(Clone, Debug)]
pub struct Look {
    /// A snapshot frame.
    pub bytes: Bytes,
    /// Views up to here bring nothing new.
    pub since: Sequence,
}

/// A region in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Points brought to it.
    pub score: u64,
    /// Players in it.
    pub players: usize,
}

/// The topic of a region.
pub(super) fn topic(world: &World, region: RegionId) -> Topic<View> {
    let options = TopicOptions { replay: 0 };
    world.node().topic(format!("region:{}", region.number()), options)
}

#[actor(name = "hunt.region")]
impl RegionActor {
    /// Watchers of a former life may have missed something: they get everything anew.
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        if self.topic.subscribers() > 0 {
            let bytes = self.snapshot_frame();
            self.topic.publish(View { region: self.region.id(), bytes }).expect(NO_OTHER_PUBLISHER);
        }
        self.refresh_scent(ctx);
        Ok(())
    }

    /// A timer left behind would bring a region back that was told to stop.
    async fn stopping(&mut self, ctx: &mut Context<Self>) {
        if let Some(tick) = self.tick.take() {
            ctx.cancel(tick);
        }
    }

    /// Settles what a player means to do here; the player hears of it (`settled`) once it is
    /// durable.
    pub async fn settle(
        &mut self,
        intent: Intent,
        player: ActorRef<PlayerActor>,
        ctx: &mut Context<Self>,
    ) -> Result<(), Setback> {
        let settled = self.settle_for(&intent, None, Asker::Player(player), ctx);
        settled.map_err(|(_, setback)| setback)
    }

    /// Settles a join, as `settle` does.
    pub async fn begin(
        &mut self,
        intent: Intent,
        birth: Box<Birth>,
        player: ActorRef<PlayerActor>,
        ctx: &mut Context<Self>,
    ) -> Result<(), Setback> {
        let settled = self.settle_for(&intent, Some(birth), Asker::Player(player), ctx);
        settled.map_err(|(_, setback)| setback)
    }

    /// Settles what a player means to do here; answers once it is durable.
    #[delayed]
    pub async fn settle_durably(
        &mut self,
        intent: Intent,
        reply: ReplyTo<Settled>,
        ctx: &mut Context<Self>,
    ) {
        let settled = self.settle_for(&intent, None, Asker::Reply(reply), ctx);
        if let Err((Asker::Reply(reply), setback)) = settled {
            reply.send(Err(setback));
        }
    }

    /// Hears that a player has gone next door.
    pub async fn gone(&mut self, event: Event, ctx: &mut Context<Self>) {
        self.region.apply(&event);
        self.tell(self.world.journal.durable(), Change::Left(event.player), ctx);
    }

    /// What can be known of a block.
    pub async fn survey(&self, block: BlockId) -> Survey {
        let mut places = block.places();
        let marks = std::array::from_fn(|_| {
            let place = places.next().expect("a block has as many places as marks");
            Mark::new(self.region.terrain(), &self.scent, place)
        });
        Survey { marks, stamp: self.stamp }
    }

    /// Whether a clue lies there.
    pub async fn shows_clue(&self, place: Place) -> bool {
        self.region.shows_clue(place)
    }

    /// All there is to see.
    pub async fn look(&self) -> Look {
        Look { bytes: self.snapshot_frame(), since: self.topic.last() }
    }

    /// Its ground.
    pub async fn terrain(&self) -> Arc<Terrain> {
        self.region.terrain().clone()
    }

    /// Its points and players.
    pub async fn totals(&self) -> Totals {
        Totals { score: self.region.image().score, players: self.region.present().len() }
    }

    /// Shows watchers what is durable of the news.
    async fn tick(&mut self, ctx: &mut Context<Self>) {
        self.tick = None;
        let durable = self.world.journal.durable();
        let count = self.news.iter().take_while(|(ticket, _)| *ticket <= durable).count();
        let changes: Vec<_> = self.news.drain(..count).map(|(_, change)| change).collect();
        if !changes.is_empty() && self.topic.subscribers() > 0 {
            let mut bytes = Vec::new();
            write_view(&mut bytes, self.region.id(), &latest(changes));
            self.topic
                .publish(View { region: self.region.id(), bytes: bytes.into() })
                .expect(NO_OTHER_PUBLISHER);
        }
        self.tick_later(ctx);
    }

    /// Takes over scents computed on the pool, unless the ground has changed meanwhile.
    async fn scented(&mut self, scent: Arc<Scent>, stamp: Stamp) {
        if stamp == stamp_of(&self.region) {
            self.scent = scent;
            self.stamp = stamp;
        }
    }
}

impl RegionActor {
    /// Decides and appends in one step; who asks is answered by the log, or given back with the
    /// reason.
    fn settle_for(
        &mut self,
        intent: &Intent,
        birth: Option<Box<Birth>>,
        asker: Asker,
        ctx: &mut Context<Self>,
    ) -> Result<(), (Asker, Setback)> {
        if let Some(event) = self.region.settled(intent) {
            let done = self.done(*event);
            self.world.journal.answer_after(Receipt { asker, done });
            return Ok(());
        }
        let event = match self.region.decide(intent) {
            Ok(event) => event,
            Err(refusal) => return Err((asker, refusal.into())),
        };
        // Looked at before the event is applied, because the answer goes to the log with it.
        let done = Done { shows_clue: self.will_show_clue(&event), ..self.done(event) };
        match self.world.journal.append(event, birth, Some(Receipt { asker, done })) {
            Ok(ticket) => {
                self.happened(&event, ticket, ctx);
                Ok(())
            }
            Err(Fenced { receipt }) => {
                let asker = receipt.expect("the receipt comes back with its event").asker;
                Err((asker, Setback::Stale))
            }
        }
    }

    fn done(&self, event: Event) -> Done {
        Done { event, shows_clue: self.region.shows_clue(event.to), stamp: self.stamp }
    }

    fn will_show_clue(&self, event: &Event) -> bool {
        match event.deed {
            Deed::Dig | Deed::Drop if event.clue.is_some() => {
                event.deed == Deed::Dig || event.gain == 0 || self.region.shows_clue(event.to)
            }
            Deed::PickUp => self.region.clues_on(event.to) > 1,
            _ => self.region.shows_clue(event.to),
        }
    }

    /// Everything that follows from an event that the log has taken.
    fn happened(&mut self, event: &Event, ticket: Ticket, ctx: &mut Context<Self>) {
        self.region.apply(event);
        if event.from.region() != self.region.id() {
            self.tell_next_door(event, ctx);
        }
        for change in changes(event).into_iter().flatten() {
            self.tell(ticket, change, ctx);
        }
        if event.deed == Deed::Dig && event.clue.is_some() {
            self.rise_if_empty();
            self.refresh_scent(ctx);
        }
        if event.deed.touches_ground() {
            self.snapshot_sometimes();
        }
    }

    /// The region a player came from forgets it; should the news be lost with a killed region, its
    /// log tells it.
    fn tell_next_door(&self, event: &Event, ctx: &mut Context<Self>) {
        let region = self.world.region(event.from.region());
        if region.gone(*event).try_tell().is_err() {
            let (region, event) = (region.clone(), *event);
            ctx.detach(async move {
                if let Err(why) = region.gone(event).tell().await {
                    tracing::warn!(%why, "a region does not hear of a player's going");
                }
            });
        }
    }

    fn tell(&mut self, ticket: Ticket, change: Change, ctx: &mut Context<Self>) {
        self.news.push_back((ticket, change));
        self.tick_later(ctx);
    }

    fn tick_later(&mut self, ctx: &mut Context<Self>) {
        if self.tick.is_none() && !self.news.is_empty() {
            self.tick = Some(ctx.after(VIEW_TICK, region_actor_messages::Tick));
        }
    }

    /// Lets the tide come once the last clue is found.
    fn rise_if_empty(&mut self) {
        let Some(tide) = self.region.tide() else { return };
        self.world
            .journal
            .append(tide, None, None)
            .expect("tides have no player, so that nothing fences them");
        self.region.apply(&tide);
        // Too much has changed to tell it one by one.
        self.topic
            .publish(View { region: self.region.id(), bytes: self.snapshot_frame() })
            .expect(NO_OTHER_PUBLISHER);
    }

    fn snapshot_sometimes(&mut self) {
        self.since_snapshot += 1;
        if self.since_snapshot >= SNAPSHOT_EVERY {
            self.since_snapshot = 0;
            let image = Box::new(self.region.image().clone());
            self.world.journal.snapshot(self.region.id(), image);
        }
    }

    /// Has the scents computed anew, on the pool.
    fn refresh_scent(&self, ctx: &mut Context<Self>) {
        let stamp = stamp_of(&self.region);
        if stamp == self.stamp {
            return;
        }
        let terrain = self.region.terrain().clone();
        let buried: Vec<_> = self.region.buried_tiles().collect();
        let spread = ctx.blocking(move || Arc::new(Scent::spread(&terrain, buried)));
        ctx.pipe(spread, move |scent| region_actor_messages::Scented { scent, stamp });
    }

    fn snapshot_frame(&self) -> Bytes {
        let mut bytes = Vec::new();
        write_snapshot(&mut bytes, self.region.id(), self.region.image(), self.region.present());
        bytes.into()
    }
}

/// Rises with each clue found and each tide; the same in every life.
fn stamp_of(region: &Region) -> Stamp {
    let found = u32::from(u16::MAX).saturating_sub(u32::try_from(region.buried()).unwrap_or(0));
    Stamp(u32::from(region.image().tide) << 16 | found)
}

/// What an event looks like from outside.
pub(crate) fn changes(event: &Event) -> [Option<Change>; 2] {
    let (player, tile) = (event.player, event.to.in_region());
    match event.deed {
        Deed::Join | Deed::Move => [Some(Change::Moved(player, tile)), None],
        Deed::Dig => [Some(Change::Dug(tile)), event.clue.map(|_| Change::ClueDown(tile))],
        Deed::PickUp => [Some(Change::ClueUp(tile)), None],
        Deed::Drop if event.gain > 0 => [Some(Change::Delivered(player, tile)), None],
        Deed::Drop => [Some(Change::ClueDown(tile)), None],
        Deed::Leave => {
            let clue = (!event.carry.is_empty()).then_some(Change::ClueDown(tile));
            [Some(Change::Left(player)), clue]
        }
        Deed::Tide => [None, None],
    }
}

/// Of several moves of a player only the last is news.
pub(crate) fn latest(changes: Vec<Change>) -> Vec<Change> {
    let mut moved = std::collections::HashSet::new();
    let mut latest: Vec<_> = changes
        .into_iter()
        .rev()
        .filter(|change| match change {
            Change::Moved(player, _) | Change::Left(player) => moved.insert(*player),
            _ => true,
        })
        .collect();
    latest.reverse();
    latest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::PlayerId;

    #[test]
    fn of_a_walk_only_its_end_is_shown_and_the_ground_keeps_its_order() {
        let (one, two) = (PlayerId(1), PlayerId(2));
        let news = vec![
            Change::Moved(one, 1),
            Change::Dug(1),
            Change::Moved(two, 9),
            Change::ClueDown(1),
            Change::Moved(one, 2),
            Change::Left(two),
        ];
        let shown = [Change::Dug(1), Change::ClueDown(1), Change::Moved(one, 2), Change::Left(two)];
        assert_eq!(latest(news), shown);
    }
}
