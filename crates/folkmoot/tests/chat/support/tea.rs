//! A room with two people, at a server that counts no messages, accounts or files.

use super::{Account, Client, Server};

const LIMITS: &str =
    "[limits]\nmessages_per_second = 0\naccounts_per_minute = 0\nuploads_per_minute = 0\n";

/// Anna's room, with Bob in it.
pub(crate) struct Tea {
    pub(crate) server: Server,
    pub(crate) anna: Account,
    pub(crate) bob: Account,
    pub(crate) at_anna: Client,
    pub(crate) at_bob: Client,
    pub(crate) room: String,
}

impl Tea {
    /// With settings of attachments.
    pub(crate) async fn with(settings: &str) -> Self {
        Self::at(Server::with(&format!("{LIMITS}[attachments]\n{settings}")).await).await
    }

    /// At that server.
    pub(crate) async fn at(server: Server) -> Self {
        let (anna, bob) = (server.sign_up("anna").await, server.sign_up("bob").await);
        let mut at_anna = server.connect(&anna).await;
        let mut at_bob = server.connect(&bob).await;
        let room = at_anna.create_room("Tea").await;
        at_anna.invite(&room, &mut at_bob).await;
        Self { server, anna, bob, at_anna, at_bob, room }
    }
}
