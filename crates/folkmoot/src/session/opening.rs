//! Opens a session: checks the token, starts the Session actor, subscribes the user's own stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use althing::ActorRef;
use folkmoot_gateway::{Opening, Outbox, encode};
use folkmoot_protocol::chat::ConnectData;
use folkmoot_protocol::frame::{ConnectRequest, ConnectResult, Outcome, Reply, SubscribeResult};
use folkmoot_protocol::rpc::encode_payload;
use folkmoot_protocol::{Channel, DisconnectCode, Format};
use tokio::time::timeout;

use super::abroad::Abroad;
use super::{Caller, Comings, Session, SessionCalls};
use crate::account::token::{Token, random_id};
use crate::chat::{Identity, user_failure};
use crate::connection::{Ear, Line};
use crate::room::OnlineClient;
use crate::server::Server;
use crate::storage::SignedIn;
use crate::storage::contract::StreamLog;
use crate::storage::record::Record;
use crate::storage::{DeviceId, Offset, UserId};
use crate::stream::Since;
use crate::user::{Attachment, UserCalls, UserError};

/// How long a connection may take to be let in once it is known whose it is: a node that is asked may
/// be lost, and has a successor within this time.
const OPENING_TIMEOUT: Duration = Duration::from_secs(30);

/// Admits a connection, or says with which code to close it.
pub(crate) async fn open(
    server: Arc<Server>,
    opening: Opening,
) -> Result<(Arc<Caller>, Reply), DisconnectCode> {
    let Opening { id, outbox, format, request, .. } = opening;
    Newcomer { server, outbox, format, request }.connect(id).await
}

/// A connection that has said who it is.
struct Newcomer {
    server: Arc<Server>,
    outbox: Arc<Outbox>,
    format: Format,
    request: ConnectRequest,
}

impl Newcomer {
    async fn connect(self, id: u32) -> Result<(Arc<Caller>, Reply), DisconnectCode> {
        let signed_in = self.authenticate().await?;
        let SignedIn { account, device, .. } = signed_in;
        // Nobody waits for it: when a device was last seen may be a moment old after a crash.
        let seen = Record::DeviceSeen { device, at: self.server.now() };
        drop(self.server.streams().append(self.server.streams().write_epoch(), &seen));
        let user = account.id;
        let channel = Channel::User(user);
        let client: Arc<str> = format!("{:016x}{:016x}", random_id(), random_id()).into();
        let session = self.server.node().spawn(Session::new(
            self.server.clone(),
            client.clone(),
            user,
            self.format,
            self.outbox.clone(),
        ));
        let ear = self.go_abroad(&session, device, &account.display_name).await;
        let begun = self.begin(&session, user, device, &client, ear.clone());
        let begun = tokio::select! {
            begun = timeout(OPENING_TIMEOUT, begun) => begun.unwrap_or_else(|_| {
                Err(internal("it took too long").into())
            }),
            // Nobody waits for it any more.
            () = self.outbox.closed() => Err(DisconnectCode::ConnectionClosed.into()),
        };
        let stream = match begun {
            Ok(stream) => stream,
            Err(refused) => {
                // Nobody else knows of it, and it would stay for as long as the server runs.
                session.stop().await;
                return Err(self.refuse(id, refused).await);
            }
        };
        // Whoever signed the device out meanwhile has looked for connections before this one was
        // among them; from here on they find it.
        if let Err(code) = self.authenticate().await {
            session.stop().await;
            return Err(code);
        }
        let position = Offset::from_u64(stream.offset);
        let gateway = &self.server.config.gateway;
        let result = ConnectResult {
            client: client.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ping: u32::try_from(gateway.ping.as_secs()).unwrap_or(u32::MAX),
            pong: true,
            data: encode_payload(&ConnectData {
                administrator: account.is_admin,
                now: self.server.now(),
            }),
            subs: BTreeMap::from([(channel.to_string(), stream)]),
            ..ConnectResult::default()
        };
        let identity = Identity::new(self.server.clone(), user, device);
        let identity = Identity { client: Some(client.clone()), ..identity };
        let node = ear.as_ref().map_or(0, Ear::node);
        let name = account.display_name.into();
        let caller = Caller {
            identity,
            online: Arc::new(OnlineClient { client, user, name, node }),
            format: self.format,
            outbox: self.outbox,
            session,
            ear,
            position,
        };
        Ok((Arc::new(caller), Reply::ok(id, Outcome::Connect(result))))
    }

