//! A reply that somebody waits for, whatever its type.

use crate::error::AskError;

/// A reply that is being waited for.
pub(crate) trait Awaited: Send + Sync {
    /// Whether it has come, or will not.
    fn is_settled(&self) -> bool;
    /// Fails the ask, unless it is settled or its message has begun to run, or has left the node;
    /// returns whether it did.
    fn refuse(&self, why: AskError) -> bool;
}
