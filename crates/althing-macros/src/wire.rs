//! `Wire` impls: for the messages of an actor that other nodes reach, and for `#[derive(Wire)]`.
//!
//! `encoding` writes them, the same for both; `derive` reads a user's type and `numbers` its
//! `#[wire(…)]`. Each field is encoded by a call whose tokens lie on the field's type, so that a
//! missing `Wire` is reported there.

pub(crate) mod derive;
pub(crate) mod encoding;
mod numbers;
