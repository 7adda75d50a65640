//! Routes of accounts and sessions.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{
    AccountCreate, PasswordChange, Registration, SessionCreate, SignedIn, UserView,
};
use folkmoot_protocol::limits::DEVICES_MAX;
use folkmoot_protocol::rpc::RpcError;

use super::Refused;
use super::auth::Signed;
use super::body::Valid;
use super::client_address::ClientAddress;
use crate::account::token::{Token, random_id};
use crate::chat::Identity;
use crate::chat::{control_failure, members, read_failure, signed_out, users};
use crate::demo;
use crate::limits::Guesser;
use crate::server::Server;
use crate::storage::contract::Directory;
use crate::storage::{Account, DeviceId, NewAccount, NewDevice, UserId};
use crate::wire;

/// What a device is called whose owner did not say.
const UNNAMED_DEVICE: &str = "unnamed device";

/// `POST /api/v1/accounts`.
pub(crate) async fn create(
    State(server): State<Arc<Server>>,
    ClientAddress(address): ClientAddress,
    Valid(mut request): Valid<AccountCreate>,
) -> Result<(StatusCode, Json<SignedIn>), Refused> {
    let invite = request.invite.take();
    // Before the password is hashed: strangers must not be able to keep the processor busy.
    match (server.settings.registrations.now(), &invite) {
        (Registration::Closed, _) => {
            let text = "this server takes no new accounts";
            return Err(Refused::new(ErrorCode::PermissionDenied, text));
        }
        (Registration::Invite, None) => {
            return Err(RpcError::invalid("invite", "is needed to sign up here").into());
        }
        (Registration::Invite | Registration::Open, _) => {}
    }
    server.limits.accounts.take(address)?;
    let (new, token, device) = new_account(&server, address, request).await?;
    let (user, id) = (new.id, device.id);
    let made = match invite {
        None => server.directory().create_account(new, device).await.map(|account| (account, None)),
        Some(code) => {
            let made = server.directory().create_invited_account(new, device, code).await;
            made.map(|(account, room)| (account, Some(room)))
        }
    };
    let (account, room) = made.map_err(|error| control_failure(&error))?;
    server.familiar.note(&account.name, address);
    let identity = Identity::new(server, user, id);
    if let Some(room) = room
        && let Err(error) = members::admit(&identity, room).await
    {
        // The account is there; its room can be joined with another invite.
        tracing::warn!(%user, %room, %error, "an invited user could not join");
    }
    let begins_in = demo::welcome(&identity).await?;
    let signed_in = SignedIn { begins_in, ..signed_in(account, &token, id) };
    Ok((StatusCode::CREATED, Json(signed_in)))
}

/// An account as it is to be stored, with its first device.
pub(super) async fn new_account(
    server: &Server,
    from: IpAddr,
    request: AccountCreate,
) -> Result<(NewAccount, Token, NewDevice), RpcError> {
    let AccountCreate { name, password, display_name, device, invite: _ } = request;
    let password_hash = server.passwords.hash(from, password).await?;
    let id = UserId::from_u64(random_id());
    let display_name = display_name.unwrap_or_else(|| name.clone());
    let (token, device) = new_device(server, id, device);
    let at = server.now();
    Ok((NewAccount { id, name, display_name, password_hash, at }, token, device))
}

/// `POST /api/v1/sessions`.
pub(crate) async fn sign_in(
    State(server): State<Arc<Server>>,
    ClientAddress(address): ClientAddress,
    Valid(request): Valid<SessionCreate>,
) -> Result<(StatusCode, Json<SignedIn>), Refused> {
    let SessionCreate { name, password, device } = request;
    let by = match server.familiar.has(&name, address) {
        true => Guesser::Familiar(name.clone(), address),
        false => Guesser::Stranger(address),
    };
    let guess = Guess { name, password, by, from: address };
    let (account, verified) = verified(&server, guess).await?;
    let (token, device) = new_device(&server, account.id, device);
    let id = device.id;
    server.directory().sign_in(device, verified).await.map_err(|error| control_failure(&error))?;
    let trimmed = server.directory().trim_devices(account.id, id, DEVICES_MAX).await;
    if !trimmed.map_err(|error| control_failure(&error))?.is_empty() {
        signed_out::hang_up(&server, account.id).await;
    }
    Ok((StatusCode::CREATED, Json(signed_in(account, &token, id))))
}

