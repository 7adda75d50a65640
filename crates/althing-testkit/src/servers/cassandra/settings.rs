//! What Cassandra is told when it starts: for small nodes that keep what they acknowledge.

use std::path::Path;

/// How long a node that joins others looks for one of them, which sleeps a second between two looks.
const JOIN_WITHIN_MS: u32 = 30_000;

/// A node among its peers; all of them have the same ports.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) address: String,
    /// The port for clients, and the one for peers.
    pub(super) ports: [u16; 2],
    /// Whom it asks for the others; itself if it is the first one, or alone.
    pub(super) seed: String,
    /// Where its part of the ring begins.
    pub(super) token: i64,
}

/// Packages of Java that Cassandra looks into, which Java closes since version 17.
const OPENS: [&str; 13] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
];

/// Packages that it uses though they are Java's own.
const EXPORTS: [&str; 8] = [
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.unsupported/sun.misc",
];

/// The first compiler alone, and the collector with the fewest threads, start fastest. Nobody waits
/// until gossip has settled: who starts several nodes waits until they know each other.
const FLAGS: [&str; 13] = [
    "-Xms512m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Djdk.attach.allowAttachSelf=true",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dcassandra-foreground=yes",
    "-Dcassandra.available_processors=2",
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
    "-Dcassandra.superuser_setup_delay_ms=0",
    "-Dcassandra.skip_schema_check=true",
];

/// Everything to the standard output, which is read.
pub(super) const LOGGING: &str = r#"<configuration>
<appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %-5level %logger{0} %msg%n</pattern></encoder>
</appender>
<root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>"#;

pub(super) fn flags(node: &Node) -> impl Iterator<Item = String> + use<> {
    let wait_ms = if node.seed == node.address { 0 } else { JOIN_WITHIN_MS };
    let opens = OPENS.iter().map(|package| format!("--add-opens={package}=ALL-UNNAMED"));
    let exports = EXPORTS.iter().map(|package| format!("--add-exports={package}=ALL-UNNAMED"));
    let wait = format!("-Dcassandra.ring_delay_ms={wait_ms}");
    opens.chain(exports).chain(FLAGS.map(str::to_owned)).chain([wait])
}

/// One token, and a log that is synced before a write is answered.
pub(super) fn yaml(directory: &Path, node: &Node) -> String {
    let Node { address, ports: [clients, peers], seed, token } = node;
    let data = directory.join("data");
    let data = data.display();
    format!(
        "cluster_name: test
num_tokens: 1
initial_token: {token}
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: ['{data}/tables']
commitlog_directory: '{data}/log'
saved_caches_directory: '{data}/caches'
hints_directory: '{data}/hints'
cdc_raw_directory: '{data}/cdc'
commitlog_sync: batch
paxos_variant: v2
paxos_state_purging: repaired
commitlog_segment_size: 32MiB
listen_address: {address}
rpc_address: {address}
storage_port: {peers}
native_transport_port: {clients}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: '{seed}:{peers}'}}]
authenticator: AllowAllAuthenticator
authorizer: AllowAllAuthorizer
auto_snapshot: false
memtable_heap_space: 96MiB
memtable_offheap_space: 64MiB
key_cache_size: 4MiB
file_cache_size: 32MiB
networking_cache_size: 16MiB
concurrent_compactors: 1
"
    )
}
