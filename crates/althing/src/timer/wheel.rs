//! A hierarchical timing wheel: a pure value, one-millisecond ticks, constant-time insert and
//! cancel.
//!
//! Source: Varghese and Lauck, Hashed and Hierarchical Timing Wheels, 1987. Level L has 64 slots of
//! 64^L ticks; an entry lies at the level of the highest 6-bit digit in which its deadline differs
//! from now, and falls to lower levels as that digit comes up.

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Six levels of six bits: 2^36 ms, over two years; longer delays are cut to that and lined up
/// again when due.
const LEVELS: usize = 6;
/// Fewer cancelled entries than this are not worth a sweep: 16 KiB of ids.
const DEAD_MIN: usize = 2_048;
const SPAN: u64 = 1 << (BITS * LEVELS as u32);

/// Names an entry; never reused for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EntryId {
    index: u32,
    generation: u32,
}

struct Entry<T> {
    generation: u32,
    deadline: u64,
    value: Option<T>,
}

/// Values by deadline, in ticks.
pub(crate) struct Wheel<T> {
    now: u64,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    slots: [[Vec<EntryId>; SLOTS]; LEVELS],
    /// One bit per slot that may hold entries.
    occupied: [u64; LEVELS],
    /// Cancelled entries whose ids still lie in slots.
    dead: usize,
}

impl<T> Wheel<T> {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            entries: Vec::new(),
            free: Vec::new(),
            slots: std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())),
            occupied: [0; LEVELS],
            dead: 0,
        }
    }

    /// Adds a value due at `deadline`; a deadline in the past is due at the next tick.
    pub(crate) fn insert(&mut self, deadline: u64, value: T) -> EntryId {
        let id = if let Some(index) = self.free.pop() {
            let entry = &mut self.entries[index as usize];
            entry.deadline = deadline;
            entry.value = Some(value);
            EntryId { index, generation: entry.generation }
        } else {
            let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 timers");
            self.entries.push(Entry { generation: 0, deadline, value: Some(value) });
            EntryId { index, generation: 0 }
        };
        self.place(id, deadline);
        id
    }

    /// Takes a value out before it is due.
    pub(crate) fn cancel(&mut self, id: EntryId) -> Option<T> {
        let entry = self.entries.get_mut(id.index as usize)?;
        if entry.generation != id.generation {
            return None;
        }
        let value = entry.value.take()?;
        self.retire(id.index);
        self.dead += 1;
        if self.dead > DEAD_MIN && self.dead > self.entries.len() - self.free.len() {
            self.sweep();
        }
        Some(value)
    }

    /// Throws out the ids of cancelled entries, which outnumber the others by now.
    fn sweep(&mut self) {
        let entries = &self.entries;
        for slot in self.slots.iter_mut().flatten() {
            slot.retain(|id| entries[id.index as usize].generation == id.generation);
            slot.shrink_to(slot.len() * 2);
        }
        self.dead = 0;
    }

    /// A tick at or before the earliest deadline; `None` without entries.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        (0..LEVELS).find_map(|level| {
            let shift = BITS * level as u32;
            let digit = (self.now >> shift) as u32 & (SLOTS as u32 - 1);
            let ahead = self.occupied[level].rotate_right(digit);
            // Entries of a level lie strictly ahead of its digit, so bit 0 is never theirs, except
            // a whole turn ahead.
            (ahead != 0).then(|| {
                let distance = match (ahead & !1).trailing_zeros() {
                    64 => SLOTS as u64,
                    distance => u64::from(distance),
                };
                ((self.now >> shift) + distance) << shift
            })
        })
    }

    /// Moves to tick `to` and hands out what is due by then, in the order of deadlines.
    pub(crate) fn advance(&mut self, to: u64, mut due: impl FnMut(T)) {
        while let Some(tick) = self.next_tick() {
            if tick > to {
                break;
            }
            self.now = tick;
            for level in (0..LEVELS).rev() {
                let shift = BITS * level as u32;
                if tick.trailing_zeros() < shift {
                    continue;
                }
                let slot = (tick >> shift) as usize & (SLOTS - 1);
                self.occupied[level] &= !(1 << slot);
                for id in std::mem::take(&mut self.slots[level][slot]) {
                    self.fall(id, &mut due);
                }
            }
        }
        self.now = self.now.max(to);
    }

    fn fall(&mut self, id: EntryId, due: &mut impl FnMut(T)) {
        let entry = &mut self.entries[id.index as usize];
        if entry.generation != id.generation {
            self.dead = self.dead.saturating_sub(1);
            return;
        }
        if entry.deadline > self.now {
            let deadline = entry.deadline;
            self.place(id, deadline);
        } else if let Some(value) = entry.value.take() {
            self.retire(id.index);
            due(value);
        }
    }

    fn place(&mut self, id: EntryId, deadline: u64) {
        let tick = deadline.clamp(self.now + 1, self.now + SPAN - 1);
        let highest = 63 - (tick ^ self.now).leading_zeros();
        let level = ((highest / BITS) as usize).min(LEVELS - 1);
        let slot = (tick >> (BITS * level as u32)) as usize & (SLOTS - 1);
        self.occupied[level] |= 1 << slot;
        self.slots[level][slot].push(id);
    }

    fn retire(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(wheel: &mut Wheel<u64>, to: u64) -> Vec<u64> {
        let mut due = Vec::new();
        wheel.advance(to, |value| due.push(value));
        due
    }

    #[test]
    fn fires_at_the_deadline_and_in_order_over_all_levels() {
        let mut wheel = Wheel::new();
        let mut deadlines: Vec<u64> =
            (0..30).map(|n| 1 + (1_u64 << n)).chain([1, 63, 64, 65, 4_095, 4_096, 4_097]).collect();
        for deadline in &deadlines {
            wheel.insert(*deadline, *deadline);
        }
        deadlines.sort_unstable();
        let mut fired = Vec::new();
        while let Some(tick) = wheel.next_tick() {
            let due = drain(&mut wheel, tick);
            assert!(due.iter().all(|deadline| *deadline == tick), "{due:?} at {tick}");
            fired.extend(due);
        }
        assert_eq!(fired, deadlines);
    }

    #[test]
    fn agrees_with_a_sorted_list_from_any_starting_point() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut wheel = Wheel::new();
        let mut model: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for value in 0..5_000 {
            let delay = match random(3) {
                0 => random(70),
                1 => random(5_000),
                _ => random(300_000),
            };
            wheel.insert(now + delay, value);
            model.push(((now + delay).max(now + 1), value));
            if random(4) == 0 {
                now += random(2_000);
                let mut due = drain(&mut wheel, now);
                let mut expected: Vec<u64> =
                    model.iter().filter(|(at, _)| *at <= now).map(|(_, value)| *value).collect();
                model.retain(|(at, _)| *at > now);
                due.sort_unstable();
                expected.sort_unstable();
                assert_eq!(due, expected, "at {now}");
            }
        }
    }

    #[test]
    fn a_cancelled_entry_does_not_fire_and_its_id_stays_dead() {
        let mut wheel = Wheel::new();
        let first = wheel.insert(10, 1);
        assert_eq!(wheel.cancel(first), Some(1));
        let second = wheel.insert(10, 2);
        assert_eq!(wheel.cancel(first), None);
        assert_eq!(drain(&mut wheel, 20), [2]);
        assert_eq!(wheel.cancel(second), None);
    }
}
