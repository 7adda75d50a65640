//! Who gives a command.

use std::sync::Arc;

use folkmoot_protocol::rpc::RpcError;

use super::sends::Sends;
use crate::limits::{Limit, Limits};
use crate::server::Server;
use crate::storage::{DeviceId, UserId};

/// Who gives a command: a user through one of their devices, by socket or by HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) server: Arc<Server>,
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
    /// The connection's id, if it is a socket.
    pub(crate) client: Option<Arc<str>>,
    /// What the connection has on its way; `None` on a server alone, whose rooms are not lost.
    pub(crate) sends: Option<Arc<Sends>>,
}

impl Identity {
    /// A user who does not come by a socket.
    pub(crate) fn new(server: Arc<Server>, user: UserId, device: DeviceId) -> Self {
        let sends = server.nodes().map(|_| Arc::default());
        Self { server, user, device, client: None, sends }
    }

    /// Counts one more of what the user does, or refuses it.
    pub(crate) fn count(
        &self,
        limit: impl FnOnce(&Limits) -> &Limit<UserId>,
    ) -> Result<(), RpcError> {
        limit(&self.server.limits).take(self.user)
    }
}
