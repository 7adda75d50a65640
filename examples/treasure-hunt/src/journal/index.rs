//! Where in the file the past of each actor is: a fold over the records, the same at start and
//! while writing.
//!
//! A player is its birth and its last event. A region is its last snapshot, the ground events
//! since, and the last events of those who are in it. Nothing else of the file is ever needed
//! again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

use super::Offset;
use super::record::{Record, Records};
use crate::place::{ActSeq, PlayerId, REGIONS, RegionId};
use crate::rules::{Deed, Event};

/// Where a player's records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerTrail {
    /// Its join, with token and name.
    pub birth: Offset,
    /// Its last event.
    pub last: Offset,
}

/// Where a region's records are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionTrail {
    /// Its last snapshot.
    pub snapshot: Option<Offset>,
    /// Events since then that touched ground or points, in order.
    pub since: Vec<Offset>,
    /// Last events of the players in it.
    pub residents: Vec<Offset>,
}

#[derive(Debug)]
pub(super) struct Index {
    players: HashMap<PlayerId, Known>,
    regions: Vec<RegionPast>,
    player_max: u32,
}

#[derive(Debug)]
struct Known {
    trail: PlayerTrail,
    region: RegionId,
    seq: ActSeq,
}

#[derive(Debug, Default)]
struct RegionPast {
    snapshot: Option<Offset>,
    since: Vec<Offset>,
    residents: HashSet<PlayerId>,
}

impl Index {
    fn new() -> Self {
        let regions = (0..REGIONS).map(|_| RegionPast::default()).collect();
        Self { players: HashMap::new(), regions, player_max: 0 }
    }

    /// Reads a whole log; returns where its good part ends and how many events it has.
    pub(super) fn read(file: &File) -> io::Result<(Self, u64, u64)> {
        let (mut index, mut events) = (Self::new(), 0);
        let mut records = Records::of(file)?;
        for (offset, record) in records.by_ref() {
            match record {
                Record::Event(event, _) => {
                    events += 1;
                    index.note(offset, &event);
                }
                Record::Snapshot(region, _) => index.note_snapshot(offset, region),
            }
        }
        Ok((index, records.offset(), events))
    }

    pub(super) fn note(&mut self, offset: Offset, event: &Event) {
        let here = &mut self.regions[event.to.region().index()];
        if event.deed.touches_ground() {
            here.since.push(offset);
        }
        if event.deed == Deed::Tide {
            return;
        }
        self.player_max = self.player_max.max(event.player.0);
        let (region, seq) = (event.to.region(), event.seq);
        if event.deed == Deed::Leave {
            here.residents.remove(&event.player);
            self.players.remove(&event.player);
            return;
        }
        here.residents.insert(event.player);
        let trail = PlayerTrail { birth: offset, last: offset };
        let known = self.players.entry(event.player).or_insert(Known { trail, region, seq });
        known.trail.last = offset;
        known.seq = seq;
        if known.region != region {
            self.regions[known.region.index()].residents.remove(&event.player);
            known.region = region;
        }
    }

    pub(super) fn note_snapshot(&mut self, offset: Offset, region: RegionId) {
        let past = &mut self.regions[region.index()];
        past.snapshot = Some(offset);
        past.since.clear();
    }

    pub(super) fn player(&self, player: PlayerId) -> Option<PlayerTrail> {
        self.players.get(&player).map(|known| known.trail)
    }

    pub(super) fn region(&self, region: RegionId) -> RegionTrail {
        let past = &self.regions[region.index()];
        let last = |player| self.players.get(player).map(|known: &Known| known.trail.last);
        RegionTrail {
            snapshot: past.snapshot,
            since: past.since.clone(),
            residents: past.residents.iter().filter_map(last).collect(),
        }
    }

    pub(super) fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.players.keys().copied()
    }

    pub(super) fn last_seqs(&self) -> impl Iterator<Item = (PlayerId, ActSeq)> {
        self.players.iter().map(|(player, known)| (*player, known.seq))
    }

    pub(super) fn player_max(&self) -> u32 {
        self.player_max
    }
}
