//! `#[actor]` end to end: what it generates compiles without a warning, and runs as its
//! documentation says.
//!
//! The actors are public so that every lint about public items sees the generated code.

#![deny(warnings, missing_docs, unreachable_pub, clippy::all, clippy::unused_async)]

pub mod cart {
    //! Reads, writes, options and hooks.

    use std::time::Duration;

    use althing::{ActorError, ActorOptions, Context, StopReason, Timestamp, actor};
    use tokio::sync::mpsc::UnboundedSender;

    /// Holds things until they are bought.
    pub struct Cart {
        items: Vec<Item>,
        started_at: Timestamp,
        log: UnboundedSender<String>,
    }

    /// A thing.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Item(pub &'static str);

    /// The cart holds as much as it can.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Full;

    struct Secret;

    fn options() -> ActorOptions {
        ActorOptions::default().deadline(Duration::from_secs(9))
    }

    impl Cart {
        /// An empty cart that tells `log` about its life.
        pub fn new(log: UnboundedSender<String>) -> Self {
            Self { items: Vec::new(), started_at: Timestamp(0), log }
        }
    }

    #[actor(name = "shop.cart", version = 3, options = options, derive(Clone, Debug, PartialEq))]
    impl Cart {
        /// Lists what is in the cart.
        pub async fn items(&self) -> Vec<Item> {
            self.items.clone()
        }

        /// Puts an item into the cart and returns how many it holds.
        pub async fn add(&mut self, item: Item, ctx: &mut Context<Self>) -> Result<usize, Full> {
            assert!(ctx.now() >= self.started_at);
            self.put(item)
        }

        /// Swaps two items, by their places.
        pub async fn swap(&mut self, _ctx: &mut Context<Self>, one: usize, other: usize) {
            self.items.swap(one, other);
        }

        /// An item named like its message.
        pub(crate) async fn item(&self, item: Item) -> Option<usize> {
            self.items.iter().position(|known| *known == item)
        }

        async fn secret(&self) -> Secret {
            Secret
        }

        /// Never a message.
        #[skip]
        pub async fn skipped(&self) -> u8 {
            1
        }

        #[cfg(any())]
        async fn configured_out(&self, missing: DoesNotExist) {}

        async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
            self.started_at = ctx.now();
            self.log.send(format!("started {}", ctx.id()))?;
            Ok(())
        }

        async fn stopping(&mut self, reason: StopReason) {
            let _ = self.log.send(format!("{reason:?}"));
        }

        fn put(&mut self, item: Item) -> Result<usize, Full> {
            if self.items.len() == 2 {
                return Err(Full);
            }
            self.items.push(item);
            Ok(self.items.len())
        }
    }

    /// Whether the private method can be called from here.
    pub async fn has_secret(cart: &althing::ActorRef<Cart>) -> bool {
        cart.secret().await.is_ok()
    }
}

pub mod gate {
    //! Guards, delayed replies, events, watching.

    use althing::{Context, Published, ReplyTo, Terminated, actor};

    /// Lets some through.
    #[derive(Default)]
    pub struct Gate {
        open: bool,
        passed: Vec<u32>,
        waiting: Option<ReplyTo<u32>>,
        heard: u64,
        mourning: Option<ReplyTo<String>>,
    }

    /// What a topic tells the gate.
    pub struct Bell(pub u64);

    #[actor(name = "gate")]
    impl Gate {
        /// Two at once, then one each second; odd ones never; all wait while the gate is closed.
        #[stash_unless(Self::is_open)]
        #[restrict(Self::may_pass)]
        #[rate_limit(per_second = 1, burst = 2)]
        pub async fn pass(&mut self, number: u32) -> u32 {
            self.passed.push(number);
            number
        }

        /// Opens the gate for those who wait.
        pub async fn open(&mut self, ctx: &mut Context<Self>) {
            self.open = true;
            ctx.unstash_all();
        }

        /// What has passed, if the gate is open.
        #[restrict(Self::may_look)]
        pub async fn passed(&self, _ctx: &Context<Self>) -> Vec<u32> {
            self.passed.clone()
        }

        /// Replies when the next `settle` comes.
        #[delayed]
        pub async fn promise(&mut self, reply: ReplyTo<u32>) {
            self.waiting = Some(reply);
        }

