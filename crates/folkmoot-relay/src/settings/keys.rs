//! Settings of keys of the server API that may do a part of it.

use serde::Deserialize;

/// One key beside the one that may do everything.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeySettings {
    /// What errors and logs call it.
    pub(crate) name: String,
    pub(crate) key: String,
    /// The methods it may use, as in `/api/<method>`; absent: all that name a channel, and if it is
    /// not limited to namespaces, all others.
    pub(crate) methods: Option<Vec<String>>,
    /// The namespaces whose channels it reaches; an empty name is for channels without one. Absent:
    /// all.
    pub(crate) namespaces: Option<Vec<String>>,
}
