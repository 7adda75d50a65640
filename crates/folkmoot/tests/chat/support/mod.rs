//! A server on a directory of its own, and clients that speak the protocol.

mod client;
mod http;
mod scratch;
mod server;
mod tea;

pub(crate) use client::{Client, Failure};
pub(crate) use http::{Answer, Bytes, exchange, request};
pub(crate) use scratch::{Scratch, keeps};
pub(crate) use server::{Account, PATIENT, Server};
pub(crate) use tea::Tea;
