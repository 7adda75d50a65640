//! Epochs: in which life of a channel its offsets count. A channel that was forgotten and is made
//! again begins at offset 1, and whoever remembers the old offsets must hear that they mean nothing.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use althing::Wire;

/// One life of a channel; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Wire)]
pub(crate) struct Epoch(u64);

/// Gives epochs, others after a restart. Channels that begin in the same epoch share it: what a
/// channel must not have is an epoch in which it gave offsets before.
#[derive(Debug)]
pub(crate) struct Epochs(u64);

impl Epochs {
    pub(crate) fn new() -> Self {
        // Random keys: two processes begin 2^63 apart on average.
        Self(RandomState::new().build_hasher().finish().max(1))
    }

    /// Those that go on where the ones of another owner ended.
    pub(crate) fn after(number: u64) -> Self {
        Self(number.max(1))
    }

    /// In which a channel begins that is not known.
    pub(crate) fn current(&self) -> Epoch {
        Epoch(self.0)
    }

    /// The offsets of a channel are forgotten: it, or any other, begins in another epoch.
    pub(crate) fn advance(&mut self) {
        self.0 = self.0.wrapping_add(1).max(1);
    }
}

impl Epoch {
    /// As it is kept on disk.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// One that was kept on disk.
    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Whether a client means this one.
    pub(crate) fn is(self, text: &str) -> bool {
        self.to_string() == text
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", self.0)
    }
}
