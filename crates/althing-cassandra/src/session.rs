//! What every session with the servers begins with.

use std::time::Duration;

use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileBuilder};
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::{Consistency, SerialConsistency};

use crate::address::Address;

/// How long one attempt to connect may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What is asked of a majority of all replicas, and answered in that time.
pub fn profile(answer_within: Duration) -> ExecutionProfileBuilder {
    ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .serial_consistency(Some(SerialConsistency::Serial))
        .request_timeout(Some(answer_within))
}

/// A session with the servers of an address; its keyspace is not in use yet.
pub fn session(address: &Address, profile: ExecutionProfileBuilder) -> SessionBuilder {
    let builder = SessionBuilder::new()
        .known_nodes(&address.nodes)
        // Where its rows are is all that the driver has to know.
        .keyspaces_to_fetch([&address.keyspace])
        .default_execution_profile_handle(profile.build().into_handle())
        .connection_timeout(CONNECT_WITHIN);
    match &address.login {
        Some((user, password)) => builder.user(user, password),
        None => builder,
    }
}
