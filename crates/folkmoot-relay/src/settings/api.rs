//! Settings of the server API over HTTP, and of how its errors are told.

use serde::Deserialize;

use super::KeySettings;

/// Of the server API.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApiSettings {
    /// Who knows it may do everything; empty: nobody may.
    pub(crate) key: String,
    /// Those who know one of these may do a part. Without any key there is no API.
    pub(crate) keys: Vec<KeySettings>,
    pub(crate) error_mode: ErrorMode,
}

/// How callers of the server API hear of errors, unless they ask for it otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum ErrorMode {
    /// In the answer.
    #[default]
    #[serde(rename = "")]
    Answer,
    /// By the status of the transport.
    #[serde(rename = "transport")]
    Transport,
}
