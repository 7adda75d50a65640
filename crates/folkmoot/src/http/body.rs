//! Request bodies: JSON, checked by the same rules as rpc requests.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::field::Checked;
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::rpc::{RpcError, decode_request};
use serde::de::DeserializeOwned;

use super::Refused;

/// A body that keeps its rules.
pub(crate) struct Valid<T>(pub(crate) T);

impl<S: Send + Sync, T: Checked + DeserializeOwned> FromRequest<S> for Valid<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let bytes = read(request, state).await?;
        Ok(Self(decode_request(&bytes)?))
    }
}

/// The bytes of a body within the limit.
pub(crate) async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Refused> {
    Bytes::from_request(request, state).await.map_err(|error| refused(&error))
}

/// The bytes of `field`, which is the body of a route with a limit of its own.
pub(super) async fn within(
    request: Request,
    field: &'static str,
    bytes_max: usize,
) -> Result<Bytes, RpcError> {
    Bytes::from_request(request, &()).await.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => RpcError::too_large(field, bytes_max, "bytes"),
        _ => RpcError::new(ErrorCode::BadRequest, error.body_text()),
    })
}

fn refused(error: &BytesRejection) -> Refused {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            RpcError::too_large("body", FRAME_BYTES_MAX, "bytes").into()
        }
        _ => Refused::new(ErrorCode::BadRequest, error.body_text()),
    }
}
