//! Geofences as values: circles, and which of them a vehicle is in. No actor, no clock.
//!
//! Leaving takes more than entering: a vehicle that stands on the line with a jittery receiver is
//! in, once.

use serde::{Deserialize, Serialize};

use crate::geo::Place;

/// Fences a map may have: one bit each.
pub(crate) const FENCES_MAX: usize = 64;
/// How far outside the line a vehicle must be before it has left, in metres: the error of a
/// receiver among houses.
const LEAVE_MARGIN_M: f64 = 25.0;

/// A circle with a name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Fence {
    /// Key of its actor.
    pub(crate) id: String,
    /// Name for people.
    pub(crate) name: String,
    /// Degrees north of the centre.
    pub(crate) lat: f64,
    /// Degrees east of the centre.
    pub(crate) lon: f64,
    /// Radius in metres.
    pub(crate) radius_m: f64,
}

/// The fences a vehicle is in, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FenceSet(u64);

/// Which way a vehicle crossed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Crossing {
    /// In.
    Enter,
    /// Out.
    Exit,
}

/// All fences of a map, ready for many questions.
#[derive(Clone, Debug)]
pub(crate) struct Fences {
    circles: Vec<Circle>,
}

#[derive(Clone, Debug)]
struct Circle {
    centre: Place,
    radius_m: f64,
}

/// Why a list of fences is refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum FenceError {
    /// Too many.
    #[error("{0} fences are more than {FENCES_MAX}")]
    TooMany(usize),
    /// A circle that is none.
    #[error("fence {0} has no place on the globe or no radius")]
    NoCircle(String),
}

impl Fences {
    /// Prepares a list of fences; the order gives the bits.
    ///
    /// # Errors
    /// Names the fence that is no circle.
    pub(crate) fn new(fences: &[Fence]) -> Result<Self, FenceError> {
        if fences.len() > FENCES_MAX {
            return Err(FenceError::TooMany(fences.len()));
        }
        let circles = fences.iter().map(|fence| {
            let centre = Place::from_degrees(fence.lat, fence.lon);
            match centre {
                Some(centre) if fence.radius_m > 0.0 && fence.radius_m.is_finite() => {
                    Ok(Circle { centre, radius_m: fence.radius_m })
                }
                _ => Err(FenceError::NoCircle(fence.id.clone())),
            }
        });
        Ok(Self { circles: circles.collect::<Result<_, _>>()? })
    }

    /// The fences a vehicle is in now, given where it is and which it was in.
    pub(crate) fn containing(&self, place: Place, before: FenceSet) -> FenceSet {
        let mut now = FenceSet::default();
        for (bit, circle) in self.circles.iter().enumerate() {
            let margin = if before.contains(bit) { LEAVE_MARGIN_M } else { 0.0 };
            if circle.centre.distance_m(place) <= circle.radius_m + margin {
                now.0 |= 1 << bit;
            }
        }
        now
    }
}

impl FenceSet {
    /// Takes stored bits back.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, for storage.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Whether the fence at `bit` is among them.
    pub(crate) fn contains(self, bit: usize) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// The positions of the fences in the list.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..FENCES_MAX).filter(move |bit| self.contains(*bit))
    }

    /// What happened between two sets.
    pub(crate) fn crossings_to(self, now: Self) -> impl Iterator<Item = (usize, Crossing)> {
        let entered = Self(now.0 & !self.0).iter().map(|bit| (bit, Crossing::Enter));
        let left = Self(self.0 & !now.0).iter().map(|bit| (bit, Crossing::Exit));
        left.chain(entered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(id: &str, lat: f64, radius_m: f64) -> Fence {
        Fence { id: id.to_owned(), name: id.to_owned(), lat, lon: 24.94, radius_m }
    }

    fn north_by(metres: f64) -> Place {
        Place::from_degrees(60.0 + metres / 111_320.0, 24.94).unwrap()
    }

    #[test]
    fn a_crossing_is_raised_once_each_way() {
        let fences = Fences::new(&[fence("a", 60.0, 100.0)]).unwrap();
        let mut inside = FenceSet::default();
        let mut seen = Vec::new();
        for metres in [300.0, 90.0, 20.0, 90.0, 110.0, 124.0, 90.0, 140.0, 120.0, 300.0] {
            let now = fences.containing(north_by(metres), inside);
            seen.extend(inside.crossings_to(now).map(|(_, crossing)| (metres as u32, crossing)));
            inside = now;
        }
        assert_eq!(seen, [(90, Crossing::Enter), (140, Crossing::Exit)]);
    }

    #[test]
    fn overlapping_fences_are_told_apart() {
        let fences = Fences::new(&[fence("a", 60.0, 100.0), fence("b", 60.0, 500.0)]).unwrap();
        let inside = fences.containing(north_by(200.0), FenceSet::default());
        assert_eq!(inside.iter().collect::<Vec<_>>(), [1]);
        let crossings: Vec<_> = FenceSet::from_bits(0b01).crossings_to(inside).collect();
        assert_eq!(crossings, [(0, Crossing::Exit), (1, Crossing::Enter)]);
    }

    #[test]
    fn a_bad_list_is_refused_by_name() {
        let nowhere = Fences::new(&[fence("x", 99.0, 1.0)]).unwrap_err();
        assert_eq!(nowhere, FenceError::NoCircle("x".to_owned()));
        let flat = Fences::new(&[fence("y", 60.0, f64::NAN)]).unwrap_err();
        assert_eq!(flat, FenceError::NoCircle("y".to_owned()));
        let many: Vec<_> = (0..65).map(|i| fence(&i.to_string(), 60.0, 1.0)).collect();
        assert_eq!(Fences::new(&many).unwrap_err(), FenceError::TooMany(65));
    }
}
