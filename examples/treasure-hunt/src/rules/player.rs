//! A player's own state, which is its last event, and what it may do next.

use super::{Act, Deed, Event, Intent, Refusal};
use crate::map::Mark;
use crate::place::{ActSeq, Place, PlayerId};

/// Acts a player may do in a second, lasting.
pub const ACTS_PER_SECOND: u32 = 20;
/// Acts it may do at once after a pause.
pub const ACTS_BURST: u32 = 10;
const MS_PER_ACT: u64 = 1_000 / ACTS_PER_SECOND as u64;

/// One player.
#[derive(Clone, Debug)]
pub struct Player {
    last: Event,
    /// When the next act is in time, were all before it spread evenly (the generic cell rate
    /// algorithm, ITU-T I.371).
    next_due_ms: u64,
}

impl Player {
    /// A player after its last event.
    pub fn after(last: Event) -> Self {
        Self { last, next_due_ms: 0 }
    }

    /// Who.
    pub fn id(&self) -> PlayerId {
        self.last.player
    }

    /// Its last event.
    pub fn last(&self) -> &Event {
        &self.last
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.last.to
    }

    /// The event that an act with this number has led to already: the answer to a repeated
    /// question.
    pub fn settled(&self, seq: ActSeq) -> Option<&Event> {
        (seq == self.last.seq).then_some(&self.last)
    }

    /// Takes the permit for one more act at `now_ms`.
    ///
    /// # Errors
    /// `TooFast` above the rate.
    pub fn take_permit(&mut self, now_ms: u64) -> Result<(), Refusal> {
        let due = self.next_due_ms.max(now_ms);
        if due - now_ms > MS_PER_ACT * u64::from(ACTS_BURST - 1) {
            return Err(Refusal::TooFast);
        }
        self.next_due_ms = due + MS_PER_ACT;
        Ok(())
    }

    /// Where an act leads to.
    ///
    /// # Errors
    /// The act is not the next one, not a player's to do, or leads too far.
    pub fn target(&self, act: &Act) -> Result<Place, Refusal> {
        let expected = self.last.seq.next();
        if act.seq != expected {
            return Err(Refusal::WrongSeq { expected });
        }
        match act.deed {
            Deed::Join | Deed::Tide => Err(Refusal::NotAllowed),
            Deed::Dig | Deed::PickUp | Deed::Drop | Deed::Leave => Ok(self.place()),
            Deed::Move => {
                let to = Place::new(act.x, act.y).ok_or(Refusal::OutsideWorld)?;
                self.place().is_step_to(to).then_some(to).ok_or(Refusal::TooFar)
            }
        }
    }

    /// What the act comes to, given the mark of its target.
    ///
    /// # Errors
    /// `Blocked` if nobody can stand there.
    pub fn intend(&self, deed: Deed, to: Place, mark: Mark) -> Result<Intent, Refusal> {
        if deed == Deed::Move && !mark.is_passable() {
            return Err(Refusal::Blocked);
        }
        Ok(self.intent(deed, to))
    }

    /// The intent to leave, which nothing forbids.
    pub fn leaving(&self) -> Intent {
        self.intent(Deed::Leave, self.place())
    }

    /// What it means to do there, if the ground allows it.
    pub(crate) fn intent(&self, deed: Deed, to: Place) -> Intent {
        Intent {
            deed,
            player: self.id(),
            seq: self.last.seq.next(),
            from: self.place(),
            to,
            score: self.last.score,
            carry: self.last.carry,
        }
    }

    /// Takes over what happened.
    pub fn apply(&mut self, event: &Event) {
        self.last = *event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::RegionId;
    use crate::rules::Carry;

    fn player() -> Player {
        let camp = RegionId::new(3).unwrap().camp();
        Player::after(Event {
            deed: Deed::Join,
            player: PlayerId(7),
            seq: ActSeq(1),
            from: camp,
            to: camp,
            clue: None,
            gain: 0,
            score: 0,
            carry: Carry::default(),
        })
    }

    fn step(player: &Player, seq: u32, dx: u16, dy: u16) -> Act {
        let (x, y) = (player.place().x() + dx, player.place().y() + dy);
        Act { player: player.id(), seq: ActSeq(seq), deed: Deed::Move, x, y }
    }

    #[test]
    fn a_move_leads_one_tile_far_and_stays_inside_the_world() {
        let player = player();
        assert!(player.target(&step(&player, 2, 1, 1)).is_ok());
        assert_eq!(player.target(&step(&player, 2, 2, 0)), Err(Refusal::TooFar));
        assert_eq!(player.target(&step(&player, 2, 0, 0)), Err(Refusal::TooFar));
        let mut outside = step(&player, 2, 0, 0);
        outside.x = u16::MAX;
        assert_eq!(player.target(&outside), Err(Refusal::OutsideWorld));
    }

    #[test]
    fn numbers_are_consecutive_and_the_last_one_is_answered_again() {
        let player = player();
        let expected = ActSeq(2);
        assert_eq!(player.target(&step(&player, 3, 1, 0)), Err(Refusal::WrongSeq { expected }));
        assert!(player.settled(ActSeq(1)).is_some());
        assert!(player.settled(ActSeq(2)).is_none());
    }

    #[test]
    fn a_flood_is_cut_to_the_rate_after_a_burst() {
        let mut player = player();
        let taken = |player: &mut Player, ms| player.take_permit(ms).is_ok();
        let burst = (0..50).filter(|_| taken(&mut player, 1_000)).count();
        assert_eq!(burst, ACTS_BURST as usize);
        let lasting = (1..=10_000).filter(|ms| taken(&mut player, 1_000 + ms)).count();
        assert_eq!(lasting, 10 * ACTS_PER_SECOND as usize);
    }

    #[test]
    fn players_do_not_make_tides_or_join_twice() {
        let player = player();
        for deed in [Deed::Join, Deed::Tide] {
            let act = Act { deed, ..step(&player, 2, 0, 0) };
            assert_eq!(player.target(&act), Err(Refusal::NotAllowed));
        }
    }
}
