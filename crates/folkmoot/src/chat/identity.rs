//! Who gives a command.

use std::sync::Arc;

use folkmoot_protocol::rpc::RpcError;

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
}

impl Identity {
    /// A user who does not come by a socket.
    pub(crate) fn new(server: Arc<Server>, user: UserId, device: DeviceId) -> Self {
        Self { server, user, device, client: None }
    }

    /// Counts one more of what the user does, or refuses it.
    pub(crate) fn count(
        &self,
        limit: impl FnOnce(&Limits) -> &Limit<UserId>,
    ) -> Result<(), RpcError> {
        limit(&self.server.limits).take(self.user)
    }
}
