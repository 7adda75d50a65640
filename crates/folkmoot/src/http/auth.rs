//! Who a request comes from: the bearer token of a signed-in device.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use folkmoot_gateway::Guest;
use folkmoot_protocol::ErrorCode;

use super::Refused;
use crate::account::token::Token;
use crate::chat::Identity;
use crate::chat::read_failure;
use crate::server::Server;
use crate::storage::{Account, UserId};

/// The caller of a route that needs one.
pub(crate) struct Signed {
    pub(crate) identity: Identity,
    pub(crate) account: Account,
}

/// The caller of a route that only administrators may use. Asked of the store at each request, so
/// that who has stepped down is one no more.
pub(crate) struct Administrator(Signed);

impl Administrator {
    pub(crate) fn user(&self) -> UserId {
        self.0.identity.user
    }
}

impl FromRequestParts<Arc<Server>> for Administrator {
    type Rejection = Refused;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &Arc<Server>,
    ) -> Result<Self, Self::Rejection> {
        let signed = Signed::from_request_parts(parts, server).await?;
        match signed.account.is_admin {
            true => Ok(Self(signed)),
            false => Err(Refused::new(ErrorCode::PermissionDenied, "this is for administrators")),
        }
    }
}

impl FromRequestParts<Arc<Server>> for Signed {
    type Rejection = Refused;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &Arc<Server>,
    ) -> Result<Self, Self::Rejection> {
        let token = parts
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or_else(|| {
                Refused::new(ErrorCode::Unauthorized, "send `Authorization: Bearer <token>`")
            })?;
        let wrong = || Refused::new(ErrorCode::Unauthorized, "the token is wrong or revoked");
        let token = Token::parse(token).ok_or_else(wrong)?;
        let found = server.signed_in(&token).await;
        let signed_in = found.map_err(|error| read_failure(&error))?.ok_or_else(wrong)?;
        // Also while a file of theirs is on its way.
        if let Some(Guest(visit)) = parts.extensions.get() {
            visit.has_spoken();
        }
        let account = signed_in.account;
        let identity = Identity::new(server.clone(), account.id, signed_in.device);
        Ok(Self { identity, account })
    }
}
