//! Routes by which administrators say how long messages are kept.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use folkmoot_protocol::chat::{RetentionRule, RetentionRules, RoomRetentionRule};

use super::Refused;
use super::auth::Administrator;
use super::body::Valid;
use super::rooms::room_id;
use crate::chat::{control_failure, read_failure};
use crate::server::Server;
use crate::storage::contract::Keeping;
use crate::storage::{Retention, RoomId};

/// `GET /api/v1/admin/retention`.
pub(crate) async fn rules(
    State(server): State<Arc<Server>>,
    _: Administrator,
) -> Result<Json<RetentionRules>, Refused> {
    Ok(Json(all(&server).await?))
}

/// `PUT /api/v1/admin/retention`.
pub(crate) async fn set(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Valid(rule): Valid<RetentionRule>,
) -> Result<Json<RetentionRules>, Refused> {
    let set = server.keeping().set_retention(from_rule(rule)).await;
    set.map_err(|error| control_failure(&error))?;
    tracing::info!(by = %by.user(), ?rule, "how long messages are kept was changed");
    server.keeper.wake();
    Ok(Json(all(&server).await?))
}

/// `PUT /api/v1/admin/rooms/{id}/retention`.
pub(crate) async fn set_of_room(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(room): Path<String>,
    Valid(rule): Valid<RetentionRule>,
) -> Result<StatusCode, Refused> {
    change(&server, &by, room_id(&room)?, Some(from_rule(rule))).await
}

/// `DELETE /api/v1/admin/rooms/{id}/retention`: the room keeps messages as long as the server says.
pub(crate) async fn unset_of_room(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(room): Path<String>,
) -> Result<StatusCode, Refused> {
    change(&server, &by, room_id(&room)?, None).await
}

async fn change(
    server: &Server,
    by: &Administrator,
    room: RoomId,
    rule: Option<Retention>,
) -> Result<StatusCode, Refused> {
    let set = server.keeping().set_room_retention(room, rule).await;
    set.map_err(|error| control_failure(&error))?;
    tracing::info!(by = %by.user(), %room, ?rule, "how long a room keeps messages was changed");
    server.keeper.wake();
    Ok(StatusCode::NO_CONTENT)
}

async fn all(server: &Server) -> Result<RetentionRules, Refused> {
    let of_server = server.keeping().retention().await.map_err(|error| read_failure(&error))?;
    let rooms = server.keeping().room_retentions().await.map_err(|error| read_failure(&error))?;
    let rooms = rooms.into_iter().map(|known| RoomRetentionRule {
        room: known.room,
        name: known.name,
        rule: to_rule(known.retention),
    });
    Ok(RetentionRules { server: to_rule(of_server), rooms: rooms.collect() })
}

fn from_rule(rule: RetentionRule) -> Retention {
    Retention { days: rule.days, messages: rule.messages.map(u64::from) }
}

/// What `folkmoot retention` has set may be more than a browser can say.
fn to_rule(kept: Retention) -> RetentionRule {
    let messages = kept.messages.map(|messages| u32::try_from(messages).unwrap_or(u32::MAX));
    RetentionRule { days: kept.days, messages }
}
