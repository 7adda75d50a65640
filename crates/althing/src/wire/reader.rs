//! Reads the fields of a message, one after the other.
//!
//! Every length is checked against the bytes that are there, before anything is made of it. Groups,
//! which proto3 does not have, are refused.

use super::WireError;

/// Messages that may be nested in each other. Deeper ones are refused, so that no input exhausts
/// the stack.
pub const DEPTH_MAX: u8 = 32;

/// How many messages are around the one being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth(u8);

impl Depth {
    /// Nothing is around it.
    pub const OUTERMOST: Self = Self(0);

    /// One message further in.
    ///
    /// # Errors
    /// There are `DEPTH_MAX` around already.
    pub fn deeper(self) -> Result<Self, WireError> {
        if self.0 >= DEPTH_MAX {
            return Err(WireError::new("more than 32 messages nested in each other"));
        }
        Ok(Self(self.0 + 1))
    }
}

/// The fields of one message, in the order in which they were written.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    depth: Depth,
}

/// One field: its number and what is written there.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    number: u32,
    raw: Raw<'a>,
    depth: Depth,
}

/// The four ways in which protobuf writes a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> Fields<'a> {
    /// The fields of a message that stands `depth` deep.
    pub fn new(bytes: &'a [u8], depth: Depth) -> Self {
        Self { rest: bytes, depth }
    }

    /// The next field; `None` at the end.
    ///
    /// # Errors
    /// The bytes are no message.
    pub fn next_field(&mut self) -> Result<Option<Value<'a>>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = take_varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number = number.ok_or_else(|| WireError::new("a field number out of range"))?;
        let raw = match key & 7 {
            0 => Raw::Varint(take_varint(&mut self.rest)?),
            1 => Raw::Fixed64(u64::from_le_bytes(take_array(&mut self.rest)?)),
            2 => Raw::Bytes(take_bytes(&mut self.rest)?),
            5 => Raw::Fixed32(u32::from_le_bytes(take_array(&mut self.rest)?)),
            other => return Err(WireError::new(format!("no field has the wire type {other}"))),
        };
        Ok(Some(Value { number, raw, depth: self.depth }))
    }
}

impl<'a> Value<'a> {
    /// The field's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What is written there, if it has a length.
    ///
    /// # Errors
    /// It is a number.
    pub fn bytes(&self) -> Result<&'a [u8], WireError> {
        match self.raw {
            Raw::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::new("a number where text, bytes or a message belongs")),
        }
    }

    /// The message written there, and how deep it stands.
    ///
    /// # Errors
    /// It is a number, or nested too deeply.
    pub fn nested(&self) -> Result<(&'a [u8], Depth), WireError> {
        Ok((self.bytes()?, self.depth.deeper()?))
    }

    pub(super) fn raw(&self) -> Raw<'a> {
        self.raw
    }
}

/// # Errors
/// It ends too early, or has more bits than 64.
pub(super) fn take_varint(rest: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or_else(truncated)?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(WireError::new("a number of more than 64 bits"))
}

pub(super) fn take_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], WireError> {
    let (array, after) = rest.split_first_chunk::<N>().ok_or_else(truncated)?;
    *rest = after;
    Ok(*array)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], WireError> {
    let len = usize::try_from(take_varint(rest)?).ok();
    let (bytes, after) = len.and_then(|len| rest.split_at_checked(len)).ok_or_else(truncated)?;
    *rest = after;
    Ok(bytes)
}

fn truncated() -> WireError {
    WireError::new("the bytes end too early")
}
