//! The road in: one MQTT connection per subscription, every message read and handed to its vehicle.
//!
//! A lost broker is reached again with growing pauses, and everyone can see that it is lost.
//! Nothing here waits for a vehicle: a mailbox that is full sheds the position, because the next
//! one is worth more.

use std::sync::Arc;
use std::time::Duration;

use althing::Node;
use parking_lot::Mutex;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{ConnectReturnCode, Packet, Publish, SubAck, SubscribeReasonCode};
use rumqttc::v5::{AsyncClient, Event, EventLoop, MqttOptions};
use serde::Serialize;
use tokio::sync::watch;

use crate::hfp::{self, MessageError};
use crate::mqtt_url::MqttUrl;
use crate::vehicle::{Vehicle, VehicleCalls};
use crate::world::World;

/// Everything a vehicle position is published under.
pub(crate) const POSITIONS: &str = "/hfp/v2/+/ongoing/vp/#";

/// Larger packets are announced as unwelcome, so that a broker drops them; one that sends them
/// still is cut off.
const PACKET_LEN_MAX: u32 = 64 * 1_024;
/// A vehicle's clock may be ahead of ours by this much.
const AHEAD_MS_MAX: u64 = 60_000;
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const BACKOFF_MIN: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// The feed as others see it.
#[derive(Debug)]
pub(crate) struct FeedStatus {
    connections: watch::Sender<u64>,
    wanted: u64,
    broker: String,
    trouble: Mutex<Option<Trouble>>,
}

/// Why a subscription does not stand, and how long it pauses before it is tried again.
#[derive(Clone, Debug)]
struct Trouble {
    why: String,
    pause: Duration,
}

/// [`FeedStatus`] at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FeedState {
    /// Address of the broker.
    pub(crate) broker: String,
    /// Whether every subscription stands.
    pub(crate) connected: bool,
    /// What is wrong, while something is.
    pub(crate) trouble: Option<String>,
    /// Pause before the next attempt, milliseconds; it grows with each one that fails.
    pub(crate) pause_ms: Option<u64>,
}

/// How long to wait before the next attempt: doubles from a quarter of a second to eight, plus up
/// to a quarter by chance.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next pause; `random` spreads those who lost the same broker.
    pub(crate) fn next(&mut self, random: u64) -> Duration {
        let pause = BACKOFF_MIN.saturating_mul(1 << self.attempts.min(8)).min(BACKOFF_MAX);
        self.attempts += 1;
        pause + pause.mul_f64((random % 1_000) as f64 / 4_000.0)
    }

    /// Begins anew after a success.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

impl FeedStatus {
    /// A feed that is not connected yet.
    pub(crate) fn new(broker: String, wanted: usize) -> Self {
        Self {
            connections: watch::Sender::new(0),
            wanted: wanted as u64,
            broker,
            trouble: Mutex::new(None),
        }
    }

    /// The state now.
    pub(crate) fn now(&self) -> FeedState {
        let connected = *self.connections.borrow() == self.wanted;
        let trouble = self.trouble.lock().clone().filter(|_| !connected);
        let pause_ms = trouble.as_ref().map(|trouble| trouble.pause.as_millis() as u64);
        let trouble = trouble.map(|trouble| trouble.why);
        FeedState { broker: self.broker.clone(), connected, trouble, pause_ms }
    }

    /// Waits until every subscription stands.
    pub(crate) async fn connected(&self) {
        let mut connections = self.connections.subscribe();
        let connected = connections.wait_for(|connections| *connections == self.wanted).await;
        connected.expect("the sender is ours");
    }

    fn stands(&self) {
        self.connections.send_modify(|connections| *connections += 1);
    }

    fn lost(&self, stood: bool, why: String, pause: Duration) {
        if stood {
            self.connections.send_modify(|connections| *connections -= 1);
        }
        *self.trouble.lock() = Some(Trouble { why, pause });
    }
}

/// One subscription, kept up for ever.
pub(crate) struct Feed {
    /// Where actors live.
    pub(crate) node: Node,
    /// What they share.
    pub(crate) world: Arc<World>,
    /// Who is told how it stands.
    pub(crate) status: Arc<FeedStatus>,
    /// The broker.
    pub(crate) broker: MqttUrl,
    /// The topic filter.
    pub(crate) filter: String,
}

