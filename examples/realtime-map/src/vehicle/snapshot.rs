//! A twin as bytes, for the store: one version byte, fixed fields, then the trail as differences in
//! variable-length integers.
//!
//! A trail point that is 25 m and 5 s from the last costs about five bytes, so a whole trail fits
//! in one kilobyte. Layouts that were ever released stay readable; a damaged one is an error, never
//! a panic.

use std::collections::VecDeque;

use super::twin::{TRAIL_LEN_MAX, TrailPoint, Twin};
use crate::fence::FenceSet;
use crate::geo::Place;
use crate::hfp::{LINE_LEN_MAX, Line, Mode, Report};

const VERSION: u8 = 1;

/// Why stored bytes are no twin.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum SnapshotError {
    /// Written by a later version.
    #[error("snapshot version {0} is not known")]
    Version(u8),
    /// Not what was written.
    #[error("snapshot is damaged")]
    Damaged,
}

/// Writes a twin; `None` while there is nothing to remember.
pub(crate) fn encode(twin: &Twin) -> Option<Vec<u8>> {
    let last = twin.last()?;
    let mut out = Vec::with_capacity(48 + twin.trail().len() * 5);
    out.push(VERSION);
    out.push(last.mode as u8);
    out.push(last.direction);
    out.extend(last.delay_s.to_le_bytes());
    let (lat, lon) = last.place.micro();
    out.extend(lat.to_le_bytes());
    out.extend(lon.to_le_bytes());
    // One more than the value, so that zero stands for unknown.
    put(&mut out, last.speed_cm_s.map_or(0, |speed| u64::from(speed) + 1));
    put(&mut out, last.heading_deg.map_or(0, |heading| u64::from(heading) + 1));
    put(&mut out, last.at_ms);
    put(&mut out, twin.inside().bits());
    put(&mut out, twin.positions());
    put(&mut out, last.line.as_str().len() as u64);
    out.extend(last.line.as_str().as_bytes());
    put(&mut out, twin.trail().len() as u64);
    let mut before = (0_i64, 0_i64, 0_i64);
    for point in twin.trail() {
        let (lat, lon) = point.place.micro();
        let now = (i64::from(point.at_s), i64::from(lat), i64::from(lon));
        for difference in [now.0 - before.0, now.1 - before.1, now.2 - before.2] {
            put(&mut out, zigzag(difference));
        }
        before = now;
    }
    Some(out)
}

/// Reads a twin.
///
/// # Errors
/// If the bytes were not written by [`encode`] of this or an earlier version.
pub(crate) fn decode(bytes: &[u8]) -> Result<Twin, SnapshotError> {
    match bytes.split_first() {
        Some((&VERSION, body)) => decode_body(body).ok_or(SnapshotError::Damaged),
        Some((&version, _)) => Err(SnapshotError::Version(version)),
        None => Err(SnapshotError::Damaged),
    }
}

fn decode_body(mut rest: &[u8]) -> Option<Twin> {
    let rest = &mut rest;
    let [mode, direction] = take(rest)?;
    let delay_s = i16::from_le_bytes(take(rest)?);
    let place =
        Place::from_micro(i32::from_le_bytes(take(rest)?), i32::from_le_bytes(take(rest)?))?;
    let speed_cm_s = known(get(rest)?)?;
    let heading_deg = known(get(rest)?)?;
    let at_ms = get(rest)?;
    let inside = FenceSet::from_bits(get(rest)?);
    let positions = get(rest)?;
    let line_len = usize::try_from(get(rest)?).ok().filter(|len| *len <= LINE_LEN_MAX)?;
    let (line, after) = rest.split_at_checked(line_len)?;
    *rest = after;
    let line = Line::new(std::str::from_utf8(line).ok()?);
    let trail_len = usize::try_from(get(rest)?).ok().filter(|len| *len <= TRAIL_LEN_MAX)?;
    let mut trail = VecDeque::with_capacity(trail_len);
    let mut before = (0_i64, 0_i64, 0_i64);
    for _ in 0..trail_len {
        before.0 = before.0.checked_add(unzigzag(get(rest)?))?;
        before.1 = before.1.checked_add(unzigzag(get(rest)?))?;
        before.2 = before.2.checked_add(unzigzag(get(rest)?))?;
        let place = Place::from_micro(before.1.try_into().ok()?, before.2.try_into().ok()?)?;
        trail.push_back(TrailPoint { at_s: before.0.try_into().ok()?, place });
    }
    if !rest.is_empty() {
        return None;
    }
    let mode = Mode::from_number(mode);
    let last = Report { at_ms, place, speed_cm_s, heading_deg, delay_s, mode, direction, line };
    Some(Twin::restore(last, trail, inside, positions))
}

fn known(stored: u64) -> Option<Option<u16>> {
    match stored.checked_sub(1) {
        None => Some(None),
        Some(value) => Some(Some(u16::try_from(value).ok()?)),
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let [byte] = take(rest)?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fence::Fences;

    fn twin(reports: u64) -> Twin {
        let fences = Fences::new(&[]).unwrap();
        let mut twin = Twin::default();
        for second in 0..reports {
            let report = Report {
                at_ms: 1_795_269_600_000 + second * 1_000,
                place: Place::from_micro(60_170_000 + second as i32 * 200, 24_940_000).unwrap(),
                speed_cm_s: None,
                heading_deg: (second % 2 == 0).then_some(359),
                delay_s: -61,
                mode: Mode::Ferry,
                direction: 2,
                line: Line::new("19Ä"),
            };
            twin.apply(report, &fences);
        }
        twin
    }

    #[test]
    fn a_twin_survives_being_stored() {
        for reports in [1, 2, 77, 500] {
            let twin = twin(reports);
            let bytes = encode(&twin).unwrap();
            assert!(bytes.len() < 60 + twin.trail().len() * 6, "{} bytes", bytes.len());
            assert_eq!(decode(&bytes), Ok(twin));
        }
    }

    #[test]
    fn nothing_is_stored_of_a_vehicle_never_heard_of() {
        assert_eq!(encode(&Twin::default()), None);
    }

    #[test]
    fn the_first_released_layout_stays_readable() {
        let stored: &[u8] = include_bytes!("../../tests/snapshots/version-1.bin");
        assert_eq!(decode(stored), Ok(twin(3)));
    }

    #[test]
    fn other_versions_and_damage_are_told_apart() {
        assert_eq!(decode(&[2]), Err(SnapshotError::Version(2)));
        assert_eq!(decode(&[]), Err(SnapshotError::Damaged));
        let bytes = encode(&twin(9)).unwrap();
        for len in 1..bytes.len() {
            assert_eq!(decode(&bytes[..len]), Err(SnapshotError::Damaged), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>) {
            let _ = decode(&bytes);
            bytes.insert(0, VERSION);
            let _ = decode(&bytes);
        }
    }
}
