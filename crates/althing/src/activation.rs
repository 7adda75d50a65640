//! One actor while it is in memory: who runs it, what its handlers can do, how it fails and how its
//! life ends.

pub(crate) mod attach;
pub(crate) mod body;
pub(crate) mod commits;
pub(crate) mod context;
pub(crate) mod current;
pub(crate) mod ending;
pub(crate) mod failure;
pub(crate) mod fault;
pub(crate) mod guard;
pub(crate) mod passivation;
pub(crate) mod rate;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stopped;
pub(crate) mod supervision;
pub(crate) mod system;
pub(crate) mod turn;
pub(crate) mod waits;
