//! The vehicle actor: a twin with an address. It publishes where the vehicle is, tells geofences
//! and the organisation, and sleeps when the vehicle is silent, leaving its state in the store.
//!
//! Everything it decides is in `twin`; here are only the effects. A vehicle that was asked for but
//! never heard of is not kept: it goes back to sleep without a trace.

mod snapshot;
mod twin;

use std::sync::Arc;
use std::time::Duration;

use althing::{
    ActorError, ActorKey, ActorOptions, ActorRef, Context, Start, StopReason, Topic, actor,
};

use snapshot::{decode, encode};
use twin::Change;
pub(crate) use twin::Twin;

use crate::fence::FenceSet;
use crate::geo::{Cell, Place};
use crate::geofence::{Geofence, GeofenceCalls, Visit};
use crate::hfp::{Report, VehicleId};
use crate::organization::{Organization, OrganizationCalls, Seen};
use crate::world::World;

/// Reports that may wait for one vehicle; at one a second that is half a minute of delay, more is
/// useless.
const MAILBOX_LEN_MAX: u32 = 32;
/// A vehicle that moves is stored this often, so that a killed process forgets at most this much of
/// it.
pub(crate) const SAVE_EVERY: Duration = Duration::from_secs(30);
/// How often the organisation hears of a vehicle.
const TELL_ORGANIZATION_EVERY: Duration = Duration::from_secs(1);

/// Where a vehicle is, as viewports get it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    /// Which vehicle.
    pub(crate) id: VehicleId,
    /// Its last report.
    pub(crate) report: Report,
    /// False when it goes to sleep: maps take it off.
    pub(crate) awake: bool,
}

/// One vehicle.
pub(crate) struct Vehicle {
    id: VehicleId,
    world: Arc<World>,
    twin: Twin,
    cell: Option<(Cell, Topic<Sighting>)>,
    organization: Option<ActorRef<Organization>>,
    /// Positions the organisation has not heard of.
    untold: u32,
    told_at: Duration,
    saved_at: Duration,
}

/// Mailbox and idle time of vehicles.
pub(crate) fn options(idle: Duration) -> ActorOptions {
    ActorOptions::default()
        .mailbox(althing::MailboxKind::Bounded(MAILBOX_LEN_MAX))
        .passivate_after(idle)
}

/// By hand, because it is written on the stack: every report looks its vehicle up.
impl ActorKey<Vehicle> for VehicleId {
    fn with_text<R>(&self, look: impl FnOnce(&str) -> R) -> R {
        look(self.key().as_ref())
    }
}

impl Vehicle {
    /// Wakes a vehicle: with what the store remembers, or new.
    ///
    /// # Errors
    /// If the name is not a vehicle's or the store cannot be read.
    pub(crate) async fn wake(start: Start<Self>, world: Arc<World>) -> Result<Self, ActorError> {
        let id = VehicleId::parse(start.key())?;
        let twin = if world.store.knows(id) {
            let stored = world.store.load(id).await?;
            stored.and_then(|bytes| restore(id, &bytes)).unwrap_or_default()
        } else {
            Twin::default()
        };
        let node = start.node();
        let now = node.elapsed();
        Ok(Self {
            id,
            world,
            twin,
            cell: None,
            organization: None,
            untold: 0,
            told_at: now.saturating_sub(TELL_ORGANIZATION_EVERY),
            saved_at: now,
        })
    }

    fn sighting(&self, awake: bool) -> Option<Sighting> {
        self.twin.last().map(|report| Sighting { id: self.id, report: *report, awake })
    }

    /// Publishes where the vehicle is, and once more where it was if it left that cell, so that
    /// maps there see it go.
    fn publish(&mut self, was_at: Option<Place>, ctx: &Context<Self>) {
        let Some(sighting) = self.sighting(true) else { return };
        let now = sighting.report.place.cell();
        if self.cell.as_ref().is_none_or(|(cell, _)| *cell != now) {
            if let (Some((_, left)), Some(_)) = (&self.cell, was_at) {
                left.publish(sighting).expect("nobody owns the topic");
            }
            self.cell = Some((now, self.world.cell_topic(&ctx.node(), now)));
        }
        if let Some((_, topic)) = &self.cell {
            topic.publish(sighting).expect("nobody owns the topic");
        }
    }

    async fn tell_geofences(&self, was_inside: FenceSet, ctx: &Context<Self>) {
        let Some(last) = self.twin.last() else { return };
        for (bit, crossing) in was_inside.crossings_to(self.twin.inside()) {
            let visit = Visit { vehicle: self.id, line: last.line, at_ms: last.at_ms, crossing };
            if self.fence(bit, ctx).crossed(visit).tell().await.is_err() {
                self.world.counters.crossings_lost.add(1);
            }
        }
    }