impl Feed {
    /// Runs until dropped.
    pub(crate) async fn run(self) {
        let (client, mut events) = self.open();
        let mut backoff = Backoff::default();
        let mut stands = false;
        loop {
            let trouble = match events.poll().await {
                Ok(Event::Incoming(Packet::Publish(message))) => {
                    self.take(&message);
                    None
                }
                Ok(Event::Incoming(Packet::ConnAck(answer))) => {
                    debug_assert_eq!(answer.code, ConnectReturnCode::Success);
                    // The channel holds more than the one request ever in it.
                    client.try_subscribe(self.filter.as_str(), QoS::AtMostOnce).ok();
                    None
                }
                Ok(Event::Incoming(Packet::SubAck(answer))) => {
                    let refusal = refusal(&answer);
                    if refusal.is_some() {
                        // It would keep a connection on which nothing ever comes.
                        events.clean();
                    } else if !stands {
                        stands = true;
                        backoff.reset();
                        self.stands();
                    }
                    refusal
                }
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            };
            let Some(why) = trouble else { continue };
            let pause = backoff.next(random(&self.node));
            self.lose(stands, why, pause);
            stands = false;
            self.node.sleep(pause).await;
        }
    }

    fn open(&self) -> (AsyncClient, EventLoop) {
        let id = format!("realtime-map-{:x}-{:x}", std::process::id(), random(&self.node));
        let mut options = MqttOptions::new(id, self.broker.host.as_str(), self.broker.port);
        options.set_keep_alive(KEEP_ALIVE);
        options.set_max_packet_size(Some(PACKET_LEN_MAX));
        if let Some((user, password)) = &self.broker.credentials {
            options.set_credentials(user, password);
        }
        AsyncClient::new(options, 8)
    }

    fn stands(&self) {
        self.status.stands();
        tracing::info!(broker = %self.status.broker, filter = %self.filter, "subscribed");
    }

    fn lose(&self, stood: bool, why: String, pause: Duration) {
        self.world.counters.broker_losses.add(1);
        tracing::warn!(broker = %self.status.broker, %why, ?pause, "broker lost");
        self.status.lost(stood, why, pause);
    }

    /// Hands one message to its vehicle.
    fn take(&self, message: &Publish) {
        let counters = &self.world.counters;
        counters.received.add(1);
        let (id, report) = match hfp::read_message(&message.topic, &message.payload) {
            Ok(Some(found)) => found,
            Ok(None) => return counters.without_place.add(1),
            Err(error @ MessageError::Topic(_)) => {
                counters.bad_topics.add(1);
                return log_refusal(message, &error);
            }
            Err(error @ MessageError::Payload(_)) => {
                counters.bad_payloads.add(1);
                return log_refusal(message, &error);
            }
        };
        if report.at_ms > self.node.now().0 + AHEAD_MS_MAX {
            return counters.from_the_future.add(1);
        }
        match self.node.get::<Vehicle>(id).report(report).try_tell() {
            Ok(()) => counters.positions.add(1),
            Err(_) => counters.shed.add(1),
        }
    }
}

/// Why the broker does not take the subscription, if it does not.
fn refusal(answer: &SubAck) -> Option<String> {
    let is_taken = |code: &SubscribeReasonCode| matches!(code, SubscribeReasonCode::Success(_));
    let code = answer.return_codes.iter().find(|code| !is_taken(code))?;
    Some(format!("the broker refuses the subscription: {code:?}"))
}

/// At debug level: a hostile sender must not fill the disk.
fn log_refusal(message: &Publish, error: &MessageError) {
    tracing::debug!(%error, topic_len = message.topic.len(), payload_len = message.payload.len(), "refused");
}

fn random(node: &Node) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(node.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..7).map(|_| backoff.next(0).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]);
        assert_eq!(backoff.next(999).as_millis(), 9_998);
        backoff.reset();
        assert_eq!(backoff.next(0), BACKOFF_MIN);
    }

    #[test]
    fn a_feed_is_connected_when_all_its_subscriptions_stand() {
        let status = FeedStatus::new("mqtt://here:1".to_owned(), 2);
        status.lost(false, "refused".to_owned(), BACKOFF_MIN);
        status.stands();
        assert_eq!(status.now().trouble.as_deref(), Some("refused"));
        status.stands();
        assert_eq!((status.now().connected, status.now().trouble), (true, None));
        assert_eq!(status.now().pause_ms, None);
        status.lost(true, "gone".to_owned(), BACKOFF_MAX);
        assert_eq!(status.now().pause_ms, Some(8_000));
        assert_eq!(
            (status.now().connected, status.now().trouble.as_deref()),
            (false, Some("gone"))
        );
    }
}
