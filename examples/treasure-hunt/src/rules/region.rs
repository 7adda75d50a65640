//! A region: what lies on and under its ground, who is in it, and its points.
//!
//! `decide` never changes anything and `apply` never refuses, so that a region built from the log
//! is the region that wrote it. An event counts for the region of the place it leads to; the region
//! it came from only forgets the player.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Clue, DIG_POINTS, Deed, Event, Intent, Refusal};
use crate::map::Terrain;
use crate::place::{ActSeq, Place, PlayerId, REGION_TILES, RegionId};

/// The lasting part of a region's state, as snapshots keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionImage {
    /// Times the sea has levelled it.
    pub tide: u16,
    /// Points brought here.
    pub score: u64,
    /// One bit per tile, row by row: whether it is dug up.
    pub dug: Box<[u8; REGION_TILES / 8]>,
    /// Clues on the ground, with the number of their tile, oldest first.
    pub ground: Vec<(u16, Clue)>,
}

/// One region.
#[derive(Debug)]
pub struct Region {
    seed: u64,
    terrain: Arc<Terrain>,
    image: RegionImage,
    /// Last event of everybody who is here.
    present: HashMap<PlayerId, Event>,
    buried: usize,
}

impl Default for RegionImage {
    fn default() -> Self {
        Self { tide: 0, score: 0, dug: Box::new([0; REGION_TILES / 8]), ground: Vec::new() }
    }
}

impl RegionImage {
    fn is_dug(&self, place: Place) -> bool {
        let number = usize::from(place.in_region());
        self.dug[number / 8] & 1 << (number % 8) != 0
    }

    fn dig(&mut self, place: Place) {
        let number = usize::from(place.in_region());
        self.dug[number / 8] |= 1 << (number % 8);
    }

    fn clue_on(&self, place: Place) -> Option<Clue> {
        self.ground.iter().find(|(number, _)| *number == place.in_region()).map(|(_, clue)| *clue)
    }

    /// Applies the part of an event that lasts.
    pub fn apply(&mut self, event: &Event) {
        self.score += u64::from(event.gain);
        let here = event.to.in_region();
        match event.deed {
            Deed::Join | Deed::Move => {}
            Deed::Dig => {
                self.dig(event.to);
                self.ground.extend(event.clue.map(|clue| (here, clue)));
            }
            Deed::PickUp => {
                let lies = |entry: &(u16, Clue)| entry.0 == here && Some(entry.1) == event.clue;
                if let Some(index) = self.ground.iter().position(lies) {
                    self.ground.remove(index);
                }
            }
            Deed::Drop if event.gain > 0 => {}
            Deed::Drop => self.ground.extend(event.clue.map(|clue| (here, clue))),
            Deed::Leave => self.ground.extend(event.carry.iter().map(|clue| (here, clue))),
            Deed::Tide => {
                self.tide = u16::try_from(event.seq.0).unwrap_or(u16::MAX);
                self.dug.fill(0);
            }
        }
    }
}

impl Region {
    /// A region as `image` has it, with `present` being the last events of those who are there.
    pub fn new(
        seed: u64,
        terrain: Arc<Terrain>,
        image: RegionImage,
        present: impl IntoIterator<Item = Event>,
    ) -> Self {
        let present = present.into_iter().map(|event| (event.player, event)).collect();
        let mut region = Self { seed, terrain, image, present, buried: 0 };
        region.buried = region.buried_tiles().count();
        region
    }

    /// Which.
    pub fn id(&self) -> RegionId {
        self.terrain.region()
    }

    /// Its ground.
    pub fn terrain(&self) -> &Arc<Terrain> {
        &self.terrain
    }

    /// What lasts.
    pub fn image(&self) -> &RegionImage {
        &self.image
    }

    /// Who is there, by last event.
    pub fn present(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.present.values()
    }

    /// Numbers of the tiles that still hide a clue.
    pub fn buried_tiles(&self) -> impl Iterator<Item = u16> {
        (0..).take(REGION_TILES).filter(|number| self.buried_at(self.id().place(*number)).is_some())
    }

    /// Whether a clue lies on the ground there.
    pub fn shows_clue(&self, place: Place) -> bool {
        self.image.clue_on(place).is_some()
    }

    /// How many clues lie on the ground there.
    pub fn clues_on(&self, place: Place) -> usize {
        let here = place.in_region();
        self.image.ground.iter().filter(|(number, _)| *number == here).count()
    }

    /// Clues still buried.
    pub fn buried(&self) -> usize {
        self.buried
    }

    fn buried_at(&self, place: Place) -> Option<Clue> {
        let clue = Clue::buried_at(self.seed, self.image.tide, place)?;
        let can_dig = self.terrain.tile(place).is_passable() && !self.image.is_dug(place);
        can_dig.then_some(clue)
    }

    /// The event that this intent has led to already.
    pub fn settled(&self, intent: &Intent) -> Option<&Event> {
        self.present.get(&intent.player).filter(|event| event.seq == intent.seq)
    }

    /// What comes of an intent.
    ///
    /// # Errors
    /// The ground does not allow it.
    pub fn decide(&self, intent: &Intent) -> Result<Event, Refusal> {
        let event = intent.happens();
        let here = intent.to;
        match intent.deed {
            Deed::Join | Deed::Move | Deed::Leave => Ok(event),
            Deed::Tide => Err(Refusal::NotAllowed),
            Deed::Dig if self.image.is_dug(here) => Err(Refusal::AlreadyDug),
            Deed::Dig => Ok(match self.buried_at(here) {
                Some(clue) => gaining(Event { clue: Some(clue), ..event }, DIG_POINTS),
                None => event,
            }),
            Deed::PickUp => {
                let clue = self.image.clue_on(here).ok_or(Refusal::NothingHere)?;
                let carry = intent.carry.with(clue).ok_or(Refusal::HandsFull)?;
                Ok(Event { clue: Some(clue), carry, ..event })
            }
            Deed::Drop => {
                let (carry, clue) = intent.carry.without_top().ok_or(Refusal::EmptyHanded)?;
                let event = Event { clue: Some(clue), carry, ..event };
                let is_camp = here == self.id().camp();
                Ok(if is_camp { gaining(event, clue.worth(self.seed)) } else { event })
            }
        }
    }

    /// The tide that comes once no clue is buried any more.
    pub fn tide(&self) -> Option<Event> {
        let camp = self.id().camp();
        (self.buried == 0).then_some(Event {
            deed: Deed::Tide,
            player: PlayerId(0),
            seq: ActSeq(u32::from(self.image.tide.saturating_add(1))),
            from: camp,
            to: camp,
            clue: None,
            gain: 0,
            score: 0,
            carry: super::Carry::default(),
        })
    }

    /// Takes over what happened, here or next door.
    pub fn apply(&mut self, event: &Event) {
        if event.to.region() != self.id() {
            self.forget(event);
            return;
        }
        if event.deed == Deed::Dig && event.clue.is_some() {
            self.buried = self.buried.saturating_sub(1);
        }
        self.image.apply(event);
        match event.deed {
            Deed::Tide => self.buried = self.buried_tiles().count(),
            Deed::Leave => self.forget(event),
            _ => {
                self.present.insert(event.player, *event);
            }
        }
    }

    /// Forgets a player whose later event happened elsewhere.
    fn forget(&mut self, event: &Event) {
        if self.present.get(&event.player).is_some_and(|last| last.seq < event.seq) {
            self.present.remove(&event.player);
        }
    }
}

fn gaining(event: Event, gain: u16) -> Event {
    Event { gain, score: event.score + u32::from(gain), ..event }
}

#[cfg(test)]
mod tests;