    /// Tells the organisation of the positions since last time, at most once a second.
    async fn tell_organization(&mut self, ctx: &Context<Self>) {
        let Some(last) = self.twin.last() else { return };
        self.untold += 1;
        let now = ctx.elapsed();
        if now.saturating_sub(self.told_at) < TELL_ORGANIZATION_EVERY {
            return;
        }
        let organization = self
            .organization
            .get_or_insert_with(|| ctx.node().get::<Organization>(self.id.operator().to_string()));
        let seen = Seen {
            vehicle: self.id,
            mode: last.mode,
            speed_cm_s: last.speed_cm_s.unwrap_or(0),
            delay_s: last.delay_s,
            positions: self.untold,
        };
        if organization.seen(seen).tell().await.is_ok() {
            self.untold = 0;
        }
        self.told_at = now;
    }

    /// Tells the fences it is in, so that they count it and go on counting it.
    async fn confirm_to_geofences(&self, ctx: &Context<Self>) {
        for bit in self.fences_inside() {
            // A fence that does not hear it counts one vehicle too few until the next time.
            self.fence(bit, ctx).present(self.id).tell().await.ok();
        }
    }

    /// The fences it is in that the city still has; a snapshot may be older than the city's file.
    fn fences_inside(&self) -> impl Iterator<Item = usize> + use<> {
        let fences = self.world.city.fences.len();
        self.twin.inside().iter().filter(move |bit| *bit < fences)
    }

    async fn say_good_night(&self, ctx: &Context<Self>) {
        if let (Some(sighting), Some((_, topic))) = (self.sighting(false), &self.cell) {
            topic.publish(sighting).expect("nobody owns the topic");
        }
        // Those who do not hear it forget the vehicle by themselves.
        if let Some(organization) = &self.organization {
            organization.asleep(self.id, self.untold).tell().await.ok();
        }
        for bit in self.fences_inside() {
            self.fence(bit, ctx).absent(self.id).tell().await.ok();
        }
    }

    /// Stores a moving vehicle now and then; a full queue means another time.
    async fn save_now_and_then(&mut self, ctx: &Context<Self>) {
        let now = ctx.elapsed();
        if now.saturating_sub(self.saved_at) < SAVE_EVERY {
            return;
        }
        self.confirm_to_geofences(ctx).await;
        if let Some(bytes) = encode(&self.twin)
            && self.world.store.save_soon(self.id, bytes)
        {
            self.saved_at = now;
        }
    }

    fn fence(&self, bit: usize, ctx: &Context<Self>) -> ActorRef<Geofence> {
        ctx.node().get::<Geofence>(&self.world.city.fences[bit].id)
    }
}

#[actor(name = "map.vehicle")]
impl Vehicle {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.confirm_to_geofences(ctx).await;
        Ok(())
    }

    /// Takes a position in.
    pub(crate) async fn report(&mut self, report: Report, ctx: &mut Context<Self>) {
        match self.twin.apply(report, &self.world.fences) {
            Change::Stale => self.world.counters.stale.add(1),
            Change::Moved { was_inside, was_at } => {
                self.publish(was_at, ctx);
                self.tell_geofences(was_inside, ctx).await;
                self.tell_organization(ctx).await;
                self.save_now_and_then(ctx).await;
            }
        }
    }

    /// The last position; nothing of a vehicle never heard of.
    pub(crate) async fn position(&mut self, ctx: &mut Context<Self>) -> Option<Report> {
        if self.twin.last().is_none() {
            ctx.passivate();
        }
        self.twin.last().copied()
    }

    /// Everything that is remembered.
    pub(crate) async fn twin(&mut self, ctx: &mut Context<Self>) -> Option<Twin> {
        self.twin.last().copied().map(|_| self.twin.clone()).or_else(|| {
            ctx.passivate();
            None
        })
    }

    async fn stopping(&mut self, ctx: &mut Context<Self>, reason: StopReason) {
        // A node that shuts down has nobody left to tell, and telling would wake them again.
        if reason != StopReason::NodeShutdown {
            self.say_good_night(ctx).await;
        }
        let Some(bytes) = encode(&self.twin) else { return };
        if let Err(error) = self.world.store.save(self.id, bytes).await {
            tracing::error!(id = %self.id, %error, ?reason, "vehicle sleeps without its state");
            self.world.counters.saves_failed.add(1);
        }
    }
}

fn restore(id: VehicleId, bytes: &[u8]) -> Option<Twin> {
    decode(bytes)
        // Better a vehicle without a past than one that cannot be shown at all.
        .inspect_err(|error| tracing::warn!(%id, %error, "starts without its past"))
        .ok()
}
