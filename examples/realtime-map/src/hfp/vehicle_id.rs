//! Which vehicle: its operator and the number painted on it, packed into four bytes.

use std::fmt;

const NUMBER_MAX: u32 = 99_999;
const OPERATOR_MAX: u32 = 9_999;

/// A vehicle, unique among all operators. Written `0055/01216`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VehicleId(u32);

/// Why a text names no vehicle.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("a vehicle is named OPERATOR/NUMBER, at most 9999/99999, as in 0055/01216")]
pub(crate) struct VehicleIdError;

impl VehicleId {
    /// A vehicle by its two numbers.
    ///
    /// # Errors
    /// If one of them has too many digits.
    pub(crate) fn new(operator: u32, number: u32) -> Result<Self, VehicleIdError> {
        if operator > OPERATOR_MAX || number > NUMBER_MAX {
            return Err(VehicleIdError);
        }
        Ok(Self(operator * (NUMBER_MAX + 1) + number))
    }

    /// Reads the written form; leading zeros may be missing.
    ///
    /// # Errors
    /// If it is not two numbers with a slash between them.
    pub(crate) fn parse(text: &str) -> Result<Self, VehicleIdError> {
        let (operator, number) = text.split_once('/').ok_or(VehicleIdError)?;
        Self::new(digits(operator)?, digits(number)?)
    }

    /// The packed form, for storage.
    pub(crate) fn packed(self) -> u32 {
        self.0
    }

    /// Takes the packed form back; `None` if it never was one.
    pub(crate) fn from_packed(packed: u32) -> Option<Self> {
        (packed <= OPERATOR_MAX * (NUMBER_MAX + 1) + NUMBER_MAX).then_some(Self(packed))
    }

    /// Who owns the vehicle.
    pub(crate) fn operator(self) -> u16 {
        (self.0 / (NUMBER_MAX + 1)) as u16
    }

    /// The number painted on it.
    pub(crate) fn number(self) -> u32 {
        self.0 % (NUMBER_MAX + 1)
    }

    /// The written form without an allocation; ten ASCII bytes.
    pub(crate) fn key(self) -> VehicleKey {
        let mut bytes = *b"0000/00000";
        let mut fill = |range: std::ops::Range<usize>, mut value: u32| {
            for byte in bytes[range].iter_mut().rev() {
                *byte = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        fill(0..4, u32::from(self.operator()));
        fill(5..10, self.number());
        VehicleKey(bytes)
    }
}

/// The written form of a vehicle, on the stack.
#[derive(Clone, Copy)]
pub(crate) struct VehicleKey([u8; 10]);

impl AsRef<str> for VehicleKey {
    fn as_ref(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits and a slash")
    }
}

impl fmt::Display for VehicleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key().as_ref())
    }
}

fn digits(text: &str) -> Result<u32, VehicleIdError> {
    // `parse` alone would take a plus sign.
    if text.is_empty() || text.len() > 5 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(VehicleIdError);
    }
    text.parse().map_err(|_| VehicleIdError)
}
