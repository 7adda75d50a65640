//! Counts the event log again, by rules of its own: no actor, no region state, no index.
//!
//! It knows each player by number, place, points and hands, each tile's clues, and nothing else;
//! whatever in the log does not follow from that is a violation. The digest of a player is what a
//! client computes over the answers it got.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::journal::{Record, Records, read_file_header};
use crate::map::mix;
use crate::place::{ActSeq, Place, PlayerId, REGIONS, RegionId};
use crate::rules::{Carry, Clue, DIG_POINTS, Deed, Event, RegionImage};

/// Violations told in full; the rest are counted.
const VIOLATIONS_TOLD: usize = 10;

/// What the log comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recount {
    /// Events.
    pub events: u64,
    /// Points of all events.
    pub score: u64,
    /// Players in the world at the end.
    pub present: usize,
    /// Points by region.
    pub region_scores: Vec<u64>,
    /// The last event of everybody who ever was there.
    pub players: BTreeMap<u32, PlayerCount>,
    /// What does not follow.
    pub violations: u64,
    /// The first of them.
    pub violations_told: Vec<String>,
}

/// A player's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerCount {
    /// Number of its last event.
    pub seq: u32,
    /// Its points.
    pub score: u32,
    /// Over all its events.
    pub digest: u64,
}

impl PlayerCount {
    /// Counts one more event, as the log or an answer tells it.
    pub fn count(&mut self, seq: ActSeq, deed: Deed, (x, y): (u16, u16), score: u32) {
        self.seq = seq.0;
        self.score = score;
        let what = u64::from(seq.0) << 32 | u64::from(score);
        let place = u64::from(x) << 24 | u64::from(y) << 8 | deed as u64;
        self.digest = mix(self.digest ^ mix(what) ^ mix(place.rotate_left(20)));
    }
}

/// Recounts a log file.
///
/// # Errors
/// The file cannot be read or is no log.
pub fn of_file(path: &Path) -> io::Result<Recount> {
    let file = File::open(path)?;
    let mut tally = Tally::new(read_file_header(&file)?);
    for (_, record) in Records::of(&file)? {
        match record {
            Record::Event(event, _) => tally.count(&event),
            Record::Snapshot(region, image) => tally.compare(region, &image),
        }
    }
    Ok(tally.finish())
}

/// Recounts events that each region has kept in its own order. Regions are counted beside each
/// other, so that each event comes after its player's last one.
pub fn of_regions(seed: u64, regions: &[Vec<Event>]) -> Recount {
    let mut tally = Tally::new(seed);
    let mut next = vec![0; regions.len()];
    let mut ready: Vec<usize> = (0..regions.len()).collect();
    let mut waiting: HashMap<PlayerId, Vec<usize>> = HashMap::new();
    while let Some(region) = ready.pop() {
        while let Some(event) = regions[region].get(next[region]) {
            // One that is there twice is counted when it comes, and is a violation.
            if event.deed != Deed::Tide && event.seq.0 > tally.last_of(event.player) + 1 {
                waiting.entry(event.player).or_default().push(region);
                break;
            }
            tally.count(event);
            next[region] += 1;
            ready.extend(waiting.remove(&event.player).unwrap_or_default());
        }
    }
    for (events, next) in regions.iter().zip(next) {
        for event in &events[next..] {
            tally.violation(event, "follows an event that is nowhere");
        }
    }
    tally.finish()
}

struct Tally {
    seed: u64,
    recount: Recount,
    present: HashMap<PlayerId, (Place, Carry)>,
    ground: HashMap<Place, Vec<Clue>>,
    dug: Vec<HashSet<Place>>,
    tides: Vec<u16>,
}

impl Tally {
    fn new(seed: u64) -> Self {
        let regions = usize::from(REGIONS);
        Self {
            seed,
            recount: Recount { region_scores: vec![0; regions], ..Recount::default() },
            present: HashMap::new(),
            ground: HashMap::new(),
            dug: vec![HashSet::new(); regions],
            tides: vec![0; regions],
        }
    }

    fn last_of(&self, player: PlayerId) -> u32 {
        self.recount.players.get(&player.0).map_or(0, |count| count.seq)
    }

    fn finish(mut self) -> Recount {
        self.recount.present = self.present.len();
        self.recount
    }

    fn violation(&mut self, event: &Event, what: &str) {
        self.recount.violations += 1;
        if self.recount.violations_told.len() < VIOLATIONS_TOLD {
            let text = format!("player {} event {}: {what}", event.player.0, event.seq.0);
            self.recount.violations_told.push(text);
        }
    }

    fn count(&mut self, event: &Event) {
        self.recount.events += 1;
        self.recount.score += u64::from(event.gain);
        self.recount.region_scores[event.to.region().index()] += u64::from(event.gain);
        if event.deed == Deed::Tide {
            return self.count_tide(event);
        }
        self.follow(event);
        let (gain, carry) = self.expected(event);
        if event.gain != gain {
            self.violation(event, &format!("brings {} points, not {gain}", event.gain));
        }
        if event.carry != carry {
            self.violation(event, "carries something else than before and taken");
        }
        if event.deed == Deed::Leave {
            self.ground.entry(event.to).or_default().extend(event.carry.iter());
            self.present.remove(&event.player);
        } else {
            self.present.insert(event.player, (event.to, event.carry));
        }
    }

