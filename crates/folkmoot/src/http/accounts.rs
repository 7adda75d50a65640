//! Routes of accounts and sessions.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{AccountCreate, SessionCreate, SignedIn, UserView};

use super::Refused;
use super::auth::Signed;
use super::body::Valid;
use crate::account::password;
use crate::account::token::{Token, random_id};
use crate::demo;
use crate::server::Server;
use crate::session::Identity;
use crate::session::rpc::{control_failure, read_failure, users};
use crate::storage::{Account, DeviceId, NewAccount, NewDevice, UserId};
use crate::wire;

/// What a device is called whose owner did not say.
const UNNAMED_DEVICE: &str = "unnamed device";

/// `POST /api/v1/accounts`.
pub(crate) async fn create(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Valid(request): Valid<AccountCreate>,
) -> Result<(StatusCode, Json<SignedIn>), Refused> {
    server.limits.accounts.take(peer.ip().to_string(), server.now())?;
    let (new, token, device) = new_account(&server, request).await;
    let (user, id) = (new.id, device.id);
    let account = server.store.create_account(new, device).await;
    let account = account.map_err(|error| control_failure(&error))?;
    demo::welcome(&Identity::new(server, user, id)).await?;
    Ok((StatusCode::CREATED, Json(signed_in(account, &token, id))))
}

/// An account as it is to be stored, with its first device.
pub(super) async fn new_account(
    server: &Server,
    request: AccountCreate,
) -> (NewAccount, Token, NewDevice) {
    let AccountCreate { name, password, display_name, device } = request;
    let password_hash = server.node().blocking(move || password::hash(&password)).await;
    let id = UserId::from_u64(random_id());
    let display_name = display_name.unwrap_or_else(|| name.clone());
    let (token, device) = new_device(server, id, device);
    (NewAccount { id, name, display_name, password_hash, at: server.now() }, token, device)
}

/// `POST /api/v1/sessions`.
pub(crate) async fn sign_in(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Valid(request): Valid<SessionCreate>,
) -> Result<(StatusCode, Json<SignedIn>), Refused> {
    let SessionCreate { name, password, device } = request;
    // By name and by address: neither one account nor many may be guessed at.
    for key in [format!("name {name}"), format!("address {}", peer.ip())] {
        server.limits.log_ins.take(key, server.now())?;
    }
    let found = server.store.credentials(name).await.map_err(|error| read_failure(&error))?;
    let (account, stored) = found.unzip();
    let is_right =
        server.node().blocking(move || password::verify(&password, stored.as_deref())).await;
    let Some(account) = account.filter(|_| is_right) else {
        return Err(Refused::new(ErrorCode::Unauthorized, "name or password is wrong"));
    };
    let (token, device) = new_device(&server, account.id, device);
    let id = device.id;
    server.store.add_device(device).await.map_err(|error| control_failure(&error))?;
    Ok((StatusCode::CREATED, Json(signed_in(account, &token, id))))
}

/// `DELETE /api/v1/sessions/current`.
pub(crate) async fn sign_out(signed: Signed) -> Result<StatusCode, Refused> {
    users::revoke_device(&signed.identity, signed.identity.device).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/v1/me`.
pub(crate) async fn me(signed: Signed) -> Json<UserView> {
    Json(wire::user_view(signed.account))
}

/// A device to sign in, and its token.
pub(super) fn new_device(
    server: &Server,
    user: UserId,
    label: Option<String>,
) -> (Token, NewDevice) {
    let token = Token::random();
    let device = NewDevice {
        id: DeviceId::from_u64(random_id()),
        user,
        label: label.unwrap_or_else(|| UNNAMED_DEVICE.to_owned()),
        token_hash: token.hash(),
        at: server.now(),
    };
    (token, device)
}

pub(super) fn signed_in(account: Account, token: &Token, device: DeviceId) -> SignedIn {
    let (user, device) = (wire::user_view(account), device);
    SignedIn { user, token: token.reveal().to_owned(), device }
}
