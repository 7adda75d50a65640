//! Settings of clients that only listen: the transports for them, and the channel that every user
//! is subscribed to.

use serde::Deserialize;

/// Transports on which only the server speaks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Listening {
    pub(crate) uni_websocket: UniSettings,
    pub(crate) uni_http_stream: UniSettings,
    pub(crate) uni_sse: UniSettings,
}

/// Of one such transport.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UniSettings {
    pub(crate) enabled: bool,
}

/// The channel of each user, to which the server subscribes all connections of that user.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PersonalChannel {
    pub(crate) enabled: bool,
    pub(crate) personal_channel_namespace: String,
    /// Whether a new connection of a user ends the others.
    pub(crate) single_connection: bool,
}

impl PersonalChannel {
    /// The channel of a user; `None`: anonymous ones have none, or nobody has.
    pub(crate) fn of(&self, user: &str) -> Option<String> {
        if !self.enabled || user.is_empty() {
            return None;
        }
        Some(match self.personal_channel_namespace.as_str() {
            "" => format!("#{user}"),
            namespace => format!("{namespace}:#{user}"),
        })
    }
}
