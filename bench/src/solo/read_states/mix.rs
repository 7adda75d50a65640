//! What is done to which read state: 8 million entries of 200,000 users, four of five operations
//! change one, the fifth reads one, and which one is next follows Zipf's law.

use folkmoot_read_states::{Answer, Change, ReadState, ReadStates, Row, RowStore};

const USERS: u64 = 200_000;
pub(super) const ROOMS: u64 = 40;
pub(super) const ENTRIES: u64 = USERS * ROOMS;
/// YCSB's.
const EXPONENT: f64 = 0.99;

/// Has a row for each user, with `ROOMS` entries, and forgets what it is given.
pub(super) struct Filled;

impl RowStore for Filled {
    fn load(&self, user: u64) -> Answer<Option<Row>> {
        let row = first_row(user);
        Box::pin(async move { Ok(Some(row)) })
    }

    fn save(&self, _: Vec<Row>) -> Answer<()> {
        Box::pin(async { Ok(()) })
    }

    fn take_over(&self, _: u64) -> Answer<u64> {
        Box::pin(async { Ok(1) })
    }
}

/// What a user begins with.
pub(super) fn first_row(user: u64) -> Row {
    let entry = |n| ReadState { room: room(user, n), last_read: 1, mentions: 0 };
    Row { user, version: 1, entries: (0..ROOMS).map(entry).collect() }
}

/// Brings all users into memory.
pub(super) async fn load_all(states: &ReadStates) -> Result<(), String> {
    for user in 0..USERS {
        states.all(user).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The nth room of a user: numbers as wide as real ones.
fn room(user: u64, n: u64) -> u64 {
    (user.wrapping_mul(31) + n).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Picks ranks below `ENTRIES`, after Gray et al., "Quickly generating billion-record synthetic
/// databases", 1994.
pub(super) struct Zipf {
    zeta: f64,
    eta: f64,
    alpha: f64,
    random: u64,
}

impl Zipf {
    pub(super) fn new(seed: u64, zeta: f64) -> Self {
        let of_two = 1.0 + 0.5f64.powf(EXPONENT);
        let eta = (1.0 - (2.0 / ENTRIES as f64).powf(1.0 - EXPONENT)) / (1.0 - of_two / zeta);
        Self { zeta, eta, alpha: 1.0 / (1.0 - EXPONENT), random: seed }
    }

    pub(super) fn zeta() -> f64 {
        (1..=ENTRIES).map(|rank| (rank as f64).powf(-EXPONENT)).sum()
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn rank(&mut self) -> u64 {
        let uniform = (self.random() >> 11) as f64 / (1u64 << 53) as f64;
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(EXPONENT) {
            return 1;
        }
        let rank = ENTRIES as f64 * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(ENTRIES - 1)
    }

    /// A user and a room, and whether to change the entry. Made ahead: a power costs as much as
    /// what is measured.
    pub(super) fn picks(&mut self, count: usize) -> Vec<Pick> {
        let pick = |_| {
            let scattered = self.rank().wrapping_mul(0x2545_f491_4f6c_dd1d) % ENTRIES;
            let (user, n) = (scattered / ROOMS, scattered % ROOMS);
            Pick { user, room: room(user, n), changes: !self.random().is_multiple_of(5) }
        };
        (0..count).map(pick).collect()
    }
}

pub(super) struct Pick {
    pub(super) user: u64,
    pub(super) room: u64,
    changes: bool,
}

/// One operation.
#[inline]
pub(super) fn operate(states: &ReadStates, pick: &Pick, message: u64) -> Result<(), String> {
    if pick.changes {
        let change = Change::Acknowledge { message, mentions_left: 0 };
        let changed = states.change(pick.user, pick.room, change);
        let changed = changed.map_err(|error| error.to_string())?;
        std::hint::black_box(changed.state());
    } else {
        let found = states.in_memory(pick.user, pick.room);
        found.ok_or("a read state is not in memory")?;
    }
    Ok(())
}
