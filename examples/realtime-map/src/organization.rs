//! The organisation actor: how many of an operator's vehicles are awake, how fast, how late. One
//! actor per operator.
//!
//! Each vehicle tells at most once a second, with the number of positions since; so the counts are
//! exact and the traffic is bounded by vehicles, not by positions. Once a second the organisation
//! hands its summary to the overview.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, ActorOptions, Context, Start, actor};
use serde::Serialize;

use crate::hfp::{Mode, VehicleId};
use crate::overview::{OVERVIEW_KEY, Overviewer, OverviewerCalls};
use crate::world::World;

/// Vehicles of one operator that may tell in the same moment.
const MAILBOX_LEN_MAX: u32 = 65_536;
const SUMMARY_EVERY: Duration = Duration::from_secs(1);
/// Passivation looks once a second and says good night; this is plenty.
const GRACE: Duration = Duration::from_secs(30);
/// Late by more than this counts as late.
const LATE_S: i16 = -60;
/// Slower than this is standing: about walking pace.
const STANDING_CM_S: u16 = 100;

/// What a vehicle tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Who.
    pub(crate) vehicle: VehicleId,
    /// What kind.
    pub(crate) mode: Mode,
    /// How fast, centimetres per second.
    pub(crate) speed_cm_s: u16,
    /// Seconds ahead of the timetable.
    pub(crate) delay_s: i16,
    /// Positions since it last told.
    pub(crate) positions: u32,
}

/// An organisation in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// The operator's number.
    pub(crate) operator: u16,
    /// Its name.
    pub(crate) name: String,
    /// Vehicles awake.
    pub(crate) awake: usize,
    /// Of those, on the move.
    pub(crate) moving: usize,
    /// Of those, more than a minute late.
    pub(crate) late: usize,
    /// Mean speed of the moving ones, metres per second.
    pub(crate) speed_mps: f32,
    /// Positions since the process started.
    pub(crate) positions: u64,
    /// Vehicles awake by kind.
    pub(crate) modes: Vec<(Mode, usize)>,
}

#[derive(Clone, Copy)]
struct Awake {
    told_at: Duration,
    mode: Mode,
    speed_cm_s: u16,
    delay_s: i16,
}

/// One operator.
pub(crate) struct Organization {
    operator: u16,
    name: String,
    awake: HashMap<VehicleId, Awake>,
    silence_max: Duration,
    positions: u64,
}

/// Mailbox of organisations.
fn options() -> ActorOptions {
    ActorOptions::default().mailbox(althing::MailboxKind::Bounded(MAILBOX_LEN_MAX))
}

impl Organization {
    /// Starts an operator by its number.
    ///
    /// # Errors
    /// If the key is not a number.
    pub(crate) async fn open(start: Start<Self>, world: Arc<World>) -> Result<Self, ActorError> {
        let operator: u16 = start.key().parse()?;
        let name = world.city.operator_name(operator);
        let silence_max = world.idle + GRACE;
        Ok(Self { operator, name, awake: HashMap::new(), silence_max, positions: 0 })
    }

    fn summary_now(&self) -> Summary {
        let mut modes = [0_usize; Mode::ALL.len()];
        let (mut moving, mut late, mut speed_cm_s) = (0_usize, 0, 0_u64);
        for vehicle in self.awake.values() {
            modes[vehicle.mode as usize] += 1;
            late += usize::from(vehicle.delay_s < LATE_S);
            if vehicle.speed_cm_s >= STANDING_CM_S {
                moving += 1;
                speed_cm_s += u64::from(vehicle.speed_cm_s);
            }
        }
        let modes = Mode::ALL.into_iter().zip(modes).filter(|(_, count)| *count > 0).collect();
        Summary {
            operator: self.operator,
            name: self.name.clone(),
            awake: self.awake.len(),
            moving,
            late,
            speed_mps: speed_cm_s as f32 / 100.0 / moving.max(1) as f32,
            positions: self.positions,
            modes,
        }
    }
}

#[actor(name = "map.organization", options = options, derive(Clone))]
impl Organization {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.every(SUMMARY_EVERY, organization_messages::Tick);
        Ok(())
    }

    /// Counts a vehicle.
    pub(crate) async fn seen(&mut self, seen: Seen, ctx: &mut Context<Self>) {
        let Seen { vehicle, mode, speed_cm_s, delay_s, positions } = seen;
        let told_at = ctx.elapsed();
        self.awake.insert(vehicle, Awake { told_at, mode, speed_cm_s, delay_s });
        self.positions += u64::from(positions);
    }

    /// Counts a vehicle no longer.
    pub(crate) async fn asleep(&mut self, vehicle: VehicleId, positions: u32) {
        self.awake.remove(&vehicle);
        self.positions += u64::from(positions);
    }

    /// The numbers now.
    pub(crate) async fn summary(&self) -> Summary {
        self.summary_now()
    }

    async fn tick(&mut self, ctx: &mut Context<Self>) {
        // A vehicle that goes to sleep says so; one that was killed cannot.
        let (now, silence_max) = (ctx.elapsed(), self.silence_max);
        self.awake.retain(|_, vehicle| now.saturating_sub(vehicle.told_at) < silence_max);
        let overview = ctx.node().get::<Overviewer>(OVERVIEW_KEY);
        // The next second brings another one.
        overview.summarized(self.summary_now()).try_tell().ok();
    }
}
