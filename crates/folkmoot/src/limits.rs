//! What may be done how often: by one user on all devices together, by one address, on one name.
//! Each limit is a setting; a refusal names it and when to try again.

use std::hash::Hash;
use std::net::IpAddr;
use std::time::Instant;

use folkmoot_protocol::rpc::RpcError;

use crate::config::LimitsSection;
use crate::rate_limit::{Rate, RateLimits};
use crate::storage::{DeviceId, UserId};

/// From one network nobody can use up what is allowed for a name: that would keep its owner out. It
/// takes so many.
const NETWORKS_GUESSING: u32 = 5;

/// One limit, with a bucket for each key.
#[derive(Debug)]
pub(crate) struct Limit<K> {
    /// In the plural, as a refusal names it.
    what: &'static str,
    number: u32,
    unit: &'static str,
    buckets: RateLimits<K>,
    /// Time counts from here, by a clock that never steps back: by the wall's, a correction of an
    /// hour would leave empty buckets empty for an hour.
    since: Instant,
}

/// Who tries a password.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Guesser {
    /// Somebody who is signed in, and is asked for it again.
    Device(DeviceId),
    /// A name at an address from which its right password has come before: what others guess there
    /// does not count.
    Familiar(String, IpAddr),
    Stranger(IpAddr),
}

/// All limits of a server.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) messages: Limit<UserId>,
    /// Deletions count too.
    pub(crate) edits: Limit<UserId>,
    pub(crate) reactions: Limit<UserId>,
    pub(crate) typing: Limit<UserId>,
    /// New rooms, and direct conversations asked for.
    pub(crate) rooms: Limit<UserId>,
    pub(crate) invites: Limit<UserId>,
    pub(crate) profile_changes: Limit<UserId>,
    pub(crate) searches: Limit<UserId>,
    /// Files, whatever their size.
    pub(crate) uploads: Limit<UserId>,
    /// Whatever only reads: lists, pages, views, presence.
    pub(crate) questions: Limit<UserId>,
    /// Whatever else changes something: moderation, roles, settings, devices.
    pub(crate) changes: Limit<UserId>,
    /// Read cursors moved.
    pub(crate) cursors: Limit<UserId>,
    /// Channels subscribed to: each may be answered with all that was missed there.
    pub(crate) subscriptions: Limit<UserId>,
    /// Wrong passwords, by address, by name at an address where it is at home, or by the device that
    /// somebody is signed in on.
    pub(crate) log_ins: Limit<Guesser>,
    /// Wrong passwords, by name, from wherever nobody has signed in to it yet.
    pub(crate) guesses: Limit<String>,
    /// New accounts, by address.
    pub(crate) accounts: Limit<IpAddr>,
}

impl<K: Hash + Eq> Limit<K> {
    fn per_minute(what: &'static str, number: u32) -> Self {
        let buckets = RateLimits::new(Rate::per_minute(number));
        Self { what, number, unit: "a minute", buckets, since: Instant::now() }
    }

    /// Counts one more of `key`, or refuses it.
    pub(crate) fn take(&self, key: K) -> Result<(), RpcError> {
        let taken = self.buckets.take(key, self.now_ms());
        taken.map_err(|wait_ms| {
            RpcError::too_often(self.what, u64::from(self.number), self.unit, wait_ms)
        })
    }

    /// Takes back that one was counted: what came of it is not what the limit is for.
    pub(crate) fn give_back(&self, key: &K) {
        self.buckets.give_back(key, self.now_ms());
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Limits {
    pub(crate) fn new(numbers: &LimitsSection) -> Self {
        let messages = Limit {
            what: "messages",
            number: numbers.messages_per_second,
            unit: "a second",
            buckets: RateLimits::new(numbers.message_rate()),
            since: Instant::now(),
        };
        Self {
            messages,
            edits: Limit::per_minute("edits and deletions", numbers.edits_per_minute),
            reactions: Limit::per_minute("reactions", numbers.reactions_per_minute),
            typing: Limit::per_minute("notices of typing", numbers.typing_per_minute),
            rooms: Limit::per_minute("new rooms", numbers.rooms_per_minute),
            invites: Limit::per_minute("invites", numbers.invites_per_minute),
            profile_changes: Limit::per_minute(
                "changes of the profile",
                numbers.profile_changes_per_minute,
            ),
            searches: Limit::per_minute("searches", numbers.searches_per_minute),
            uploads: Limit::per_minute("uploads", numbers.uploads_per_minute),
            questions: Limit::per_minute("questions", numbers.questions_per_minute),
            changes: Limit::per_minute("changes", numbers.changes_per_minute),
            cursors: Limit::per_minute("moves of read cursors", numbers.cursors_per_minute),
            subscriptions: Limit::per_minute("subscriptions", numbers.subscriptions_per_minute),
            log_ins: Limit::per_minute("attempts to sign in", numbers.log_ins_per_minute),
            guesses: Limit::per_minute(
                "attempts to sign in to this account",
                numbers.log_ins_per_minute.saturating_mul(NETWORKS_GUESSING),
            ),
            accounts: Limit::per_minute(
                "new accounts from this address",
                numbers.accounts_per_minute,
            ),
        }
    }
}
