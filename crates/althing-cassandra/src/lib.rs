//! How Althing's crates connect to Apache Cassandra or ScyllaDB: the address of a keyspace, what
//! every session asks for, and what an error of the driver says about what was written.
//!
//! All of them agree by lightweight transactions and read what a majority has: `SERIAL` and
//! `QUORUM`, over all data centres, because a majority of one of them fences nobody in another. In
//! one data centre that is what `LOCAL_SERIAL` and `LOCAL_QUORUM` would be.

mod address;
mod answer;
mod session;
mod verdict;

pub use self::address::{Address, AddressError, is_keyspace};
pub use self::answer::{Misread, is_applied};
pub use self::session::{profile, session};
pub use self::verdict::Verdict;
