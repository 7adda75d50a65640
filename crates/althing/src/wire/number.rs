//! Numbers: varints, zigzag, floats, and the two kinds of time. Lists of them are packed; a list of
//! `u8` is bytes.

use std::time::Duration;

use super::reader::{Raw, take_array, take_varint};
use super::writer::{Form, put_bytes, put_key, put_nested, put_varint};
use super::{Depth, Value, WireError, WireField, alone};
use crate::node::timestamp::Timestamp;

/// A number as up to 64 bits.
trait Number: Copy {
    const FORM: Form;
    fn into_raw(self) -> u64;
    fn of_raw(bits: u64) -> Result<Self, WireError>;
}

fn put_bits<N: Number>(number: N, out: &mut Vec<u8>) {
    let bits = number.into_raw();
    match N::FORM {
        Form::Varint => put_varint(bits, out),
        Form::Fixed64 => out.extend_from_slice(&bits.to_le_bytes()),
        Form::Fixed32 => out.extend_from_slice(&bits.to_le_bytes()[..4]),
        Form::Bytes => unreachable!("no number has this form"),
    }
}

fn put_single<N: Number>(value: N, number: u32, out: &mut Vec<u8>) {
    put_key(number, N::FORM, out);
    put_bits(value, out);
}

fn read_single<N: Number>(value: Value<'_>) -> Result<N, WireError> {
    N::of_raw(match (N::FORM, value.raw()) {
        (Form::Varint, Raw::Varint(bits)) | (Form::Fixed64, Raw::Fixed64(bits)) => bits,
        (Form::Fixed32, Raw::Fixed32(bits)) => u64::from(bits),
        _ => return Err(WireError::new("another type than this number's")),
    })
}

fn put_packed<N: Number>(items: &[N], number: u32, out: &mut Vec<u8>) {
    if !items.is_empty() {
        put_nested(number, out, |out| items.iter().for_each(|item| put_bits(*item, out)));
    }
}

/// Reads elements that are packed, or one that is not: writers may do either.
fn read_packed<N: Number>(items: &mut Vec<N>, value: Value<'_>) -> Result<(), WireError> {
    let Raw::Bytes(mut rest) = value.raw() else {
        items.push(read_single(value)?);
        return Ok(());
    };
    while !rest.is_empty() {
        items.push(N::of_raw(match N::FORM {
            Form::Varint => take_varint(&mut rest)?,
            Form::Fixed64 => u64::from_le_bytes(take_array(&mut rest)?),
            Form::Fixed32 => u64::from(u32::from_le_bytes(take_array(&mut rest)?)),
            Form::Bytes => unreachable!("no number has this form"),
        })?);
    }
    Ok(())
}

fn out_of_range() -> WireError {
    WireError::new("a number out of its type's range")
}

/// What all numbers do alike, beside the form of a list.
macro_rules! field_of_number {
    ($type:ty, { $($list:tt)* }) => {
        alone!([] $type);

        impl WireField for $type {
            fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
                if self.into_raw() != 0 {
                    put_single(*self, number, out);
                }
            }

            fn encode_single(&self, number: u32, out: &mut Vec<u8>) {
                put_single(*self, number, out);
            }

            fn decode_single(value: Value<'_>) -> Result<Self, WireError> {
                read_single(value)
            }

            fn absent(_: Depth) -> Result<Self, WireError> {
                Self::of_raw(0)
            }

            $($list)*
        }
    };
}

macro_rules! packed {
    ($type:ty) => {
        field_of_number!($type, {
            fn encode_repeated(items: &[Self], number: u32, out: &mut Vec<u8>) {
                put_packed(items, number, out);
            }

            fn merge_repeated(items: &mut Vec<Self>, value: Value<'_>) -> Result<(), WireError> {
                read_packed(items, value)
            }
        });
    };
}

macro_rules! number {
    ($type:ty, $form:ident, $into:expr, $from:expr) => {
        impl Number for $type {
            const FORM: Form = Form::$form;

            fn into_raw(self) -> u64 {
                let into: fn(Self) -> u64 = $into;
                into(self)
            }

            fn of_raw(bits: u64) -> Result<Self, WireError> {
                let from: fn(u64) -> Result<Self, WireError> = $from;
                from(bits)
            }
        }
    };
}

macro_rules! unsigned {
    ($($type:ty)*) => {$(
        number!($type, Varint, |value| value as u64, |bits| bits.try_into().map_err(|_| out_of_range()));
    )*};
}

macro_rules! signed {
    ($($type:ty)*) => {$(
        number!(
            $type,
            Varint,
            |value| zigzag(value as i64),
            |bits| unzigzag(bits).try_into().map_err(|_| out_of_range())
        );
    )*};
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unzigzag(bits: u64) -> i64 {
    (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed()
}

unsigned!(u8 u16 u32 u64 usize);
signed!(i8 i16 i32 i64 isize);
number!(bool, Varint, u64::from, |bits| Ok(bits != 0));
number!(f64, Fixed64, f64::to_bits, |bits| Ok(f64::from_bits(bits)));
number!(f32, Fixed32, |value| u64::from(value.to_bits()), |bits| {
    u32::try_from(bits).map(f32::from_bits).map_err(|_| out_of_range())
});
number!(Duration, Varint, |value| u64::try_from(value.as_nanos()).unwrap_or(u64::MAX), |bits| Ok(
    Duration::from_nanos(bits)
));
number!(Timestamp, Varint, |value| value.0, |bits| Ok(Timestamp(bits)));

packed!(u16);
packed!(u32);
packed!(u64);
packed!(usize);
packed!(i8);
packed!(i16);
packed!(i32);
packed!(i64);
packed!(isize);
packed!(bool);
packed!(f32);
packed!(f64);
packed!(Duration);
packed!(Timestamp);
field_of_number!(u8, {
    fn encode_repeated(items: &[Self], number: u32, out: &mut Vec<u8>) {
        if !items.is_empty() {
            put_bytes(number, items, out);
        }
    }

    fn merge_repeated(items: &mut Vec<Self>, value: Value<'_>) -> Result<(), WireError> {
        *items = value.bytes()?.to_vec();
        Ok(())
    }

    fn encode_list(items: &[Self], number: u32, out: &mut Vec<u8>) {
        put_bytes(number, items, out);
    }

    fn decode_list(value: Value<'_>) -> Result<Vec<Self>, WireError> {
        Ok(value.bytes()?.to_vec())
    }
});