        /// Replies as soon as the gate is open.
        #[delayed]
        #[stash_unless(Self::is_open)]
        pub async fn promise_when_open(&mut self, reply: ReplyTo<u32>) {
            reply.send(1);
        }

        /// Settles the promise; returns whether somebody waited.
        pub async fn settle(&mut self, value: u32) -> bool {
            self.waiting.take().is_some_and(|reply| reply.send(value))
        }

        /// Replies with the name of another gate when that has ended.
        #[delayed]
        pub async fn end_of(
            &mut self,
            other: althing::ActorRef<Self>,
            reply: ReplyTo<String>,
            ctx: &mut Context<Self>,
        ) {
            ctx.watch(&other);
            self.mourning = Some(reply);
        }

        /// What it heard from topics; once a second.
        #[rate_limit(per_second = 1)]
        pub async fn heard(&self) -> u64 {
            self.heard
        }

        #[event]
        async fn on_bell(&mut self, event: &Published<Bell>) {
            self.heard += event.payload.0;
        }

        async fn terminated(&mut self, other: Terminated) {
            if let Some(reply) = self.mourning.take() {
                reply.send(other.id.kind().to_string());
            }
        }

        fn is_open(&self) -> bool {
            self.open
        }

        fn may_pass(&self, message: &gate_messages::Pass) -> Result<(), String> {
            if message.number.is_multiple_of(2) { Ok(()) } else { Err("odd".to_owned()) }
        }

        fn may_look(&self, _message: &gate_messages::Passed) -> Result<(), &'static str> {
            if self.open { Ok(()) } else { Err("closed") }
        }
    }
}

pub mod shelf {
    //! A generic actor.

    use althing::actor;

    /// Where rows are kept.
    pub trait Store: Send + Sync + 'static {
        /// A row.
        type Row: Clone + Send + 'static;
        /// Keeps a row and returns how many there are.
        fn keep(&mut self, row: Self::Row) -> usize;
    }

    impl<T: Clone + Send + Sync + 'static> Store for Vec<T> {
        type Row = T;
        fn keep(&mut self, row: T) -> usize {
            self.push(row);
            self.len()
        }
    }

    /// Keeps rows in any store.
    pub struct Shelf<S, const N: usize>(pub S);

    #[actor(name = "shelf")]
    impl<S: Store, const N: usize> Shelf<S, N>
    where
        S::Row: Sync,
    {
        /// Keeps a row.
        pub async fn keep(&mut self, row: S::Row) -> usize {
            self.0.keep(row)
        }

        /// Keeps `N` rows.
        pub async fn keep_all(&mut self, rows: [S::Row; N]) -> usize {
            rows.into_iter().map(|row| self.0.keep(row)).max().unwrap_or(0)
        }

        /// How many rows `keep_all` takes.
        pub async fn width(&self) -> usize {
            N
        }
    }
}

use std::time::Duration;

use althing::{Actor, AskError, Node, Rejection, TopicOptions};
use cart::{Cart, CartCalls, Full, Item, cart_messages};
use gate::{Bell, Gate, GateCalls};
use shelf::{Shelf, ShelfCalls};
use tokio::sync::mpsc::unbounded_channel;

fn restricted(why: &str) -> Rejection {
    Rejection::Restricted(why.to_owned())
}

fn node() -> Node {
    Node::builder("macro").build()
}

#[tokio::test]
async fn calls_reach_their_methods_and_bring_the_reply() {
    let (log, _heard) = unbounded_channel();
    let cart = node().spawn(Cart::new(log));
    assert_eq!(cart.add(Item("tea")).await, Ok(Ok(1)));
    assert_eq!(cart.add(Item("milk")).await, Ok(Ok(2)));
    assert_eq!(cart.add(Item("cake")).await, Ok(Err(Full)));
    cart.swap(0, 1).tell().await.unwrap();
    assert_eq!(cart.items().await, Ok(vec![Item("milk"), Item("tea")]));
    assert_eq!(cart.item(Item("tea")).await, Ok(Some(1)));
    assert!(cart::has_secret(&cart).await);
}

