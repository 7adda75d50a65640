//! SIGTERM of one node while clients are on it and others publish: its channels go to the others,
//! its clients too, and nobody misses anything or hears it twice.

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Place;
use super::cluster::{Cluster, Node, Subscriber, names};

/// Publications in each channel.
const ROUNDS: u64 = 40;
/// After so many of them the node is told to stop.
const BEFORE_STOP: u64 = 10;

/// A subscriber of all channels that knows where it is in each.
struct Follower {
    subscriber: Subscriber,
    channels: Vec<String>,
    places: Vec<Place>,
}

impl Follower {
    async fn begin(node: &Node, channels: &[String]) -> Self {
        let (mut subscriber, mut places) = (Subscriber::connect(node).await, Vec::new());
        for (id, channel) in (2..).zip(channels) {
            let asked = json!({"id": id, "subscribe": {"channel": channel}});
            places.push(Place::of(&subscriber.ask(asked).await["subscribe"]));
        }
        Self { subscriber, channels: channels.to_vec(), places }
    }

    fn has_all(&self) -> bool {
        self.places.iter().all(|place| place.offset == ROUNDS)
    }

    /// Hears publications, each next in its channel, until it has all or the connection ends.
    async fn hear(&mut self) {
        while !self.has_all() {
            let Some((channel, push)) = self.subscriber.push_or_end().await else { return };
            let at = self.channels.iter().position(|name| *name == channel).expect("one of them");
            assert!(push["pub"].is_object(), "{channel} was lost: {push}");
            self.take(at, &push["pub"]);
        }
    }

    fn take(&mut self, at: usize, publication: &Value) {
        self.places[at].hear(publication);
        let number = publication["data"].as_u64().expect("a number");
        assert_eq!(number + 1, self.places[at].offset, "each number is published once");
    }

    /// Goes on at another node.
    async fn come_back(&mut self, node: &Node) {
        self.subscriber = Subscriber::connect(node).await;
        for at in 0..self.channels.len() {
            let Place { epoch, offset } = &self.places[at];
            let since = json!({"channel": self.channels[at], "recover": true, "epoch": epoch, "offset": offset});
            let command = json!({"id": at + 2, "subscribe": since});
            let reply = self.subscriber.ask_again(command).await["subscribe"].clone();
            assert_eq!(reply["recovered"], true, "{}: {reply}", self.channels[at]);
            let missed = reply["publications"].as_array().cloned().unwrap_or_default();
            missed.iter().for_each(|one| self.take(at, one));
            assert_eq!(self.places[at], Place::of(&reply), "a recovery that says it is whole");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_node_is_stopped_under_load_its_clients_go_on_elsewhere_and_nobody_misses_anything()
{
    let mut cluster = Cluster::start("stop", 3).await;
    let channels = names("c");
    let mut staying = Follower::begin(&cluster.nodes[0], &channels).await;
    let mut moving = Follower::begin(&cluster.nodes[2], &channels).await;
    let stopped = cluster.nodes.pop().expect("three of them");
    let is_time = Notify::new();
    let publishing = async {
        for number in 0..ROUNDS {
            if number == BEFORE_STOP {
                is_time.notify_one();
            }
            for (place, channel) in (0..).zip(&channels) {
                let key = format!("{number}");
                let post = json!({"channel": channel, "data": number, "idempotency_key": key});
                cluster.call((number + place) as usize % 2, "publish", &post).await;
            }
        }
    };
    let stopping = async {
        is_time.notified().await;
        stopped.terminate().await;
        stopped.stopped().await;
    };
    let following = async {
        moving.hear().await;
        assert!(!moving.has_all(), "the node stopped only when all was over");
        moving.come_back(&cluster.nodes[1]).await;
        moving.hear().await;
    };
    tokio::join!(publishing, stopping, staying.hear(), following);
    assert!(staying.has_all() && moving.has_all(), "a connection ended that should not");
    cluster.end().await;
}
