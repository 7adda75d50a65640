//! One region: orders what happens on its ground, and keeps it in its journal.
//!
//! Its turns are held: an answer, a view and the word to the region next door leave once the event
//! is in the store. An act that it has settled is answered with what came of it, also when the
//! player has gone on since.

use std::collections::BTreeMap;
use std::sync::Arc;

use althing::{ActorError, Context, Start, TimerId, Topic, TopicOptions, Wire, actor};
use althing_store::{Fold, Journaled, RequestId, State};

use super::realm::Realm;
use super::session::{View, topic_name};
use crate::actors::{changes, latest};
use crate::limits::VIEW_TICK;
use crate::map::{Scent, Terrain};
use crate::place::RegionId;
use crate::rules::{Deed, Event, Intent, Refusal, Region, RegionImage};
use crate::wire::{Change, Hints, write_snapshot, write_view};

/// What lasts of a region.
#[derive(Debug, Default, Wire)]
pub(super) struct Ground {
    image: RegionImage,
    /// Last event of everybody who is here, by number.
    present: BTreeMap<u32, Event>,
}

/// One entry of its journal.
#[derive(Debug, Wire)]
pub(super) enum Entry {
    /// It happened here.
    Here(Event),
    /// A player has gone next door with it.
    Gone(Event),
}

/// What an act came to, and what the player notices there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub(super) struct Landed {
    pub(super) event: Event,
    clue: bool,
    scent: u32,
}

/// An actor named by its region's number.
pub(super) struct RegionActor {
    realm: Arc<Realm>,
    journal: Journaled<Ground>,
    region: Region,
    scent: Arc<Scent>,
    /// Of which ground the scent is.
    scented: (u16, usize),
    topic: Topic<View>,
    news: Vec<Change>,
    tick: Option<TimerId>,
}

impl State for Ground {}

impl Fold for Ground {
    type Event = Entry;

    fn apply(&mut self, entry: Entry) {
        let event = match entry {
            Entry::Here(event) => event,
            Entry::Gone(event) => {
                let player = event.player.0;
                if self.present.get(&player).is_some_and(|last| last.seq < event.seq) {
                    self.present.remove(&player);
                }
                return;
            }
        };
        self.image.apply(&event);
        match event.deed {
            Deed::Tide => {}
            Deed::Leave => _ = self.present.remove(&event.player.0),
            _ => _ = self.present.insert(event.player.0, event),
        }
    }
}

impl Landed {
    pub(super) fn hints(&self) -> Hints {
        let here = self.event.to;
        let scent = u8::try_from(self.scent).unwrap_or(u8::MAX);
        Hints { clue: self.clue, camp: here == here.region().camp(), scent }
    }
}

impl RegionActor {
    /// Its ground from the seed, all else from the journal.
    pub(super) async fn load(start: Start<Self>, realm: Arc<Realm>) -> Result<Self, ActorError> {
        let number = start.key().parse::<u16>()?;
        let id = RegionId::new(number)
            .ok_or_else(|| ActorError::new(format!("there is no region {number}")))?;
        let journal = Journaled::<Ground>::load(realm.store.clone(), &start).await?;
        let (seed, image) = (realm.seed, journal.image.clone());
        let present: Vec<_> = journal.present.values().copied().collect();
        let build = move || {
            let terrain = Arc::new(Terrain::generate(seed, id));
            let region = Region::new(seed, terrain.clone(), image, present);
            let scent = Scent::spread(&terrain, region.buried_tiles());
            (region, scent)
        };
        let (region, scent) = start.node().blocking(build).await;
        let topic = start.node().topic(topic_name(id), TopicOptions { replay: 0 });
        Ok(Self {
            scented: (region.image().tide, region.buried()),
            scent: Arc::new(scent),
            realm,
            journal,
            region,
            topic,
            news: Vec::new(),
            tick: None,
        })
    }

    fn landed(&self, event: Event) -> Landed {
        let scent = u32::from(self.scent.at(event.to));
        Landed { event, clue: self.region.shows_clue(event.to), scent }
    }

    /// Lets an event happen: it is in the journal when this turn's answer leaves.
    fn happen(&mut self, event: Event, ctx: &mut Context<Self>) {
        self.journal.record(Entry::Here(event));
        self.region.apply(&event);
        if event.from.region() != self.region.id() {
            self.tell_next_door(event);
        }
        for change in changes(&event).into_iter().flatten() {
            self.tell(change, ctx);
        }
    }

