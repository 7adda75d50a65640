//! The number that fences a former owner: who has a higher one is the owner, whoever it was before.

/// A fencing token; each new owner of a thing gets a higher one than the owner before.
///
/// What is done in the name of an epoch is refused once a higher epoch is known. So an owner that
/// was replaced while it was slow, cut off or suspended cannot go on by mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "epoch {}", self.0)
    }
}
