//! What Kafka is told when it starts: a small node that is broker and controller.

use std::path::Path;

/// What makes a directory one of this node. The ids are any 16 bytes as base64url.
pub(super) const META: &str = "version=1
cluster.id=YWx0aGluZy10ZXN0cy1rYQ
node.id=1
directory.id=YWx0aGluZy10ZXN0cy1kaQ
";

/// The first compiler alone, and the collector with the fewest threads, start fastest.
pub(super) const FLAGS: [&str; 9] = [
    "-Xms256m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    // To the standard output, which is read.
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
];

/// A listener for clients that come over TLS with a password.
pub(super) struct Guard<'a> {
    /// A file with key and certificates.
    pub(super) store: &'a Path,
    pub(super) user: &'a str,
    pub(super) password: &'a str,
}

impl Guard<'_> {
    fn properties(&self) -> String {
        let Self { store, user, password } = self;
        let (listener, module) = ("listener.name.guarded", "org.apache.kafka.common.security");
        format!(
            "{listener}.ssl.keystore.type=PEM
{listener}.ssl.keystore.location={store}
{listener}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
{listener}.plain.sasl.jaas.config={module}.plain.PlainLoginModule required user_{user}=\"{password}\";
{listener}.scram-sha-256.sasl.jaas.config={module}.scram.ScramLoginModule required;
{listener}.scram-sha-512.sasl.jaas.config={module}.scram.ScramLoginModule required;
",
            store = store.display(),
        )
    }
}

/// Topics of its own have one copy and one partition. Members of a group may be missed after a
/// second, and nobody waits for more of them to come.
pub(super) fn properties(
    data: &Path,
    address: &str,
    [clients, controller, guarded]: [u16; 3],
    guard: Option<&Guard<'_>>,
) -> String {
    let listener = guard.map(|_| format!(",GUARDED://{address}:{guarded}")).unwrap_or_default();
    let guard = guard.map(Guard::properties).unwrap_or_default();
    format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{address}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{address}:{clients},CONTROLLER://{address}:{controller}{listener}
advertised.listeners=PLAINTEXT://{address}:{clients}{listener}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_SSL
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=2000
log.cleaner.dedupe.buffer.size=8388608
log.segment.bytes=67108864
num.network.threads=1
num.io.threads=2
num.replica.fetchers=1
background.threads=1
{guard}",
        data = data.display(),
    )
}
