//! Routes of rooms, messages and invites: thin, over the functions that serve the socket too.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use folkmoot_protocol::chat::RoomView;
use folkmoot_protocol::field::Checked;
use folkmoot_protocol::rpc::{
    HistoryGet, HistoryPage, InviteGet, InvitePreview, MessageSend, MessageSent, RoomCreate,
    RoomPublish, Rooms, RoomsList, RpcError, decode_request,
};
use folkmoot_protocol::{ErrorCode, RoomId, Seq};
use serde::Deserialize;

use super::Refused;
use super::auth::Signed;
use super::body::{self, Valid};
use crate::chat;
use crate::server::Server;

/// Header by which a client may give the key of a send.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// `GET /api/v1/rooms`.
pub(crate) async fn list(
    signed: Signed,
    Query(request): Query<RoomsList>,
) -> Result<Json<Rooms>, Refused> {
    request.check()?;
    signed.identity.count(|limits| &limits.questions)?;
    Ok(Json(chat::rooms::list(&signed.identity, request).await?))
}

/// `POST /api/v1/rooms`.
pub(crate) async fn create(
    signed: Signed,
    Valid(request): Valid<RoomCreate>,
) -> Result<(StatusCode, Json<RoomView>), Refused> {
    let room = chat::rooms::create(&signed.identity, request).await?;
    Ok((StatusCode::CREATED, Json(room)))
}

/// `GET /api/v1/rooms/{id}`.
pub(crate) async fn get(
    signed: Signed,
    Path(room): Path<String>,
) -> Result<Json<RoomView>, Refused> {
    signed.identity.count(|limits| &limits.questions)?;
    Ok(Json(chat::rooms::get(&signed.identity, room_id(&room)?).await?))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    before: Option<Seq>,
    after: Option<Seq>,
    around: Option<Seq>,
    limit: Option<u32>,
}

/// `GET /api/v1/rooms/{id}/messages`.
pub(crate) async fn history(
    signed: Signed,
    Path(room): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<HistoryPage>, Refused> {
    let Page { before, after, around, limit } = page;
    let request = HistoryGet { room: room_id(&room)?, before, after, around, limit };
    request.check()?;
    signed.identity.count(|limits| &limits.questions)?;
    Ok(Json(chat::messages::history(&signed.identity, request).await?))
}

/// `POST /api/v1/rooms/{id}/messages`.
pub(crate) async fn send(
    State(server): State<Arc<Server>>,
    signed: Signed,
    Path(room): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<MessageSent>, Refused> {
    let room = room_id(&room)?;
    let bytes = body::read(request, &server).await?;
    let RoomPublish { key, body, reply_to, attachments } = decode_request(&bytes)?;
    let from_header = headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok());
    let key = key.or_else(|| from_header.map(str::to_owned));
    let key = key.ok_or_else(|| RpcError::invalid("key", "is missing"))?;
    let message = MessageSend { room, key, body, reply_to, attachments };
    message.check()?;
    Ok(Json(chat::messages::send(&signed.identity, message).await?))
}

/// `GET /api/v1/invites/{code}`, without a token.
pub(crate) async fn invite(
    State(server): State<Arc<Server>>,
    Path(code): Path<String>,
) -> Result<Json<InvitePreview>, Refused> {
    let request = InviteGet { code };
    request.check()?;
    Ok(Json(chat::invites::get(&server, request.code).await?))
}

pub(super) fn room_id(text: &str) -> Result<RoomId, Refused> {
    text.parse().map_err(|_| Refused::new(ErrorCode::NotFound, "no such room"))
}
