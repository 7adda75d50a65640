//! Why a guard refuses a message, as something that a caller can act on.

use std::fmt;
use std::time::Duration;

use althing_macros::Wire;

/// Why a guard refused a message, which did not run.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(crate = crate)]
#[non_exhaustive]
pub enum Rejection {
    /// Too many messages of its type came. The actor takes the next one after this time: over HTTP,
    /// a 429 with `Retry-After`.
    RateLimited {
        /// How long until there is a permit again, if nobody else takes it; `Duration::MAX` if
        /// there never is.
        retry_after: Duration,
    },
    /// The message is not allowed, for the reason given: over HTTP, a 403. The same message is
    /// refused again until something else changes.
    Restricted(String),
    /// Another reason, of a guard written by hand.
    Other(String),
}

impl Rejection {
    /// What a `#[restrict]` function's error means: a bare text is a restriction, and anything else
    /// what it is.
    pub fn restricted(reason: impl Into<Self>) -> Self {
        match reason.into() {
            Self::Other(text) => Self::Restricted(text),
            typed => typed,
        }
    }
}

impl From<String> for Rejection {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Rejection {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLimited { retry_after } if *retry_after == Duration::MAX => {
                f.write_str("too many messages, and no more are taken")
            }
            Self::RateLimited { retry_after } => {
                write!(f, "too many messages: the next is taken after {retry_after:?}")
            }
            Self::Restricted(text) | Self::Other(text) => f.write_str(text),
        }
    }
}
