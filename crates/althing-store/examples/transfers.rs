//! Accounts that give each other a cent by letter: what the test of kills runs.
//!
//! `transfers DIRECTORY FIRST LAST` asks for the transfers of these numbers, prints each once it is
//! acknowledged, and at the end, when every letter was taken, what all accounts have given and got.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Node, Start, Timestamp, Wire, actor};
use althing_store::{Courier, Embedded, RequestId, Saved, State, Store};

const ACCOUNTS: u64 = 4;
/// Transfers that are on their way at once.
const AT_ONCE: u64 = 8;
/// Pause between two looks at what is still to be delivered.
const LOOK: Duration = Duration::from_millis(2);

/// What was given and got: how many, and the sum of their numbers.
#[derive(Clone, Copy, Debug, Default, Wire)]
struct Tally {
    given: u64,
    given_numbers: u64,
    got: u64,
    got_numbers: u64,
}

impl State for Tally {}

struct Account {
    saved: Saved<Tally>,
}

#[actor(name = "transfers.account", wire, durable = saved)]
impl Account {
    #[wire(skip)]
    async fn give(&mut self, request: RequestId, number: u64, ctx: &mut Context<Self>) {
        let next = (number + 1) % ACCOUNTS;
        let other = ctx.node().get::<Account>(next.to_string());
        self.saved.once(&request, |tally| {
            tally.given += 1;
            tally.given_numbers += number;
            tally
                .post()
                .tell(|request| other.get_one(request, number))
                .expect("accounts have keys, and a courier");
        });
    }

    async fn get_one(&mut self, request: RequestId, number: u64) {
        self.saved.once(&request, |tally| {
            tally.got += 1;
            tally.got_numbers += number;
        });
    }

    #[wire(skip)]
    async fn tally(&self) -> Vec<u64> {
        let Tally { given, given_numbers, got, got_numbers } = *self.saved;
        vec![given, given_numbers, got, got_numbers]
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, directory, first, last] = &arguments[..] else {
        return Err("usage: transfers DIRECTORY FIRST LAST".into());
    };
    let (first, last): (u64, u64) = (first.parse()?, last.parse()?);
    let courier = Arc::new(Courier::new(Arc::new(Embedded::open(directory)?)));
    let store: Arc<dyn Store> = courier.clone();
    let open = move |start: Start<Account>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Account { saved: Saved::load(store, &start).await? }) }
    };
    let node = Node::builder("bank").actor(open).build();
    courier.start(&node);
    let mut next = first;
    while next <= last {
        let wave: Vec<_> = (next..=last.min(next + AT_ONCE - 1))
            .map(|number| tokio::spawn(transfer(node.clone(), number)))
            .collect();
        next += AT_ONCE;
        for transfer in wave {
            transfer.await??;
        }
    }
    while !courier.due(Timestamp(u64::MAX), None, 1).await?.is_empty() {
        tokio::time::sleep(LOOK).await;
    }
    let mut sums = [0; 4];
    for account in 0..ACCOUNTS {
        let tally = node.get::<Account>(account.to_string()).tally().await?;
        sums.iter_mut().zip(tally).for_each(|(sum, one)| *sum += one);
    }
    println!("all {} {} {} {}", sums[0], sums[1], sums[2], sums[3]);
    Ok(())
}

async fn transfer(node: Node, number: u64) -> Result<(), std::io::Error> {
    let account = node.get::<Account>((number % ACCOUNTS).to_string());
    let request = RequestId::new(format!("transfer {number}"));
    account.give(request, number).await.map_err(std::io::Error::other)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{number}")?;
    out.flush()
}
