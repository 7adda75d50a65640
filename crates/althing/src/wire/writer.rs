//! Appends protobuf's keys, numbers and lengths to bytes.
//!
//! A message's length stands before it and is known after it: one byte is kept free for it, which
//! suffices for most, and a longer length moves the message back.

/// How a value is written, as the key before it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

pub(super) fn put_key(number: u32, form: Form, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | form as u64, out);
}

pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: u64) -> u8 {
    u8::try_from(value & 0x7f).expect("seven bits")
}

pub(super) fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_key(number, Form::Bytes, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends what `write` appends as the field `number`, with its length before it.
pub fn put_nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    put_key(number, Form::Bytes, out);
    out.push(0);
    let start = out.len();
    write(out);
    let len = out.len() - start;
    if let Some(short) = u8::try_from(len).ok().filter(|len| *len < 0x80) {
        out[start - 1] = short;
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(len as u64, &mut prefix);
    out.splice(start - 1..start, prefix);
}
