//! Letters of actors whose state is on a real PostgreSQL, which is killed under them: whoever asks
//! again until it is answered has it done once, and what was told arrives once.

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Node, Start, Timestamp, Wire, actor};
use althing_store::{Courier, CourierOptions, Postgres, RequestId, Saved, State, Store};
use althing_testkit::servers::PostgresServer;

const KILLS: u64 = 2;
/// Transfers between two kills.
const TRANSFERS: u64 = 40;
/// Transfers that are asked for at once.
const ASKERS: u64 = 8;

#[derive(Default, Wire)]
struct Tally {
    given: u64,
    got: u64,
}

impl State for Tally {}

struct Account {
    saved: Saved<Tally>,
}

#[actor(name = "test.pg-account", wire, durable = saved)]
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

/// Asks until it is answered.
async fn give(node: Node, number: u64) {
    let account = node.get::<Account>((number % 4).to_string());
    let to = ((number + 1) % 4).to_string();
    while account.give(RequestId::new(number.to_string()), to.clone()).await.is_err() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_and_requests_have_their_effect_once_though_the_server_is_killed() {
    let mut server = PostgresServer::start();
    let postgres = Postgres::connect(&server.url()).await.expect("it connects");
    let mut options = CourierOptions::default();
    options.answer_within = Duration::from_secs(2);
    let courier = Arc::new(Courier::with_options(Arc::new(postgres), options));
    let store: Arc<dyn Store> = courier.clone();
    let open = move |start: Start<Account>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Account { saved: Saved::load(store, &start).await? }) }
    };
    let node = Node::builder("bank").actor(open).build();
    courier.start(&node);
    for round in 0..KILLS {
        let first = round * TRANSFERS;
        let asking: Vec<_> = (0..ASKERS)
            .map(|asker| {
                let node = node.clone();
                tokio::spawn(async move {
                    for number in (first + asker..first + TRANSFERS).step_by(ASKERS as usize) {
                        give(node.clone(), number).await;
                    }
                })
            })
            .collect();
        // Amid them: once a few of this round are done.
        give(node.clone(), 10_000 + round).await;
        tokio::task::block_in_place(|| {
            server.kill();
            server.start_again();
        });
        for asking in asking {
            asking.await.expect("no promise is broken");
        }
    }
    while !courier.due(Timestamp(u64::MAX), None, 1).await.is_ok_and(|left| left.is_empty()) {
        tokio::task::yield_now().await;
    }
    let (mut given, mut got) = (0, 0);
    for account in 0..4 {
        let tally = node.get::<Account>(account.to_string()).tally().await.expect("it runs");
        (given, got) = (given + tally.0, got + tally.1);
    }
    let all = KILLS * (TRANSFERS + 1);
    assert_eq!((given, got), (all, all), "none lost, none twice");
}
