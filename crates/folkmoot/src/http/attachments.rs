//! Routes of files. What somebody uploaded is never a page of ours: nothing but a decoded image is
//! shown in the browser, types are not guessed, scripts cannot run in it, and nothing of it is
//! cached on a shared computer.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, Request};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, RANGE,
};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use folkmoot_protocol::chat::{Attachment, ServerLimits};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{AttachmentId, ErrorCode};
use serde::Deserialize;

use super::Refused;
use super::auth::Signed;
use super::range::{Wanted, wanted};
use super::rooms::room_id;
use crate::attachment::{self, download, upload};

/// Even if somebody opens a file as a page, it is one without origin, scripts or anything to load.
pub(super) const POLICY: &str = "default-src 'none'; sandbox";

/// `GET /api/v1/limits`.
pub(crate) async fn limits(signed: Signed) -> Result<Json<ServerLimits>, Refused> {
    signed.identity.count(|limits| &limits.questions)?;
    Ok(Json(attachment::limits(&signed.identity).await?))
}

#[derive(Debug, Deserialize)]
pub(crate) struct Named {
    name: String,
}

/// `POST /api/v1/rooms/{id}/attachments?name=`, the body is the file.
pub(crate) async fn upload(
    signed: Signed,
    Path(room): Path<String>,
    named: Result<Query<Named>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<(StatusCode, Json<Attachment>), Refused> {
    let room = room_id(&room)?;
    let Query(Named { name }) = named.map_err(|_| RpcError::invalid("name", "is missing"))?;
    let size = request.headers().get(CONTENT_LENGTH);
    let size = size.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let announced = upload::Announced { room, name, size };
    let body = request.into_body().into_data_stream();
    let stored = upload::receive(&signed.identity, announced, body).await?;
    Ok((StatusCode::CREATED, Json(stored)))
}

/// `GET /api/v1/attachments/{id}`.
pub(crate) async fn file(
    signed: Signed,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    signed.identity.count(|limits| &limits.questions)?;
    let id = attachment_id(&id)?;
    let file = download::readable(&signed.identity, id).await?;
    let range = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let (status, part) = match wanted(range, file.size) {
        Wanted::All => (StatusCode::OK, 0..file.size),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Unsatisfiable => {
            let size = [(CONTENT_RANGE, format!("bytes */{}", file.size))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, size).into_response());
        }
    };
    let content_range = format!("bytes {}-{}/{}", part.start, part.end - 1, file.size);
    let length = part.end - part.start;
    let bytes = download::bytes(&signed.identity, id, part).await?;
    let kind = if file.picture.is_some() { "inline" } else { "attachment" };
    let mut response = guarded(
        &file.media_type,
        attachment::disposition(kind, &file.name),
        Body::from_stream(bytes),
    );
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    if status == StatusCode::PARTIAL_CONTENT {
        headers.insert(CONTENT_RANGE, text(content_range));
    }
    Ok(response)
}

/// `GET /api/v1/attachments/{id}/thumbnail`.
pub(crate) async fn thumbnail(signed: Signed, Path(id): Path<String>) -> Result<Response, Refused> {
    signed.identity.count(|limits| &limits.questions)?;
    let (media_type, bytes) = download::thumbnail(&signed.identity, attachment_id(&id)?).await?;
    Ok(guarded(media_type, "inline".to_owned(), Body::from(bytes)))
}

fn guarded(media_type: &str, disposition: String, body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    // Text without a character set would be read in whatever the browser believes.
    let content_type = match media_type {
        "text/plain" => "text/plain; charset=utf-8".to_owned(),
        other => other.to_owned(),
    };
    headers.insert(CONTENT_TYPE, text(content_type));
    headers.insert(CONTENT_DISPOSITION, text(disposition));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(header::HeaderName::from_static("cross-origin-resource-policy"), same_origin);
    response
}

fn text(value: String) -> HeaderValue {
    HeaderValue::try_from(value).expect("names are encoded and types are ours")
}

fn attachment_id(text: &str) -> Result<AttachmentId, Refused> {
    text.parse().map_err(|_| Refused::new(ErrorCode::NotFound, "no such file"))
}
