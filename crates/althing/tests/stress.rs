//! Many messages, many senders: none lost, none out of order.

use althing::{Actor, Context, Handler, Node};

const SENDERS: usize = 8;
const MESSAGES: u64 = 800_000;

/// Checks that each sender's messages arrive in the order of sending.
struct Checker {
    next: [u64; SENDERS],
    by_events: bool,
}

struct Numbered {
    sender: usize,
    number: u64,
}

struct Total;
struct Relay(althing::ActorRef<Checker>, usize);

impl Actor for Checker {
    const NAME: &'static str = "stress.checker";
}

impl Handler<Numbered> for Checker {
    type Reply = ();

    async fn handle(&mut self, message: Numbered, _ctx: &mut Context<Self>) {
        assert_eq!(message.number, self.next[message.sender], "sender {}", message.sender);
        self.next[message.sender] += 1;
        if self.by_events && message.number.is_multiple_of(1_000) {
            // Now and then a handler that waits, so that batches are cut.
            tokio::task::yield_now().await;
        }
    }
}

impl Handler<Total> for Checker {
    type Reply = u64;

    async fn handle(&mut self, _: Total, _ctx: &mut Context<Self>) -> u64 {
        self.next.iter().sum()
    }
}

struct Sender;

impl Actor for Sender {
    const NAME: &'static str = "stress.sender";
}

impl Handler<Relay> for Sender {
    type Reply = ();

    async fn handle(&mut self, Relay(to, sender): Relay, _ctx: &mut Context<Self>) {
        for number in 0..MESSAGES / SENDERS as u64 {
            to.send(Numbered { sender, number }).tell().await.expect("the checker runs");
        }
    }
}

fn checker() -> Checker {
    Checker { next: [0; SENDERS], by_events: true }
}

async fn round_of_tasks(node: &Node) {
    let checker = node.spawn(checker());
    let senders = (0..SENDERS).map(|sender| {
        let checker = checker.clone();
        tokio::spawn(async move {
            for number in 0..MESSAGES / SENDERS as u64 {
                checker.send(Numbered { sender, number }).tell().await.expect("the checker runs");
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.expect("every tell is taken");
    }
    assert_eq!(checker.send(Total).await, Ok(MESSAGES));
    checker.stop().await;
}

async fn round_of_actors(node: &Node) {
    let checker = node.spawn(checker());
    let senders: Vec<_> = (0..SENDERS).map(|_| node.spawn(Sender)).collect();
    let relays = senders.iter().enumerate().map(|(index, sender)| {
        let (sender, checker) = (sender.clone(), checker.clone());
        tokio::spawn(async move {
            let minute = std::time::Duration::from_secs(60);
            sender.send(Relay(checker, index)).timeout(minute).await
        })
    });
    for relay in relays.collect::<Vec<_>>() {
        relay.await.expect("no panic").expect("every tell is taken");
    }
    assert_eq!(checker.send(Total).await, Ok(MESSAGES));
    checker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_hundred_thousand_messages_ten_times_none_lost_and_in_order() {
    let node = Node::builder("stress").build();
    for _ in 0..5 {
        round_of_tasks(&node).await;
        round_of_actors(&node).await;
    }
}
