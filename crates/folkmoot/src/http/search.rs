//! The route of searches: thin, over the function that serves the socket too.

use axum::Json;
use axum::extract::Query;
use folkmoot_protocol::field::Checked;
use folkmoot_protocol::rpc::{Search, SearchHits};

use super::Refused;
use super::auth::Signed;
use crate::chat;

/// `GET /api/v1/search`.
pub(crate) async fn find(
    signed: Signed,
    Query(request): Query<Search>,
) -> Result<Json<SearchHits>, Refused> {
    request.check()?;
    Ok(Json(chat::search::find(&signed.identity, request).await?))
}
