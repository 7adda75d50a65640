//! How often one user, or one address, may do what.

use serde::Deserialize;

use crate::rate_limit::Rate;

/// What may be done how often; 0 is no limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsSection {
    pub(crate) messages_per_second: u32,
    pub(super) message_burst: Option<u32>,
    pub(crate) edits_per_minute: u32,
    pub(crate) reactions_per_minute: u32,
    pub(crate) typing_per_minute: u32,
    pub(crate) rooms_per_minute: u32,
    pub(crate) invites_per_minute: u32,
    pub(crate) profile_changes_per_minute: u32,
    pub(crate) searches_per_minute: u32,
    pub(crate) uploads_per_minute: u32,
    pub(crate) questions_per_minute: u32,
    pub(crate) changes_per_minute: u32,
    pub(crate) cursors_per_minute: u32,
    pub(crate) subscriptions_per_minute: u32,
    pub(crate) log_ins_per_minute: u32,
    pub(crate) accounts_per_minute: u32,
}

impl LimitsSection {
    pub(crate) fn message_rate(&self) -> Rate {
        let per_second = self.messages_per_second;
        Rate::per_second(per_second, self.message_burst.unwrap_or(per_second.saturating_mul(3)))
    }
}

impl LimitsSection {
    /// Whether messages are limited to none at all.
    pub(super) fn allows_no_message(&self) -> bool {
        self.messages_per_second > 0 && self.message_burst == Some(0)
    }
}

impl Default for LimitsSection {
    fn default() -> Self {
        // What busy hands do stays far below these; what a script does at every turn does not.
        Self {
            messages_per_second: 10,
            message_burst: None,
            edits_per_minute: 120,
            reactions_per_minute: 240,
            // Clients tell every three seconds, in one room at a time.
            typing_per_minute: 120,
            rooms_per_minute: 30,
            invites_per_minute: 30,
            // Every room one is in hears of it.
            profile_changes_per_minute: 10,
            // A search may have the index commit, and reads a hundred messages.
            searches_per_minute: 60,
            // Six full messages; an image takes a core for a moment.
            uploads_per_minute: 60,
            // Scrolling back through a long history asks a few times a second.
            questions_per_minute: 1_200,
            // Moderation and settings; each is a record on the disk.
            changes_per_minute: 240,
            // A client tells once a second at most how far one has read, on each device.
            cursors_per_minute: 600,
            // Every channel that a connection may have, on a line that breaks every ten seconds.
            subscriptions_per_minute: 12_000,
            // One name or address may try a password ten times a minute: guessing stays hopeless,
            // a person with a new keyboard is not locked out.
            log_ins_per_minute: 10,
            accounts_per_minute: 30,
        }
    }
}
