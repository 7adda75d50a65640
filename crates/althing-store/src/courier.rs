//! Delivers what durable turns have left: the outbox and the reminders of all actors of a store.
//!
//! A delivery is sent once it is written and due, to its actor wherever that lives, until the actor
//! has answered; only then the store forgets it. So it comes at least once, also after a crash, and
//! the id of its request makes that once. Each node delivers for the actors that live on it; a
//! delivery may be sent twice while an actor moves. Before the first letter of a life is sent, what
//! earlier ones have left elsewhere is read and goes first.
//!
//! Of what is due later only the next minutes are in memory.

mod agenda;
mod arrivals;
mod carrier;
mod cron;
mod inbox;
mod reading;
mod sending;
mod set_aside;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use althing::{ActorId, Epoch, Node, Timestamp};
use parking_lot::Mutex;

use self::carrier::Carrier;
pub(crate) use self::cron::next_after;
use self::inbox::Inbox;
use self::set_aside::SetAside;
use crate::delivery::{Delivery, Mark, Posting, Settled};
use crate::post::reminder_name;
use crate::store::{Answer, Event, Kept, Store, Turn};

/// A store whose deliveries are delivered: it passes everything on to another one, and sees what
/// turns leave.
///
/// ```
/// use std::sync::Arc;
///
/// use althing::{ActorError, Context, Node, Start, Wire, actor};
/// use althing_store::{Courier, Memory, RequestId, Saved, State, Store};
///
/// #[derive(Default, Wire)]
/// struct Balance {
///     cents: u64,
/// }
///
/// impl State for Balance {}
///
/// struct Account {
///     saved: Saved<Balance>,
/// }
///
/// #[actor(name = "courier.account", wire, durable = saved)]
/// impl Account {
///     async fn put(&mut self, request: RequestId, cents: u64) -> u64 {
///         self.saved.once(&request, |balance| {
///             balance.cents += cents;
///             balance.cents
///         })
///     }
///
///     async fn balance(&self) -> u64 {
///         self.saved.cents
///     }
///
///     async fn give(&mut self, cents: u64, to: String, ctx: &mut Context<Self>) -> bool {
///         let Some(rest) = self.saved.cents.checked_sub(cents) else { return false };
///         self.saved.cents = rest;
///         let other = ctx.node().get::<Account>(to);
///         self.saved.post().tell(|request| other.put(request, cents)).is_ok()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let courier = Arc::new(Courier::new(Arc::new(Memory::new())));
/// let store: Arc<dyn Store> = courier.clone();
/// let open = move |start: Start<Account>| {
///     let store = store.clone();
///     async move { Ok::<_, ActorError>(Account { saved: Saved::load(store, &start).await? }) }
/// };
/// let node = Node::builder("bank").actor(open).build();
/// courier.start(&node);
/// let (alice, bob) = (node.get::<Account>("alice"), node.get::<Account>("bob"));
/// alice.put(RequestId::new("paid in"), 10).await?;
/// assert!(alice.give(3, "bob".to_owned()).await?);
/// // Whatever fails from here on, bob gets it, and gets it once.
/// while bob.balance().await? < 3 {
///     tokio::task::yield_now().await;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Courier {
    store: Arc<dyn Store>,
    options: CourierOptions,
    inboxes: Arc<Mutex<Vec<Arc<Inbox>>>>,
    set_aside: Arc<AtomicU64>,
}

/// How a [`Courier`] works, on each node on which it is started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CourierOptions {
    /// Deliveries in memory, at most; those behind are read when there is room again.
    pub in_memory_max: usize,
    /// Deliveries on their way at once, at most.
    pub at_once_max: usize,
    /// How long an actor may take to answer before its delivery is tried again.
    pub answer_within: Duration,
}

impl Default for CourierOptions {
    fn default() -> Self {
        Self { in_memory_max: 100_000, at_once_max: 512, answer_within: Duration::from_secs(30) }
    }
}

impl Courier {
    /// Delivers what is left in that store, from nodes on which it is started.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_options(store, CourierOptions::default())
    }

    /// As `new`, with options.
    pub fn with_options(store: Arc<dyn Store>, options: CourierOptions) -> Self {
        Self { store, options, inboxes: Arc::default(), set_aside: Arc::default() }
    }

    /// Delivers for the actors that live on this node, until the node ends. The kinds of actors
    /// that get something have to be known to the node.
    pub fn start(&self, node: &Node) {
        let inbox = Arc::new(Inbox::default());
        let set_aside = SetAside::new(self.set_aside.clone());
        let options = self.options.clone();
        let carrier = Carrier::new(self.store.clone(), options, inbox.clone(), set_aside);
        let carrier = node.spawn(carrier);
        inbox.set_carrier(carrier.downgrade());
        let mut inboxes = self.inboxes.lock();
        inboxes.retain(|inbox| inbox.is_open());
        inboxes.push(inbox);
    }

    /// Letters that were set aside because they are longer than the node of their actor reads
    /// (`MemberConfig::frame_len_max`). Each is in the log as an error with its length, stays in the
    /// store, and holds up nobody. Within half a minute of the time when it fits, because the actor
    /// or the limit has changed, it is sent.
    pub fn set_aside_total(&self) -> u64 {
        self.set_aside.load(Ordering::Relaxed)
    }

    /// `set_aside_total` as `althing_courier_set_aside_total`, in Prometheus' text format.
    pub fn prometheus_text(&self) -> String {
        let name = "althing_courier_set_aside_total";
        let total = self.set_aside_total();
        format!(
            "# HELP {name} Letters that are longer than the node of their actor reads.\n\
             # TYPE {name} counter\n{name} {total}\n"
        )
    }
}

/// The name of a letter that is left.
fn letter_name(posting: &Posting) -> Option<&str> {
    match posting {
        Posting::Put(delivery) => Some(&*delivery.name).filter(|it| reminder_name(it).is_none()),
        Posting::Cancel(_) => None,
    }
}

impl std::fmt::Debug for Courier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Courier").field("nodes", &self.inboxes.lock().len()).finish()
    }
}

impl Store for Courier {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        self.store.open(id, epoch)
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        let (owner, postings) = (turn.id.clone(), turn.postings.clone());
        if turn.is_first_to_leave
            && let Some(first) = postings.iter().filter_map(letter_name).min()
        {
            // Before the commit: nobody reads what it leaves before its carrier knows of this.
            self.inboxes.lock().iter().for_each(|inbox| inbox.came(&owner, first));
        }
        let answer = self.store.commit(turn);
        if postings.is_empty() {
            return answer;
        }
        let inboxes = self.inboxes.clone();
        // Whoever drops the answer has what was left read from the store.
        Box::pin(async move {
            answer.await?;
            let inboxes: Vec<_> = inboxes.lock().clone();
            inboxes.iter().for_each(|inbox| inbox.put(&owner, &postings));
            Ok(())
        })
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        self.store.events(id, after, limit)
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        self.store.due(until, after, limit)
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        self.store.left_before(names, limit)
    }

    fn settle(&self, settled: Vec<Settled>) -> Answer<()> {
        self.store.settle(settled)
    }

    fn is_delivering(&self) -> bool {
        true
    }
}
