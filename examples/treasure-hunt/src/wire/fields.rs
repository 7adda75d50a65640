//! Takes fields off the front of a message, and says what is missing if it ends too early.

/// A message that cannot be read; frames before the bad one were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends inside a frame.
    #[error("the message ends before the field {0}")]
    Ends(&'static str),
    /// No frame begins like that.
    #[error("no frame begins with byte {0}")]
    UnknownKind(u8),
    /// A field has a value it cannot have.
    #[error("the field {0} has a value it cannot have")]
    Value(&'static str),
}

pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Ends(name))?;
        self.0 = rest;
        Ok(*field)
    }

    pub(super) fn u8(&mut self, name: &'static str) -> Result<u8, Malformed> {
        self.take::<1>(name).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, name: &'static str) -> Result<u16, Malformed> {
        self.take(name).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, name: &'static str) -> Result<u32, Malformed> {
        self.take(name).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, name: &'static str) -> Result<u64, Malformed> {
        self.take(name).map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self, len: usize, name: &'static str) -> Result<&'a [u8], Malformed> {
        let (field, rest) = self.0.split_at_checked(len).ok_or(Malformed::Ends(name))?;
        self.0 = rest;
        Ok(field)
    }

    pub(super) fn text(&mut self, len: usize, name: &'static str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(len, name)?).map_err(|_| Malformed::Value(name))
    }
}
