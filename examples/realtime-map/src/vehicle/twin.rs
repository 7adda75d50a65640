//! What is known about one vehicle, as a value: its last report, its trail, the fences it is in. No
//! actor, no clock.
//!
//! Time is the vehicle's own (`at_ms`) and only moves forward: what arrives late or twice changes
//! nothing.

use std::collections::VecDeque;

use crate::fence::{FenceSet, Fences};
use crate::geo::Place;
use crate::hfp::Report;

/// Points of a trail; with [`STEP_M`] about five kilometres.
pub(crate) const TRAIL_LEN_MAX: usize = 200;
/// A point is kept when the vehicle is this far from the last one, in metres.
const STEP_M: f64 = 25.0;
/// A gap longer than this starts a new trail: the line across it would be an invention.
const TRAIL_GAP_MS: u64 = 30 * 60 * 1_000;

/// A vehicle's digital twin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Twin {
    last: Option<Report>,
    trail: VecDeque<TrailPoint>,
    inside: FenceSet,
    positions: u64,
}

/// Where a vehicle was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrailPoint {
    /// Seconds since 1970.
    pub(crate) at_s: u32,
    /// Where.
    pub(crate) place: Place,
}

/// What a report changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// Nothing: it is not newer than the last one.
    Stale,
    /// The vehicle is at another time, and perhaps elsewhere.
    Moved {
        /// Fences it was in before; those it is in now are `Twin::inside`.
        was_inside: FenceSet,
        /// Where it was before.
        was_at: Option<Place>,
    },
}

impl Twin {
    /// Puts stored parts together again.
    pub(crate) fn restore(
        last: Report,
        trail: VecDeque<TrailPoint>,
        inside: FenceSet,
        positions: u64,
    ) -> Self {
        Self { last: Some(last), trail, inside, positions }
    }

    /// Takes a report in.
    pub(crate) fn apply(&mut self, mut report: Report, fences: &Fences) -> Change {
        let before = self.last;
        if before.is_some_and(|last| report.at_ms <= last.at_ms) {
            return Change::Stale;
        }
        if let Some(last) = before {
            fill_in(&mut report, &last);
        }
        self.extend_trail(&report);
        let was_inside = self.inside;
        self.inside = fences.containing(report.place, was_inside);
        self.last = Some(report);
        self.positions += 1;
        Change::Moved { was_inside, was_at: before.map(|last| last.place) }
    }

    fn extend_trail(&mut self, report: &Report) {
        let point = TrailPoint { at_s: (report.at_ms / 1_000) as u32, place: report.place };
        if let Some(last) = self.last
            && report.at_ms - last.at_ms > TRAIL_GAP_MS
        {
            self.trail.clear();
        }
        if let Some(newest) = self.trail.back()
            && newest.place.distance_m(point.place) < STEP_M
        {
            return;
        }
        if self.trail.len() == TRAIL_LEN_MAX {
            self.trail.pop_front();
        }
        self.trail.push_back(point);
    }

    /// The last report, with what it left out derived from the one before.
    pub(crate) fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Where it was, oldest first.
    pub(crate) fn trail(&self) -> &VecDeque<TrailPoint> {
        &self.trail
    }

    /// Fences it is in.
    pub(crate) fn inside(&self) -> FenceSet {
        self.inside
    }

    /// Reports taken in, over all lives.
    pub(crate) fn positions(&self) -> u64 {
        self.positions
    }
}