/// `POST /api/v1/me/password`.
pub(crate) async fn change_password(
    State(server): State<Arc<Server>>,
    ClientAddress(from): ClientAddress,
    signed: Signed,
    Valid(request): Valid<PasswordChange>,
) -> Result<StatusCode, Refused> {
    signed.identity.count(|limits| &limits.changes)?;
    let PasswordChange { old, new, sign_out_others } = request;
    let (user, device) = (signed.identity.user, signed.identity.device);
    let guess = Guess::again(signed, old, from);
    let (_, verified) = verified(&server, guess).await?;
    let new = server.passwords.hash(from, new).await?;
    let changed =
        server.directory().change_password(user, device, verified, new, sign_out_others).await;
    changed.map_err(|error| control_failure(&error))?;
    if sign_out_others {
        signed_out::hang_up(&server, user).await;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// A password that is to be the one of a name.
pub(super) struct Guess {
    name: String,
    password: String,
    by: Guesser,
    from: IpAddr,
}

impl Guess {
    /// By somebody who is signed in: whoever found a device unlocked must not be able to guess from
    /// it without end. What others guess elsewhere does not count here.
    pub(super) fn again(signed: Signed, password: String, from: IpAddr) -> Self {
        let by = Guesser::Device(signed.identity.device);
        Self { name: signed.account.name, password, by, from }
    }

    /// Whether it counts among what strangers guess of the name: not from where its owner came.
    fn is_strange(&self) -> bool {
        matches!(self.by, Guesser::Stranger(_))
    }
}

/// The account whose password this is, and the hash it was compared with. Only wrong passwords
/// count towards the limits: right ones are no guesses, however many sign in from one address, nor
/// are those that nobody has compared.
pub(super) async fn verified(server: &Server, guess: Guess) -> Result<(Account, String), Refused> {
    let limits = &server.limits;
    // Taken before the answer is known, or as many could be tried at once as one likes.
    limits.log_ins.take(guess.by.clone())?;
    let is_strange = guess.is_strange();
    if is_strange && let Err(refused) = limits.guesses.take(guess.name.clone()) {
        limits.log_ins.give_back(&guess.by);
        return Err(refused.into());
    }
    let Guess { name, password, by, from } = guess;
    let compared = compared(server, &name, password, from).await;
    if !matches!(compared, Ok(None)) {
        limits.log_ins.give_back(&by);
        if is_strange {
            limits.guesses.give_back(&name);
        }
    }
    let wrong = || Refused::new(ErrorCode::Unauthorized, "name or password is wrong");
    let verified = compared?.ok_or_else(wrong)?;
    server.familiar.note(&name, from);
    Ok(verified)
}

/// The account of a name and its password's hash; `None`: the password is another one.
async fn compared(
    server: &Server,
    name: &str,
    password: String,
    from: IpAddr,
) -> Result<Option<(Account, String)>, RpcError> {
    let found = server.directory().credentials(name.to_owned()).await;
    let (account, stored) = found.map_err(|error| read_failure(&error))?.unzip();
    let is_right = server.passwords.verify(from, password, stored.clone()).await?;
    Ok(account.zip(stored).filter(|_| is_right))
}

/// `DELETE /api/v1/sessions/current`.
pub(crate) async fn sign_out(signed: Signed) -> Result<StatusCode, Refused> {
    users::revoke_device(&signed.identity, signed.identity.device).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/v1/me`.
pub(crate) async fn me(signed: Signed) -> Result<Json<UserView>, Refused> {
    signed.identity.count(|limits| &limits.questions)?;
    Ok(Json(wire::user_view(signed.account)))
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
    SignedIn { user, token: token.reveal().to_owned(), device, begins_in: None }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::response::IntoResponse;

    use super::*;
    use crate::attachment::Attachments;
    use crate::config::{Config, Flags};
    use crate::server::Beginning;
    use crate::storage::{Store, StoreOptions};

    #[tokio::test]
    async fn a_password_that_could_not_be_compared_is_no_guess() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&StoreOptions::small(directory.path())).unwrap();
        let data = Some(directory.path().to_owned());
        let config = Config::load(Flags { data, ..Flags::default() }).unwrap();
        let attachments = Attachments::open(&config.attachments).unwrap();
        let server = Server::new(config, store, None, attachments, Beginning::default());
        server.close().await;
        let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        for _ in 0..100 {
            let (name, password) = ("anna".to_owned(), "correct horse".to_owned());
            let guess = Guess { name, password, by: Guesser::Stranger(from), from };
            let refused = verified(&server, guess).await.unwrap_err();
            assert_eq!(refused.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}
