//! How a server finds out that the store is no longer its own.

use super::sql::SqlError;

/// Why a server takes nothing more; what it shows is what it knew then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another server writes to the store.
    #[error("another server has taken the store over, and this one stops")]
    TakenOver,
    /// The store lacks what it had acknowledged. Whoever opens it next begins a new epoch.
    #[error("the store lacks what it had acknowledged, and this server stops: start it again")]
    SetBack,
}

impl Lost {
    /// What an error says of that.
    pub(super) fn of(error: &SqlError) -> Option<Self> {
        match error {
            SqlError::Fenced => Some(Self::TakenOver),
            SqlError::SetBack => Some(Self::SetBack),
            _ => None,
        }
    }
}

impl From<Lost> for SqlError {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::TakenOver => Self::Fenced,
            Lost::SetBack => Self::SetBack,
        }
    }
}
