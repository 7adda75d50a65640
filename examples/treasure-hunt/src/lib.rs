//! A treasure hunt for thousands of players on [`althing`]: the server, its load generator and its
//! recount.
//!
//! Data flow: socket → `gateway` → player actor → region actor → `journal` (durable) → back the
//! same way, and as views from the region's topic to every session that watches it. `rules` and
//! `map` are pure; `recount` trusts only the log. `nodes` is the same game on several nodes, whose
//! players and regions are durable actors.

pub mod actors;
pub mod arena;
pub mod chaos;
pub mod gateway;
pub mod journal;
pub mod limits;
pub mod load;
pub mod map;
pub mod nodes;
pub mod place;
pub mod process;
pub mod recount;
pub mod rules;
pub mod serve;
pub mod sight;
pub mod websocket;
pub mod wire;
pub mod world;
