//! Routes for those who cannot sign in yet: the first administrator by the token that the server
//! printed, and people with a link to a new password.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{PasswordReset, SetupCreate, SetupState, SignedIn};

use super::Refused;
use super::accounts::{new_account, new_device, signed_in};
use super::body::Valid;
use super::client_address::ClientAddress;
use crate::account::token::Token;
use crate::chat::Identity;
use crate::chat::{control_failure, read_failure, signed_out};
use crate::demo;
use crate::server::Server;
use crate::storage::contract::Administration;

/// `GET /api/v1/setup`.
pub(crate) async fn state(State(server): State<Arc<Server>>) -> Result<Json<SetupState>, Refused> {
    let needed =
        server.administration().needs_setup().await.map_err(|error| read_failure(&error))?;
    let settings = &server.settings;
    let (registration, branding) = (settings.registrations.now(), settings.brand.now());
    let demo = server.open_rooms().is_some();
    Ok(Json(SetupState { needed, demo, registration, branding }))
}

/// `POST /api/v1/setup`.
pub(crate) async fn create(
    State(server): State<Arc<Server>>,
    ClientAddress(from): ClientAddress,
    Valid(request): Valid<SetupCreate>,
) -> Result<(StatusCode, Json<SignedIn>), Refused> {
    let SetupCreate { token, account } = request;
    // Before the password is hashed: strangers must not be able to keep the processor busy.
    if !server.setup.is_opened_by(&token) {
        let text = "the setup link is wrong, was used or belongs to an earlier start of the server";
        return Err(Refused::new(ErrorCode::Unauthorized, text));
    }
    let (new, token, device) = new_account(&server, from, account).await?;
    let (user, id) = (new.id, device.id);
    let account = server.administration().set_up(new, device).await;
    let account = account.map_err(|error| control_failure(&error))?;
    server.familiar.note(&account.name, from);
    let begins_in = demo::welcome(&Identity::new(server, user, id)).await?;
    let signed_in = SignedIn { begins_in, ..signed_in(account, &token, id) };
    Ok((StatusCode::CREATED, Json(signed_in)))
}

/// `POST /api/v1/password-resets`.
pub(crate) async fn reset_password(
    State(server): State<Arc<Server>>,
    ClientAddress(from): ClientAddress,
    Valid(request): Valid<PasswordReset>,
) -> Result<(StatusCode, Json<SignedIn>), Refused> {
    let PasswordReset { token, password, device } = request;
    let spent = || {
        let text = "the link is wrong, was used or has expired; ask for a new one";
        Refused::new(ErrorCode::NotFound, text)
    };
    let token_hash = Token::parse(&token).ok_or_else(spent)?.hash();
    let found = server.administration().password_reset(token_hash, server.now()).await;
    let user = found.map_err(|error| read_failure(&error))?.ok_or_else(spent)?;
    let password_hash = server.passwords.hash(from, password).await?;
    let (token, device) = new_device(&server, user, device);
    let id = device.id;
    let account = server.administration().reset_password(token_hash, password_hash, device).await;
    let account = account.map_err(|error| control_failure(&error))?;
    // Whoever knew the old password may still be connected.
    signed_out::hang_up(&server, user).await;
    Ok((StatusCode::CREATED, Json(signed_in(account, &token, id))))
}