#[tokio::test]
async fn messages_can_be_sent_by_hand() {
    let (log, _heard) = unbounded_channel();
    let cart = node().spawn(Cart::new(log));
    let add = cart.recipient::<cart_messages::Add>();
    assert_eq!(add.ask(cart_messages::Add { item: Item("tea") }).await, Ok(Ok(1)));
    assert_eq!(cart.send(cart_messages::Items).await, Ok(vec![Item("tea")]));
}

#[tokio::test]
async fn hooks_run_with_the_parameters_they_take() {
    let (log, mut heard) = unbounded_channel();
    let cart = node().spawn(Cart::new(log));
    cart.items().await.unwrap();
    cart.stop().await;
    assert_eq!(heard.recv().await, Some(format!("started {}", cart.id())));
    assert_eq!(heard.recv().await.as_deref(), Some("Requested"));
}

#[test]
fn arguments_become_the_type_s_constants() {
    assert_eq!((Cart::NAME, Cart::VERSION), ("shop.cart", 3));
    assert_eq!(Cart::options().deadline.as_secs(), 9);
    assert_eq!((Gate::NAME, Gate::VERSION), ("gate", 1));
    let add = cart_messages::Add { item: Item("tea") };
    assert_eq!(add.clone(), add);
}

#[tokio::test]
async fn skipped_methods_stay_methods() {
    let (log, _heard) = unbounded_channel();
    assert_eq!(Cart::new(log).skipped().await, 1);
}

#[tokio::test(start_paused = true)]
async fn guards_run_in_their_order_before_the_handler() {
    let gate = node().spawn(Gate::default());
    assert_eq!(gate.pass(1).await, Err(AskError::Rejected(gate.id(), restricted("odd"))));
    let stashed = gate.pass(2);
    let opened = async {
        assert_eq!(gate.passed().await, Err(AskError::Rejected(gate.id(), restricted("closed"))));
        gate.open().await
    };
    assert_eq!(tokio::join!(stashed, opened), (Ok(2), Ok(())));
    // Two permits: one for the message that came out of the stash, none for the one that was
    // rejected.
    assert_eq!(gate.pass(4).await, Ok(4));
    let reason = Rejection::RateLimited { retry_after: Duration::from_secs(1) };
    assert_eq!(gate.pass(6).await, Err(AskError::Rejected(gate.id(), reason)));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(gate.pass(6).await, Ok(6));
    assert_eq!(gate.passed().await, Ok(vec![2, 4, 6]));
}

#[tokio::test]
async fn a_delayed_reply_comes_when_it_is_sent() {
    let gate = node().spawn(Gate::default());
    let (promised, settled) = tokio::join!(gate.promise(), gate.settle(7));
    assert_eq!((promised, settled), (Ok(7), Ok(true)));
}

#[tokio::test]
async fn events_reach_the_actor_in_order_with_messages() {
    let node = node();
    let gate = node.spawn(Gate::default());
    let bells = node.topic::<Bell>("bells", TopicOptions::default());
    let _subscription = bells.subscribe(&gate);
    bells.publish(Bell(3)).unwrap();
    assert_eq!(gate.heard().await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn reads_and_delayed_handlers_are_guarded_too() {
    let gate = node().spawn(Gate::default());
    assert_eq!(gate.heard().await, Ok(0));
    assert!(matches!(gate.heard().await, Err(AskError::Rejected(..))));
    let (promised, opened) = tokio::join!(gate.promise_when_open(), gate.open());
    assert_eq!((promised, opened), (Ok(1), Ok(())));
}

#[tokio::test]
async fn the_end_of_a_watched_actor_reaches_the_hook() {
    let node = node();
    let (gate, other) = (node.spawn(Gate::default()), node.spawn(Gate::default()));
    let (ended, ()) = tokio::join!(gate.end_of(other.clone()), other.stop());
    assert_eq!(ended, Ok("gate".to_owned()));
}

#[tokio::test]
async fn generic_actors_have_generic_messages_only_where_needed() {
    let shelf = node().spawn(Shelf::<Vec<u8>, 2>(Vec::new()));
    assert_eq!(shelf.keep(1).await, Ok(1));
    assert_eq!(shelf.keep_all([2, 3]).await, Ok(3));
    assert_eq!(shelf.width().await, Ok(2));
    let _not_generic = shelf::shelf_messages::Width;
}
