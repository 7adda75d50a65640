//! Who calls a method: the server it calls, and what it may do there.

use std::sync::Arc;

use folkmoot_protocol::rpc::RpcError;

use super::keys::Rights;
use crate::rules::Rule;
use crate::server::Server;

/// One caller of the server API.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) server: Arc<Server>,
    pub(crate) rights: Arc<Rights>,
}

impl Caller {
    /// The rule of a channel that the caller reaches.
    pub(super) fn rule(&self, channel: &str) -> Result<&Arc<Rule>, RpcError> {
        self.rights.reach(channel)?;
        self.server.rules.of(channel)
    }
}