    /// The region a player came from hears of it for certain: the letter is written with the event.
    fn tell_next_door(&mut self, event: Event) {
        let region = self.realm.region(event.from.region());
        self.journal
            .post()
            .tell(|request| region.gone(request, event))
            .expect("regions have keys, and the store delivers");
    }

    /// Lets the tide come once the last clue is found.
    fn rise_if_empty(&mut self, ctx: &mut Context<Self>) {
        let Some(tide) = self.region.tide() else { return };
        self.journal.record(Entry::Here(tide));
        self.region.apply(&tide);
        // Too much has changed to tell it one by one.
        ctx.publish(&self.topic, self.view_of_all());
    }

    fn tell(&mut self, change: Change, ctx: &mut Context<Self>) {
        self.news.push(change);
        if self.tick.is_none() {
            self.tick = Some(ctx.after(VIEW_TICK, region_actor_messages::Tick));
        }
    }

    /// Has the scents computed anew, on the pool.
    fn refresh_scent(&self, ctx: &mut Context<Self>) {
        let ground = (self.region.image().tide, self.region.buried());
        if ground == self.scented {
            return;
        }
        let terrain = self.region.terrain().clone();
        let buried: Vec<_> = self.region.buried_tiles().collect();
        let spread = ctx.blocking(move || Arc::new(Scent::spread(&terrain, buried)));
        ctx.pipe(spread, move |scent| region_actor_messages::Smelled { scent, ground });
    }

    fn view_of_all(&self) -> View {
        let (mut bytes, id) = (Vec::new(), self.region.id());
        write_snapshot(&mut bytes, id, self.region.image(), self.region.present());
        View { region: u32::from(id.number()), bytes }
    }
}

#[actor(name = "hunt.region", wire, durable = journal)]
impl RegionActor {
    /// Watchers of a former life, on whichever node, may have missed something.
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.publish(&self.topic, self.view_of_all());
        Ok(())
    }

    /// Settles what a player means to do here, once.
    pub(super) async fn settle(
        &mut self,
        intent: Intent,
        ctx: &mut Context<Self>,
    ) -> Result<Landed, Refusal> {
        if intent.to.region() != self.region.id() {
            return Err(Refusal::NotAllowed);
        }
        let request = RequestId::new(format!("{}.{}", intent.player.0, intent.seq.0));
        let settled = self.region.settled(&intent).copied();
        if let Some(event) = settled.or_else(|| self.journal.post().replied(&request)) {
            return Ok(self.landed(event));
        }
        if intent.deed == Deed::Move && !self.region.terrain().tile(intent.to).is_passable() {
            return Err(Refusal::Blocked);
        }
        let event = self.region.decide(&intent)?;
        self.journal.post().reply(&request, &event);
        self.happen(event, ctx);
        if event.deed == Deed::Dig && event.clue.is_some() {
            self.rise_if_empty(ctx);
            self.refresh_scent(ctx);
        }
        Ok(self.landed(event))
    }

    /// Hears that a player has gone next door.
    pub(super) async fn gone(&mut self, request: RequestId, event: Event, ctx: &mut Context<Self>) {
        if self.journal.post().replied::<bool>(&request).is_some() {
            return;
        }
        self.journal.post().reply(&request, &true);
        self.journal.record(Entry::Gone(event));
        self.region.apply(&event);
        self.tell(Change::Left(event.player), ctx);
    }

    /// What a player notices there.
    pub(super) async fn notice(&self, event: Event) -> Landed {
        self.landed(event)
    }

    /// All there is to see.
    pub(super) async fn look(&self) -> View {
        self.view_of_all()
    }

    /// Shows watchers what has happened since the last time.
    #[wire(skip)]
    async fn tick(&mut self, ctx: &mut Context<Self>) {
        self.tick = None;
        let (mut bytes, id) = (Vec::new(), self.region.id());
        write_view(&mut bytes, id, &latest(std::mem::take(&mut self.news)));
        ctx.publish(&self.topic, View { region: u32::from(id.number()), bytes });
    }

    /// Takes over scents computed on the pool, unless the ground has changed meanwhile.
    #[wire(skip)]
    async fn smelled(&mut self, scent: Arc<Scent>, ground: (u16, usize)) {
        if ground == (self.region.image().tide, self.region.buried()) {
            (self.scent, self.scented) = (scent, ground);
        }
    }
}