    /// Whether the event follows the player's last one.
    fn follow(&mut self, event: &Event) {
        let before = self.recount.players.get(&event.player.0).copied().unwrap_or_default();
        if event.seq.0 != before.seq + 1 {
            self.violation(event, &format!("follows event {}", before.seq));
        }
        if event.score != before.score + u32::from(event.gain) {
            self.violation(event, &format!("has {} points after {}", event.score, before.score));
        }
        let stood = self.present.get(&event.player).map(|(place, _)| *place);
        let starts_right = match event.deed {
            Deed::Join => stood.is_none() && event.from == event.to,
            Deed::Move => stood == Some(event.from) && event.from.is_step_to(event.to),
            _ => stood == Some(event.from) && event.from == event.to,
        };
        if !starts_right {
            self.violation(event, "does not begin where the last event ended, or leads too far");
        }
        let mut after = before;
        after.count(event.seq, event.deed, (event.to.x(), event.to.y()), event.score);
        self.recount.players.insert(event.player.0, after);
    }

    /// Points and hands that the event should have.
    fn expected(&mut self, event: &Event) -> (u16, Carry) {
        let carry = self.present.get(&event.player).map(|(_, carry)| *carry).unwrap_or_default();
        let region = event.to.region();
        match event.deed {
            Deed::Join | Deed::Move | Deed::Leave | Deed::Tide => (0, carry),
            Deed::Dig => {
                if !self.dug[region.index()].insert(event.to) {
                    self.violation(event, "digs where a hole is");
                }
                let Some(clue) = event.clue else { return (0, carry) };
                if Clue::buried_at(self.seed, self.tides[region.index()], event.to) != Some(clue) {
                    self.violation(event, "digs up a clue that is not buried there");
                }
                self.ground.entry(event.to).or_default().push(clue);
                (DIG_POINTS, carry)
            }
            Deed::PickUp => {
                let here = self.ground.entry(event.to).or_default();
                let taken = here.iter().position(|clue| Some(*clue) == event.clue);
                let clue = taken.map(|index| here.remove(index));
                if clue.is_none() {
                    self.violation(event, "takes a clue that does not lie there");
                }
                (0, clue.and_then(|clue| carry.with(clue)).unwrap_or(carry))
            }
            Deed::Drop => {
                let Some((carry, clue)) = carry.without_top() else {
                    self.violation(event, "drops a clue with empty hands");
                    return (0, carry);
                };
                if event.to == region.camp() {
                    return (clue.worth(self.seed), carry);
                }
                self.ground.entry(event.to).or_default().push(clue);
                (0, carry)
            }
        }
    }

    fn count_tide(&mut self, event: &Event) {
        let region = event.to.region().index();
        let next = self.tides[region] + 1;
        if event.seq.0 != u32::from(next) {
            self.violation(event, &format!("is not tide {next}"));
        }
        self.tides[region] = next;
        self.dug[region].clear();
    }

    /// Whether a region's snapshot is what its events come to.
    fn compare(&mut self, region: RegionId, image: &RegionImage) {
        let index = region.index();
        let dug: u32 = image.dug.iter().map(|bits| bits.count_ones()).sum();
        let clues = self.ground.iter().filter(|(place, _)| place.region() == region);
        let clues: usize = clues.map(|(_, clues)| clues.len()).sum();
        let is_right = image.score == self.recount.region_scores[index]
            && image.tide == self.tides[index]
            && dug as usize == self.dug[index].len()
            && image.ground.len() == clues;
        if !is_right {
            self.recount.violations += 1;
            let text = format!("the snapshot of region {} differs", region.number());
            self.recount.violations_told.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk on land is not looked for: the recount knows no terrain.
    fn step(player: u32, seq: u32, from: (u16, u16), to: (u16, u16)) -> Event {
        let place = |(x, y)| Place::new(x, y).unwrap();
        Event {
            deed: if seq == 1 { Deed::Join } else { Deed::Move },
            player: PlayerId(player),
            seq: ActSeq(seq),
            from: place(from),
            to: place(to),
            clue: None,
            gain: 0,
            score: 0,
            carry: Carry::default(),
        }
    }

    #[test]
    fn regions_are_counted_so_that_each_event_comes_after_its_players_last_one() {
        let (west, east) = ((63, 5), (64, 5));
        let there = vec![step(1, 1, west, west), step(2, 2, east, west), step(1, 3, east, west)];
        let here = vec![step(2, 1, east, east), step(1, 2, west, east)];
        let recount = of_regions(7, &[there.clone(), here.clone()]);
        assert_eq!((recount.events, recount.violations, recount.present), (5, 0, 2));
        let seqs: Vec<_> = recount.players.values().map(|count| count.seq).collect();
        assert_eq!(seqs, [3, 2]);

        let twice = [here.clone(), vec![here[1]]].concat();
        assert!(of_regions(7, &[there.clone(), twice]).violations > 0, "an event is there twice");
        let lost = of_regions(7, &[there, here[..1].to_vec()]);
        assert_eq!(lost.violations, 1, "{lost:?}");
    }
}
