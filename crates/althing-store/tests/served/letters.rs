//! Letters of actors whose state is on a server: whoever asks again until it is answered has it
//! done once, and what was told arrives once.

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Node, Start, Timestamp, Wire, actor};
use althing_store::{Courier, CourierOptions, RequestId, Saved, State, Store};
use tokio::task::JoinHandle;

const TRANSFERS: u64 = 60;
/// Transfers that are asked for at once.
const ASKERS: u64 = 4;
/// A real server that was away has to come back first.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Default, Wire)]
struct Tally {
    given: u64,
    got: u64,
}

impl State for Tally {}

struct Account {
    saved: Saved<Tally>,
}

#[actor(name = "test.served-account", wire, durable = saved)]
impl Account {
    #[wire(skip)]
    async fn give(&mut self, request: RequestId, to: String, ctx: &mut Context<Self>) -> u64 {
        let other = ctx.node().get::<Account>(to);
        self.saved.once(&request, |tally| {
            tally.given += 1;
            tally.post().tell(|request| other.get_one(request)).expect("it can be written down");
            tally.given
        })
    }

    async fn get_one(&mut self, request: RequestId) {
        self.saved.once(&request, |tally| tally.got += 1);
    }

    #[wire(skip)]
    async fn tally(&self) -> (u64, u64) {
        (self.saved.given, self.saved.got)
    }
}

/// Transfers that are under way.
pub(crate) struct Transfers {
    node: Node,
    courier: Arc<Courier>,
    asking: Vec<JoinHandle<()>>,
}

impl Transfers {
    pub(crate) fn begin(store: Arc<impl Store>) -> Self {
        let mut options = CourierOptions::default();
        options.answer_within = Duration::from_secs(2);
        let courier = Arc::new(Courier::with_options(store, options));
        let store: Arc<dyn Store> = courier.clone();
        let open = move |start: Start<Account>| {
            let store = store.clone();
            async move { Ok::<_, ActorError>(Account { saved: Saved::load(store, &start).await? }) }
        };
        let node = Node::builder("bank").actor(open).build();
        courier.start(&node);
        let give = |asker| give_all(node.clone(), asker);
        let asking = (0..ASKERS).map(|asker| tokio::spawn(give(asker))).collect();
        Self { node, courier, asking }
    }

    /// Waits for their end, and looks whether each had its effect once.
    pub(crate) async fn check(self) {
        for asking in self.asking {
            asking.await.expect("no promise is broken");
        }
        let rest = || self.courier.due(Timestamp(u64::MAX), None, 1);
        let delivered = async {
            while !rest().await.is_ok_and(|left| left.is_empty()) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, delivered).await.expect("all is delivered in time");
        let (mut given, mut got) = (0, 0);
        for account in 0..4 {
            let account = self.node.get::<Account>(account.to_string());
            let tally = account.tally().await.expect("it runs");
            (given, got) = (given + tally.0, got + tally.1);
        }
        assert_eq!((given, got), (TRANSFERS, TRANSFERS), "none lost, none twice");
    }
}

/// Asks for each until it is answered.
async fn give_all(node: Node, asker: u64) {
    for number in (asker..TRANSFERS).step_by(ASKERS as usize) {
        let account = node.get::<Account>((number % 4).to_string());
        let to = ((number + 1) % 4).to_string();
        while account.give(RequestId::new(number.to_string()), to.clone()).await.is_err() {}
    }
}
