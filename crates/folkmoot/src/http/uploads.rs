//! Routes of files that come in pieces.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request};
use axum::http::StatusCode;
use folkmoot_protocol::chat::UploadProgress;
use folkmoot_protocol::limits::UPLOAD_PIECE_BYTES_MAX;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{AttachmentId, ErrorCode};
use serde::Deserialize;

use super::auth::Signed;
use super::rooms::room_id;
use super::{Refused, body};
use crate::attachment::{of_user, pieces, upload};

#[derive(Debug, Deserialize)]
pub(crate) struct Announcement {
    name: String,
    size: u64,
}

/// `POST /api/v1/rooms/{id}/uploads?name=&size=`.
pub(crate) async fn begin(
    signed: Signed,
    Path(room): Path<String>,
    announced: Result<Query<Announcement>, QueryRejection>,
) -> Result<(StatusCode, Json<UploadProgress>), Refused> {
    let room = room_id(&room)?;
    let wrong = |_| RpcError::invalid("name", "and size (of the file, in bytes) are needed");
    let Query(Announcement { name, size }) = announced.map_err(wrong)?;
    let announced = upload::Announced { room, name, size: Some(size) };
    let begun = of_user::begin(&signed.identity, announced).await?;
    Ok((StatusCode::CREATED, Json(begun)))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Place {
    offset: u64,
    #[serde(default)]
    ahead: bool,
}

/// `PATCH /api/v1/uploads/{id}?offset=&ahead=`, the body is the piece.
pub(crate) async fn append(
    signed: Signed,
    Path(id): Path<String>,
    place: Result<Query<Place>, QueryRejection>,
    request: Request,
) -> Result<Json<UploadProgress>, Refused> {
    let id = upload_id(&id)?;
    let wrong = |_| RpcError::invalid("offset", "of the piece is missing");
    let Query(Place { offset, ahead: is_ahead }) = place.map_err(wrong)?;
    let place = pieces::Place { offset, is_ahead };
    let piece = body::within(request, "piece", UPLOAD_PIECE_BYTES_MAX);
    Ok(Json(of_user::append(&signed.identity, id, place, piece).await?))
}

/// `GET /api/v1/uploads/{id}`.
pub(crate) async fn progress(
    signed: Signed,
    Path(id): Path<String>,
) -> Result<Json<UploadProgress>, Refused> {
    signed.identity.count(|limits| &limits.questions)?;
    Ok(Json(of_user::progress(&signed.identity, upload_id(&id)?).await?))
}

/// `DELETE /api/v1/uploads/{id}`.
pub(crate) async fn cancel(signed: Signed, Path(id): Path<String>) -> Result<StatusCode, Refused> {
    signed.identity.count(|limits| &limits.changes)?;
    of_user::cancel(&signed.identity, upload_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn upload_id(text: &str) -> Result<AttachmentId, Refused> {
    text.parse().map_err(|_| Refused::new(ErrorCode::NotFound, "no such upload"))
}
