//! Which of the messages that wait runs first.

/// Which of the messages that wait runs first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Before all others, and before the rest of the batch at hand.
    High,
    /// In the order of arrival.
    #[default]
    Normal,
    /// When nothing else waits.
    Low,
}
