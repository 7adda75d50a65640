//! The numbers that name things in the store, each a type of its own.
//!
//! SQLite keeps 64-bit signed integers; ids round-trip through the same bits, so a listing
//! "after this id" follows the signed order. Offsets, seqs and lsns start at 1; 0 means "none yet".

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The number that follows this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A person with an account.
    UserId
}
number! {
    /// A room or a direct conversation.
    RoomId
}
number! {
    /// One signed-in device of a user.
    DeviceId
}
number! {
    /// A position in a stream of events, of a room or of a user; no gaps.
    Offset
}
number! {
    /// A message's number in its room; no gaps.
    Seq
}
number! {
    /// A record's number in the log of one data directory; no gaps.
    Lsn
}
number! {
    /// Milliseconds since 1970 in UTC.
    TimeMs
}
number! {
    /// Fences a writer's pipelined appends: a failed one ends the epoch, see [`super`].
    WriteEpoch
}
