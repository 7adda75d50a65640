//! Messages and replies whose own code panics between nodes: nobody else's are lost with them. Over
//! real sockets.

use std::time::Duration;

use crate::support::cluster::{Cluster, joined};
use althing::wire::{Depth, WireField};
use althing::{ActorRef, AskError, Node, Wire, WireError, actor};
use althing_cluster::Member;
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

const UNREADABLE: u64 = 13;
const UNWRITABLE: u64 = 17;

/// A number that panics when it is one of these.
struct Number(u64);

impl Wire for Number {
    fn encode(&self, out: &mut Vec<u8>) {
        assert_ne!(self.0, UNWRITABLE, "on purpose");
        self.0.encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        let number = u64::decode_within(bytes, depth)?;
        assert_ne!(number, UNREADABLE, "on purpose");
        Ok(Self(number))
    }
}

impl WireField for Number {}

struct Adder {
    sum: u64,
}

#[actor(name = "test.adder", wire)]
impl Adder {
    async fn add(&mut self, number: Number) {
        self.sum += number.0;
    }

    async fn say(&mut self, number: u64) -> Number {
        Number(number)
    }

    async fn sum(&mut self) -> u64 {
        self.sum
    }
}

/// Two nodes, and an adder on the second one as the first one sees it.
async fn scene(cluster: &Cluster) -> ([(Member, Node); 2], ActorRef<Adder>) {
    let node = async |name: &str| {
        joined(cluster.config(name), |node| node.actor(async |_| Ok(Adder { sum: 0 }))).await
    };
    let (one, two) = (node("one").await, node("two").await);
    let adder = one.1.get::<Adder>("ada");
    let moved = async {
        // The node may not be known yet.
        while one.0.move_to(&adder.id(), "two").await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, moved).await.expect("it moves");
    ([one, two], adder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tell_whose_decoding_panics_takes_no_other_along() {
    let cluster = Cluster::new();
    let (_nodes, adder) = scene(&cluster).await;
    for n in 0..2_000 {
        let number = if n % 250 == 100 { UNREADABLE } else { 1 };
        adder.add(Number(number)).timeout(PATIENCE).tell().await.expect("it is accepted");
    }
    assert_eq!(adder.sum().timeout(PATIENCE).await, Ok(1_992));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_hears_that_a_codec_has_panicked_and_nothing_else_fails() {
    let cluster = Cluster::new();
    let (_nodes, adder) = scene(&cluster).await;
    adder.add(Number(1)).timeout(PATIENCE).await.expect("it answers");
    // Nobody waits for a deadline.
    let unread = timeout(PATIENCE, adder.add(Number(UNREADABLE)).timeout(PATIENCE * 2)).await;
    let unread = unread.expect("it is answered").expect_err("nobody has read it");
    assert!(
        matches!(&unread, AskError::NotUnderstood(_, why) if why.contains("`add`")),
        "{unread}"
    );
    let unread = timeout(PATIENCE, adder.say(UNREADABLE).timeout(PATIENCE * 2)).await;
    let unread = unread.expect("it is answered").err().expect("nobody has read the reply");
    assert!(matches!(&unread, AskError::NotUnderstood(..)), "{unread}");
    let unsaid = timeout(PATIENCE, adder.say(UNWRITABLE).timeout(PATIENCE * 2)).await;
    let unsaid = unsaid.expect("it is answered").err().expect("there was no reply");
    assert!(matches!(&unsaid, AskError::NoReply(_)), "{unsaid}");
    assert_eq!(adder.sum().timeout(PATIENCE).await, Ok(1), "it is the same life");
}