    /// Has the session follow the user's own stream.
    async fn begin(
        &self,
        session: &ActorRef<Session>,
        user: UserId,
        device: DeviceId,
        client: &Arc<str>,
        ear: Option<ActorRef<Ear>>,
    ) -> Result<SubscribeResult, NotBegun> {
        let channel = Channel::User(user);
        let joined = session.join(channel, Comings::Unwanted).await;
        joined.map_err(internal)?.map_err(internal)?;
        self.server.heard(channel).await.map_err(internal)?;
        let line = Line::Here { outbox: self.outbox.clone(), ear };
        let connection = Attachment { client: client.clone(), device, line };
        self.subscribe_user(user, connection).await
    }

    /// Makes the connection known to other nodes, if there are any.
    async fn go_abroad(
        &self,
        session: &ActorRef<Session>,
        device: DeviceId,
        name: &str,
    ) -> Option<ActorRef<Ear>> {
        self.server.nodes()?;
        let token = Token::parse(&self.request.token)?.hash();
        let ear = Ear::new(self.outbox.clone(), session.recipient());
        let ear = self.server.node().spawn(ear);
        let abroad = Abroad::new(ear.clone(), device, token, name);
        if session.go_abroad(abroad).await.is_err() {
            ear.kill();
        }
        Some(ear)
    }

    /// Says why before the connection is closed: the code alone does not name the limit.
    async fn refuse(&self, id: u32, refused: NotBegun) -> DisconnectCode {
        match refused {
            NotBegun::Closed(code) => code,
            NotBegun::TooMany(error) => {
                let reply = Reply::failed(id, user_failure(error));
                self.outbox.reply(encode(self.format, &reply)).await;
                DisconnectCode::ConnectionLimit
            }
        }
    }

    async fn authenticate(&self) -> Result<SignedIn, DisconnectCode> {
        if self.request.token.is_empty() {
            return Err(DisconnectCode::BadRequest);
        }
        let token = Token::parse(&self.request.token).ok_or(DisconnectCode::InvalidToken)?;
        let found = self.server.signed_in(&token).await.map_err(internal)?;
        found.ok_or(DisconnectCode::InvalidToken)
    }

    async fn subscribe_user(
        &self,
        user: UserId,
        connection: Attachment,
    ) -> Result<SubscribeResult, NotBegun> {
        let wanted = self.request.subs.get(&Channel::User(user).to_string());
        let since = wanted.filter(|request| request.recover).map(|request| Since {
            offset: Offset::from_u64(request.offset),
            epoch: request.epoch.clone(),
        });
        let attached = self.server.user(user).attach(connection, since).await;
        match attached.map_err(internal)? {
            Ok(attached) => Ok(attached.into_result(self.server.epoch())),
            Err(error @ UserError::TooManyConnections(_)) => Err(NotBegun::TooMany(error)),
            Err(error) => Err(internal(error).into()),
        }
    }
}

/// Why a session was not begun.
enum NotBegun {
    Closed(DisconnectCode),
    /// Of this user's connections.
    TooMany(UserError),
}

impl From<DisconnectCode> for NotBegun {
    fn from(code: DisconnectCode) -> Self {
        Self::Closed(code)
    }
}

fn internal(error: impl std::fmt::Display) -> DisconnectCode {
    tracing::warn!(%error, "a connection could not be opened");
    DisconnectCode::ServerError
}
