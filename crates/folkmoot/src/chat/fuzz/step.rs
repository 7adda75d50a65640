//! What somebody may try in a room, sensible or not.

use proptest::prelude::*;
use proptest::sample::select;

/// People who take part; the first of them has made the room.
pub(super) const PEOPLE: usize = 5;
const EMOJIS: [&str; 3] = ["+1", "tea", "?"];
/// Numbers of messages that are named: some before the first, some after the last.
const SEQS: u64 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    Member,
    Moderator,
    Owner,
}

/// Users are numbered from 0, messages from 1.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Send {
        by: usize,
        key: Option<u8>,
        body: String,
        reply_to: Option<u64>,
    },
    Edit {
        by: usize,
        seq: u64,
        body: String,
    },
    Delete {
        by: usize,
        seq: u64,
    },
    React {
        by: usize,
        seq: u64,
        emoji: &'static str,
        on: bool,
    },
    Pin {
        by: usize,
        seq: u64,
        on: bool,
    },
    Add {
        by: usize,
        user: usize,
    },
    Leave {
        by: usize,
    },
    Kick {
        by: usize,
        user: usize,
    },
    Ban {
        by: usize,
        user: usize,
        on: bool,
    },
    Mute {
        by: usize,
        user: usize,
        on: bool,
    },
    SetRole {
        by: usize,
        user: usize,
        rank: Rank,
    },
    Rename {
        by: usize,
        name: &'static str,
    },
    Archive {
        by: usize,
        on: bool,
    },
    /// The room leaves memory, and comes back from the store.
    Forget,
}

/// The name of a user's account.
pub(super) fn name(user: usize) -> String {
    format!("user{user}")
}

fn anybody() -> impl Strategy<Value = usize> {
    // Whoever has rights is the most interesting.
    prop_oneof![2 => Just(0), 5 => 0..PEOPLE]
}

fn text() -> impl Strategy<Value = String> {
    let words = select(vec!["hello", "@everyone look", "why", "@user0", "@user1 @user2", "@user9"]);
    (words, 0..3_u8).prop_map(|(words, n)| format!("{words} {n}"))
}

fn message() -> impl Strategy<Value = u64> {
    0..=SEQS
}

pub(super) fn any_step() -> impl Strategy<Value = Step> {
    let pair = || (anybody(), 0..PEOPLE);
    let rank = select(vec![Rank::Member, Rank::Moderator, Rank::Owner]);
    let (on, emoji) = (any::<bool>(), select(EMOJIS.to_vec()));
    prop_oneof![
        6 => (anybody(), prop::option::of(0..3_u8), text(), prop::option::weighted(0.3, message()))
            .prop_map(|(by, key, body, reply_to)| Step::Send { by, key, body, reply_to }),
        2 => (anybody(), message(), text())
            .prop_map(|(by, seq, body)| Step::Edit { by, seq, body }),
        2 => (anybody(), message()).prop_map(|(by, seq)| Step::Delete { by, seq }),
        2 => (anybody(), message(), emoji, on)
            .prop_map(|(by, seq, emoji, on)| Step::React { by, seq, emoji, on }),
        2 => (anybody(), message(), prop::bool::weighted(0.7))
            .prop_map(|(by, seq, on)| Step::Pin { by, seq, on }),
        6 => pair().prop_map(|(by, user)| Step::Add { by, user }),
        1 => anybody().prop_map(|by| Step::Leave { by }),
        1 => pair().prop_map(|(by, user)| Step::Kick { by, user }),
        2 => (pair(), on).prop_map(|((by, user), on)| Step::Ban { by, user, on }),
        2 => (pair(), on).prop_map(|((by, user), on)| Step::Mute { by, user, on }),
        3 => (pair(), rank).prop_map(|((by, user), rank)| Step::SetRole { by, user, rank }),
        1 => (anybody(), select(vec!["Tea", "Cake"]))
            .prop_map(|(by, name)| Step::Rename { by, name }),
        1 => (anybody(), prop::bool::weighted(0.4))
            .prop_map(|(by, on)| Step::Archive { by, on }),
        1 => Just(Step::Forget),
    ]
}
