//! The `#[actor]` attribute of althing: from an `impl` block to an actor, in code that one could
//! write by hand.
//!
//! `arguments` and `attributes` read what is written on the block and on its methods, `model` and
//! `method` decide what each method is, `expand` writes the code. Everything refused is refused at
//! the place that is wrong, before any code is written. Use it as `althing::actor`.

mod arguments;
mod attributes;
mod case;
mod expand;
mod generics;
mod method;
mod model;
mod owned;
mod reserved;
#[cfg(test)]
mod tests;
mod wire;

use proc_macro::TokenStream;

/// Turns an `impl` block into an actor: each `async fn` becomes a message, its handler and a call.
///
/// # Arguments
/// | argument | meaning |
/// |---|---|
/// | `name = "shop.cart"` | the type's name on the wire and in metrics; required, never the Rust path |
/// | `label = "disk=ssd"` | a label of the nodes of a cluster on which its actors live; more than one may be given, and all must hold. They become a part of the name: `shop.cart@disk=ssd` |
/// | `version = 2` | the version of its messages and state; 1 unless given |
/// | `options = path` | a function that returns the type's `ActorOptions` |
/// | `key = RoomId` | a type with `Display` that `node.get` finds the actor by, besides text |
/// | `derive(Clone, Debug)` | derives of all its messages; `#[derive(…)]` on a method is of that message alone |
/// | `wire` | its messages can come from other nodes of a cluster: all their fields and replies have `Wire` |
/// | `durable = saved` | its turns are held until the field's `commit` has made them durable, and it ends once `commit_rest` has: a `Saved` or `Journaled` of `althing-store` |
/// | `crate = path` | where the library is, if not at `::althing` |
///
/// # Methods
/// | written | becomes |
/// |---|---|
/// | `async fn` with `&mut self` | a write: a message and its `Handler` |
/// | `async fn` with `&self` | a read: a message and its `ReadHandler`; reads that wait overlap |
/// | `#[delayed] async fn` with `&mut self` | a message and its `DelayedHandler`; the reply goes through the `ReplyTo` |
/// | `#[event] async fn` with `event: &Published<T>` | the `EventHandler<T>` of the topics it subscribes to; no call |
/// | `async fn started`, `stopping`, `terminated` | the hooks of `Actor`; each may leave out the parameters it does not use |
/// | any other `fn`, an `async fn` without `self`, or one with `#[skip]` | nothing: it stays as it is |
///
/// All of them stay methods of the type, so that handlers can call each other.
///
/// # Parameters
/// The parameter whose type is called `Context` is the actor's context: `&mut Context<Self>`, or
/// `&Context<Self>` in a read. The parameter whose type is called `ReplyTo` is the reply slot of a
/// `#[delayed]` method. Their names and places are free, and both may be left out of the others.
/// Every other parameter is a field of the message, by its own name; messages are owned, so that
/// `&str` is refused and `String` is taken. So are replies.
///
/// # Guards
/// They run before the handler, in this order, whatever the order they are written in, and again
/// when a message leaves the stash:
/// - `#[restrict(path)]` rejects with a reason: `fn(&Self, &Message) -> Result<(), R>`, where `R`
///   is a text or a `Rejection`.
/// - `#[stash_unless(path)]` lets the message wait for `ctx.unstash_all()`: `fn(&Self) -> bool`.
/// - `#[rate_limit(per_second = 10, burst = 20)]` rejects what exceeds the rate; `burst` is
///   `per_second` unless given. Both are a `u32` or a function `fn(&Self) -> u32`, so that a
///   deployment can decide. Only messages that the other two admit count.
///
/// # On the wire
/// With `wire`, every message implements `Wire`, its fields numbered in the order of the
/// parameters, and the actor `Remote`. Without it nothing is generated and nothing is asked of the
/// types. A message is called like its method, or as `#[wire(name = "put")]` on the method says;
/// `#[wire(skip)]` keeps one on its node. Parameters may be added at the end: older nodes skip
/// them, and what an older node did not send reads as zero, empty or `None`.
///
/// # Names
/// The messages of `Cart` stand in the module `cart_messages`, called like their methods in camel
/// case, each as visible as its method; calls are the methods of the trait `CartCalls`, which
/// `ActorRef<Cart>` implements. The trait is `pub` if one of the methods is, and `pub(crate)`
/// otherwise; import it where you call. The block stands in a module, not in a function: the
/// messages look for their types beside it.
///
/// A message of a generic actor carries the parameters that its fields name, with their bounds.
///
/// # Example
/// This block
/// ```ignore
#[doc = include_str!("../tests/expansions/cart.rs")]
/// ```
/// expands to
/// ```ignore
#[doc = include_str!("../tests/expansions/cart.expanded.rs")]
/// ```
#[proc_macro_attribute]
pub fn actor(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(arguments.into(), item.into()).into()
}

/// Encodes a type as a protobuf message, so that it can be a field of messages between nodes.
///
/// A struct is a message; fields are numbered 1, 2, 3 … in their order, or as `#[wire(7)]` says;
/// one without a number follows the one before it. An enum without payloads is a protobuf enum, its
/// variants numbered from 0; the variant 0 is what an absent field reads as. An enum with payloads
/// is a message with one `oneof`, its variants numbered from 1: a variant with one unnamed payload
/// is that payload, any other a message of its fields. Every field needs `Wire` itself.
///
/// To stay compatible, give new fields new numbers, and never use a number again.
///
/// ```ignore
/// #[derive(Wire)]
/// struct Order {
///     item: String,
///     #[wire(4)]
///     pieces: u32,
///     how: Delivery,
/// }
///
/// #[derive(Wire)]
/// enum Delivery {
///     Fetched,
///     Sent(Address),
/// }
/// ```
///
/// `#[wire(crate = path)]` on the type says where the library is, if not at `::althing`.
#[proc_macro_derive(Wire, attributes(wire))]
pub fn derive_wire(item: TokenStream) -> TokenStream {
    wire::derive::derive(item.into()).into()
}
