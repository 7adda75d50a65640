//! Of a sample, its like with the most that each field takes: by these a later type that takes less
//! is found out, though it reads the sample itself.
//!
//! Types are not known here, only bytes in protobuf's encoding. What does not read back as it was
//! written is no value of the type, and is left out.

/// The largest numbers of unsigned types, the widest first; as a signed one each is the least.
const NUMBERS: [u64; 4] = [u64::MAX, u32::MAX as u64, u16::MAX as u64, u8::MAX as u64];
/// Bytes that are no text.
const NO_TEXT: &[u8] = &[0xff];

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// For each field of a message the first of its extremes that `is_value`.
pub(super) fn extremes(sample: &[u8], is_value: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let of_fields = of_fields(sample).unwrap_or_default();
    of_fields.into_iter().filter_map(|all| all.into_iter().find(|one| is_value(one))).collect()
}

/// The message with one field at an extreme, for each field, the fields of messages within it, and
/// each of their extremes; `None` if it is no message.
fn of_fields(message: &[u8]) -> Option<Vec<Vec<Vec<u8>>>> {
    let mut fields = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let key = take_varint(&mut rest)?;
        let before = &message[..message.len() - rest.len()];
        let with = |value: &[u8], rest: &[u8]| [before, value, rest].concat();
        match key & 7 {
            VARINT => {
                take_varint(&mut rest)?;
                fields.push(NUMBERS.iter().map(|number| with(&varint(*number), rest)).collect());
            }
            FIXED64 => rest = rest.get(8..)?,
            FIXED32 => rest = rest.get(4..)?,
            BYTES => {
                let len = usize::try_from(take_varint(&mut rest)?).ok()?;
                let (inner, behind) = rest.split_at_checked(len)?;
                rest = behind;
                let nested =
                    |inner: &[u8]| with(&[&varint(inner.len() as u64), inner].concat(), behind);
                fields.push(vec![nested(NO_TEXT)]);
                for inner in of_fields(inner).unwrap_or_default() {
                    fields.push(inner.iter().map(|inner| nested(inner)).collect());
                }
            }
            _ => return None,
        }
    }
    Some(fields)
}

fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
