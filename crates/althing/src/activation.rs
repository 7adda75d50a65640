//! One actor while it is in memory: who runs it, what its handlers can do, how it fails and how its
//! life ends.

pub(crate) mod attach;
pub(crate) mod body;
pub(crate) mod commit;
pub(crate) mod context;
pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod edge;
pub(crate) mod ending;
pub(crate) mod fault;
pub(crate) mod guard;
pub(crate) mod message;
pub(crate) mod packed;
pub(crate) mod passivation;
pub(crate) mod pledge;
pub(crate) mod polling;
pub(crate) mod rate;
pub(crate) mod run;
pub(crate) mod stopped;
pub(crate) mod stopping;
pub(crate) mod supervision;
pub(crate) mod target;
pub(crate) mod tick;
pub(crate) mod traced;
pub(crate) mod turn;
pub(crate) mod waits;
