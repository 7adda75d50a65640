//! Actors under a simulated clock, scheduler and network.

mod bridge;
mod codecs;
mod crash;
mod faults;
mod moves;
mod probes;
mod standstill;
mod watches;
mod world;
