//! What travels between nodes and into the store, as bytes: events and acts as the log and the
//! clients' protocol write them.

use althing::wire::{Depth, Wire, WireError, WireField};

use crate::journal::record::{read_event, read_snapshot, write_event, write_snapshot};
use crate::place::{Place, RegionId};
use crate::rules::{Act, Event, Intent, RegionImage};
use crate::wire::Command;

/// Has a type travel as bytes that are written and read elsewhere.
macro_rules! travels {
    ($type:ident, $write:expr, $read:expr) => {
        impl Wire for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                let write: fn(&Self, &mut Vec<u8>) = $write;
                write(self, out);
            }

            fn decode_within(bytes: &[u8], _: Depth) -> Result<Self, WireError> {
                let read: fn(&[u8]) -> Option<Self> = $read;
                read(bytes).ok_or_else(|| WireError::new(concat!("no ", stringify!($type))))
            }
        }

        impl WireField for $type {}
    };
}

travels!(Event, |event, out| write_event(out, event, None), read_event);
travels!(Intent, |intent, out| write_event(out, &intent.happens(), None), |bytes| {
    let Event { deed, player, seq, from, to, score, carry, .. } = read_event(bytes)?;
    Some(Intent { deed, player, seq, from, to, score, carry })
});
travels!(Act, |act, out| Command::Act(*act).write(out), |mut bytes| {
    match Command::take(&mut bytes) {
        Ok(Some(Command::Act(act))) if bytes.is_empty() => Some(act),
        _ => None,
    }
});
travels!(
    Place,
    |place, out| {
        out.extend(place.x().to_le_bytes());
        out.extend(place.y().to_le_bytes());
    },
    |bytes| {
        let [a, b, c, d] = *bytes else { return None };
        Place::new(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]))
    }
);
// The number of the region stands in the name of its actor.
travels!(
    RegionImage,
    |image, out| write_snapshot(out, RegionId::new(0).expect("the first region"), image),
    read_snapshot
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{ActSeq, PlayerId};
    use crate::rules::{Carry, Clue, Deed};

    fn travelled<T: Wire>(value: &T) -> T {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert!(T::decode(&bytes[..bytes.len() - 1]).is_err(), "what is cut off is refused");
        T::decode(&bytes).unwrap()
    }

    #[test]
    fn what_travels_arrives_as_it_was_and_nothing_that_is_cut_off_does() {
        let [from, to] = [Place::new(3, 1_023).unwrap(), Place::new(4, 1_022).unwrap()];
        let carry = Carry::default().with(Clue(7)).unwrap();
        let (deed, player, seq) = (Deed::Move, PlayerId(9), ActSeq(4));
        let intent = Intent { deed, player, seq, from, to, score: 12, carry };
        assert_eq!(travelled(&intent), intent);
        let event = Event { clue: Some(Clue(1)), gain: 3, ..intent.happens() };
        assert_eq!(travelled(&event), event);
        let act = Act { player, seq, deed, x: 4, y: 2 };
        assert_eq!((travelled(&act), travelled(&to)), (act, to));
        let mut image = RegionImage { tide: 2, score: 9, ..RegionImage::default() };
        image.ground.push((5, Clue(1)));
        assert_eq!(travelled(&image), image);
    }
}
