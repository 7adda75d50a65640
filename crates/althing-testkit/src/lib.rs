//! A seeded world for testing actors.
//!
//! A [`World`] runs a node's tasks on one thread, picks the next one by a seeded choice, and skips
//! time whenever everybody waits. The same seed gives the same schedule, and so the same
//! [`World::trace`]; another seed gives another one.
//!
//! ```
//! use std::time::Duration;
//!
//! use althing::{Actor, Context, Handler, Node};
//! use althing_testkit::{Probe, World};
//!
//! struct Alarm(althing::ActorRef<Probe<String>>);
//! struct Arm;
//! struct Ring;
//!
//! impl Actor for Alarm {
//!     const NAME: &'static str = "example.alarm";
//! }
//!
//! impl Handler<Arm> for Alarm {
//!     type Reply = ();
//!     async fn handle(&mut self, _: Arm, ctx: &mut Context<Self>) {
//!         ctx.after(Duration::from_secs(3600), Ring);
//!     }
//! }
//!
//! impl Handler<Ring> for Alarm {
//!     type Reply = ();
//!     async fn handle(&mut self, _: Ring, _ctx: &mut Context<Self>) {
//!         self.0.send("ring".to_owned()).tell().await.ok();
//!     }
//! }
//!
//! let world = World::new(7);
//! let node = world.node("test").build();
//! world.run(async {
//!     let (probe, mut heard) = Probe::spawn(&node);
//!     let alarm = node.spawn(Alarm(probe));
//!     alarm.send(Arm).await.expect("it runs");
//!     // An hour passes at once, because nobody has anything to do meanwhile.
//!     assert_eq!(heard.next().await, "ring");
//!     assert_eq!(node.elapsed().as_secs(), 3600);
//! });
//! ```

mod bridge;
mod client;
mod clock;
mod core;
mod faults;
mod member;
mod probe;
mod random;
mod report;
#[cfg(feature = "servers")]
pub mod servers;
mod sweep;
mod tasks;
mod trace;
mod words;
mod world;

pub use bridge::Bridge;
pub use client::Client;
pub use faults::AnyMessage;
pub use probe::{Answer, Heard, Probe, Unplaced};
pub use sweep::sweep;
pub use trace::Trace;
pub use world::World;