/// Derives speed and heading from the way since the last report, where the vehicle does not say.
fn fill_in(report: &mut Report, last: &Report) {
    let metres = last.place.distance_m(report.place);
    let seconds = (report.at_ms - last.at_ms) as f64 / 1_000.0;
    if report.speed_cm_s.is_none() {
        let speed = (metres / seconds * 100.0).round();
        report.speed_cm_s = Some(speed.clamp(0.0, f64::from(u16::MAX)) as u16);
    }
    if report.heading_deg.is_none() {
        // Too short a way has a random direction.
        let heading = if metres < 3.0 {
            last.heading_deg
        } else {
            Some(last.place.heading_to(report.place) as u16 % 360)
        };
        report.heading_deg = heading;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::{Crossing, Fence};
    use crate::hfp::{Line, Mode};

    fn report(at_s: u64, metres_north: f64) -> Report {
        Report {
            at_ms: at_s * 1_000,
            place: Place::from_degrees(60.0 + metres_north / 111_320.0, 24.94).unwrap(),
            speed_cm_s: None,
            heading_deg: None,
            delay_s: 0,
            mode: Mode::Tram,
            direction: 1,
            line: Line::new("4"),
        }
    }

    fn no_fences() -> Fences {
        Fences::new(&[]).unwrap()
    }

    #[test]
    fn late_and_repeated_reports_change_nothing() {
        let mut twin = Twin::default();
        twin.apply(report(10, 0.0), &no_fences());
        let before = twin.clone();
        assert_eq!(twin.apply(report(10, 50.0), &no_fences()), Change::Stale);
        assert_eq!(twin.apply(report(9, 50.0), &no_fences()), Change::Stale);
        assert_eq!(twin, before);
    }

    #[test]
    fn speed_and_heading_are_derived_when_the_vehicle_does_not_say() {
        let mut twin = Twin::default();
        twin.apply(report(10, 0.0), &no_fences());
        twin.apply(report(14, -40.0), &no_fences());
        let last = twin.last().unwrap();
        assert!(last.speed_cm_s.unwrap().abs_diff(1_000) <= 2, "{last:?}");
        assert_eq!(last.heading_deg, Some(180));
        twin.apply(report(15, -41.0), &no_fences());
        assert_eq!(twin.last().unwrap().heading_deg, Some(180));
    }

    #[test]
    fn what_the_vehicle_says_is_kept() {
        let mut twin = Twin::default();
        twin.apply(report(10, 0.0), &no_fences());
        twin.apply(
            Report { speed_cm_s: Some(1), heading_deg: Some(2), ..report(11, 9.0) },
            &no_fences(),
        );
        let last = twin.last().unwrap();
        assert_eq!((last.speed_cm_s, last.heading_deg), (Some(1), Some(2)));
    }

    #[test]
    fn a_trail_has_one_point_per_step_and_an_end() {
        let mut twin = Twin::default();
        for second in 0..3_000 {
            twin.apply(report(second, second as f64 * 5.0), &no_fences());
        }
        assert_eq!(twin.trail().len(), TRAIL_LEN_MAX);
        assert_eq!(twin.positions(), 3_000);
        let steps = twin.trail().iter().zip(twin.trail().iter().skip(1));
        assert!(steps.clone().all(|(a, b)| a.place.distance_m(b.place) >= STEP_M));
        assert!(steps.clone().all(|(a, b)| a.at_s < b.at_s));
    }

    #[test]
    fn a_long_silence_starts_a_new_trail() {
        let mut twin = Twin::default();
        twin.apply(report(0, 0.0), &no_fences());
        twin.apply(report(1, 100.0), &no_fences());
        twin.apply(report(TRAIL_GAP_MS / 1_000 + 2, 9_000.0), &no_fences());
        assert_eq!(twin.trail().len(), 1);
    }

    #[test]
    fn fences_are_entered_and_left() {
        let fence = Fence {
            id: "a".to_owned(),
            name: "A".to_owned(),
            lat: 60.0,
            lon: 24.94,
            radius_m: 100.0,
        };
        let fences = Fences::new(&[fence]).unwrap();
        let mut twin = Twin::default();
        let mut crossed = Vec::new();
        for (second, metres) in [(0, 500.0), (1, 50.0), (2, 60.0), (3, 500.0)] {
            if let Change::Moved { was_inside, .. } = twin.apply(report(second, metres), &fences) {
                crossed
                    .extend(was_inside.crossings_to(twin.inside()).map(|(_, way)| (second, way)));
            }
        }
        assert_eq!(crossed, [(1, Crossing::Enter), (3, Crossing::Exit)]);
    }
}
