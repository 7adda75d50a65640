//! What a handler needs of its actor's state.

/// What a handler needs of the actor's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `&mut self`: nothing else runs.
    Exclusive,
    /// `&self`: other reads may be waiting.
    Shared,
}
