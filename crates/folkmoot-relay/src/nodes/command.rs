//! What the server API does to the connections of a user, as it travels: nobody knows on which node
//! they are, so each node does it to those that came to it.

use std::sync::Arc;

use althing::Wire;
use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;

use crate::api::Subscription;
use crate::server::Server;

/// Whose connections are meant.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Whose {
    pub(crate) user: String,
    /// One connection; empty: all.
    pub(crate) client: String,
    /// One connection, by the name that its client alone was told; empty: all.
    pub(crate) session: String,
    /// Connections that are spared.
    pub(crate) spared: Vec<String>,
}

/// What is to be done to them.
#[derive(Debug, Clone, Wire)]
pub(crate) enum UserCommand {
    Subscribe { whose: Whose, subscription: Subscription },
    Unsubscribe { whose: Whose, channel: Arc<str> },
    Disconnect { whose: Whose, code: u16, reason: String },
    Refresh { whose: Whose, expired: bool, expire_at: i64, info: Option<Bytes> },
}

/// What came of it on one node; 0: it is done.
#[derive(Debug, Clone, Wire)]
pub(crate) struct UserOutcome {
    code: u32,
    message: String,
}

impl From<Result<(), RpcError>> for UserOutcome {
    fn from(outcome: Result<(), RpcError>) -> Self {
        match outcome {
            Ok(()) => Self { code: 0, message: String::new() },
            Err(RpcError { code, message, .. }) => Self { code: code.code(), message },
        }
    }
}

impl From<UserOutcome> for Result<(), RpcError> {
    fn from(UserOutcome { code, message }: UserOutcome) -> Self {
        match code {
            0 => Ok(()),
            code => {
                let code = ErrorCode::from_code(code).unwrap_or(ErrorCode::Internal);
                Err(RpcError::new(code, message))
            }
        }
    }
}

impl UserCommand {
    /// Does it to those that are here.
    pub(crate) async fn run(self, server: &Arc<Server>) -> Result<(), RpcError> {
        crate::api::on_users(server, self).await
    }

    /// Does it to those on all nodes; the first error counts, and does not keep it from the others.
    /// What was begun is done whole, though nobody waits for it any more: a subscription that was made
    /// and got no end would have none.
    pub(crate) async fn run_everywhere(self, server: &Arc<Server>) -> Result<(), RpcError> {
        let Some(nodes) = server.hub.nodes() else {
            let server = server.clone();
            let done = tokio::spawn(async move { self.run(&server).await });
            // A panic of it is told already.
            return done.await.unwrap_or_else(|_| Err(ErrorCode::Internal.into()));
        };
        let asked = nodes.ask_all(move |site| {
            let command = self.clone();
            async move { super::SiteCalls::command(&site, command).await }
        });
        let mut outcome = Ok(());
        for answer in asked.await.map_err(|error| crate::server::unavailable(&error))? {
            outcome = outcome.and(answer.into());
        }
        outcome
    }
}
