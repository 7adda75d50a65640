//! The numbers of the store: those that clients see come from the protocol, its own are here.
//!
//! Offsets, seqs and lsns start at 1; 0 means "none yet".

use althing::Wire;
use std::fmt;

pub use folkmoot_protocol::{
    AttachmentId, DeviceId, Offset, PictureId, RoomId, Seq, UnixMillis, UserId,
};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Wire)]
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
    /// A record's number in the log of one data directory; no gaps.
    Lsn
}
number! {
    /// Fences a stream's pipelined appends: a failed one ends the epoch of its stream, see
    /// [`super`].
    WriteEpoch
}
