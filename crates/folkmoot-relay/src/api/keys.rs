//! Who may call the server API: keys, and what each has a right to.
//!
//! Made once from the settings. A call is checked twice: for its method, and for each channel that
//! it names.

use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;

use crate::name;
use crate::rules::Rules;
use crate::settings::{KeySettings, SettingsError};

/// The methods, as they are called over HTTP; the second says whether it names its channels.
const METHODS: [(&str, bool); 14] = [
    ("publish", true),
    ("broadcast", true),
    ("subscribe", true),
    ("unsubscribe", true),
    ("presence", true),
    ("presence_stats", true),
    ("history", true),
    ("history_remove", true),
    // It lists those that the key reaches.
    ("channels", true),
    // Each of its commands is checked by itself.
    ("batch", true),
    ("disconnect", false),
    ("refresh", false),
    ("info", false),
    ("rpc", false),
];

/// The keys of one way to call.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<(String, Arc<Rights>)>);

/// What a caller may do.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    name: String,
    methods: Option<Vec<String>>,
    namespaces: Option<Vec<String>>,
}

impl Keys {
    /// `unlimited` may do everything, unless it is empty. `section` is where both are set.
    pub(crate) fn new(
        section: &str,
        unlimited: &str,
        limited: &[KeySettings],
        rules: &Rules,
    ) -> Result<Self, SettingsError> {
        let mut keys = Self::default();
        if !unlimited.is_empty() {
            keys.0.push((unlimited.to_owned(), Arc::default()));
        }
        for key in limited {
            let name = &key.name;
            let wrong = |why: &str| {
                Err(SettingsError::Invalid(format!("{section}.keys: key `{name}`: {why}")))
            };
            if name.is_empty() || key.key.is_empty() {
                return wrong("name and key are required");
            }
            if keys.0.iter().any(|(known, rights)| known == &key.key || &rights.name == name) {
                return wrong("its name or its key is there twice");
            }
            let unknown = |method: &&String| !METHODS.iter().any(|(known, _)| known == method);
            if let Some(method) = key.methods.iter().flatten().find(unknown) {
                return wrong(&format!("no method is called `{method}`"));
            }
            let is_missing = |namespace: &&String| !rules.has(namespace);
            if let Some(namespace) = key.namespaces.iter().flatten().find(is_missing) {
                return wrong(&format!("no namespace is called `{namespace}`"));
            }
            let (methods, namespaces) = (key.methods.clone(), key.namespaces.clone());
            let rights = Rights { name: name.clone(), methods, namespaces };
            keys.0.push((key.key.clone(), Arc::new(rights)));
        }
        Ok(keys)
    }

    /// What the holder of a key may do; `None`: it is no key.
    pub(crate) fn rights(&self, key: &[u8]) -> Option<Arc<Rights>> {
        // All are compared, so that the time says nothing of which is near.
        let mut found = None;
        for (known, rights) in &self.0 {
            if is_same(key, known.as_bytes()) {
                found = Some(rights.clone());
            }
        }
        found
    }
}

impl Rights {
    /// Of rows of the operator's own tables.
    pub(crate) const ALL: Self = Self { name: String::new(), methods: None, namespaces: None };

    /// Whether a method may be called at all.
    pub(crate) fn may(&self, method: &str) -> Result<(), RpcError> {
        let names_channels =
            || METHODS.iter().any(|(known, names_channels)| *known == method && *names_channels);
        let may = match &self.methods {
            Some(methods) => methods.iter().any(|known| known == method),
            None => self.namespaces.is_none() || names_channels(),
        };
        if may { Ok(()) } else { Err(self.refused(&format!("may not call `{method}`"))) }
    }

    /// Whether a channel is within reach.
    pub(crate) fn reach(&self, channel: &str) -> Result<(), RpcError> {
        if self.sees(channel) {
            return Ok(());
        }
        Err(self.refused(&match name::namespace(channel) {
            Some(namespace) => format!("does not reach namespace `{namespace}`"),
            None => "does not reach channels without a namespace".to_owned(),
        }))
    }

    /// Whether a list has a channel.
    pub(crate) fn sees(&self, channel: &str) -> bool {
        let namespace = || name::namespace(channel).unwrap_or_default();
        self.namespaces.as_ref().is_none_or(|known| known.iter().any(|one| one == namespace()))
    }

    fn refused(&self, why: &str) -> RpcError {
        let text = format!("permission denied: the key `{}` {why}", self.name);
        RpcError::new(ErrorCode::PermissionDenied, text)
    }
}

/// Compares in a time that says nothing of where they differ.
pub(crate) fn is_same(key: &[u8], wanted: &[u8]) -> bool {
    let differing = key.iter().zip(wanted).fold(0, |differing, (one, two)| differing | (one ^ two));
    key.len() == wanted.len() && differing == 0
}
