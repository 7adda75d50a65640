//! Routes of the pictures that users show. Sending one needs a session; fetching one needs its id,
//! which only those learn who see its user. What is handed out was made by this server, never the
//! file that was sent.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use folkmoot_protocol::chat::UserView;
use folkmoot_protocol::limits::PICTURE_BYTES_MAX;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{ErrorCode, PictureId};

use super::Refused;
use super::attachments::POLICY;
use super::auth::Signed;
use crate::attachment::portrait;
use crate::chat::profiles;
use crate::server::Server;

/// Another picture has another id.
const FOREVER: &str = "public, max-age=31536000, immutable";

/// `PUT /api/v1/me/picture`, the body is the image.
pub(crate) async fn set(
    signed: Signed,
    picture: Result<Bytes, BytesRejection>,
) -> Result<Json<UserView>, Refused> {
    Ok(Json(profiles::set_picture(&signed.identity, sent(picture)?).await?))
}

/// The body of a request that sends an image, or the limit that it breaks.
pub(super) fn sent(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Refused> {
    body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            RpcError::too_large("picture", PICTURE_BYTES_MAX, "bytes").into()
        }
        _ => Refused::new(ErrorCode::BadRequest, error.body_text()),
    })
}

/// `DELETE /api/v1/me/picture`.
pub(crate) async fn remove(signed: Signed) -> Result<Json<UserView>, Refused> {
    Ok(Json(profiles::remove_picture(&signed.identity).await?))
}

/// `GET /api/v1/pictures/{id}`.
pub(crate) async fn picture(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let missing = |_| Refused::new(ErrorCode::NotFound, "no such picture");
    let id: PictureId = id.parse().map_err(missing)?;
    let (media_type, bytes) = portrait::read(&server, id).await?;
    Ok(for_ever(media_type, bytes))
}

/// Answers an image whose address never leads to another one.
pub(super) fn for_ever(media_type: &'static str, bytes: Bytes) -> Response {
    let mut response = Body::from(bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(FOREVER));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
