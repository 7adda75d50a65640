//! Names that nobody else gives: of writers, entries and snapshots.

use std::hash::{BuildHasher, RandomState};

/// Sixteen bytes by chance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(pub(super) [u8; 16]);

impl Name {
    pub(super) fn draw() -> Self {
        // The keys come from the system's randomness and differ for each state.
        let half = || RandomState::new().hash_one("a name of Folkmoot's").to_be_bytes();
        let mut name = [0; 16];
        name[..8].copy_from_slice(&half());
        name[8..].copy_from_slice(&RandomState::new().hash_one(std::process::id()).to_be_bytes());
        Self(name)
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}
