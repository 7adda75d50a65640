//! Routes of the administration: users, rooms, storage, live counters, the log of moderation. Each
//! takes an [`Administrator`], so no handler can forget to ask. Content of rooms is not among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use folkmoot_protocol::chat::{
    ActorCount, AdminRooms, AdminSettings, AdminSettingsUpdate, AdminUser, AdminUserUpdate,
    AdminUsers, LiveView, ModerationPage, ResetLink, StoragePart, StorageView,
};
use folkmoot_protocol::field;
use folkmoot_protocol::limits::{ADMIN_PAGE_MAX, PASSWORD_RESET_EXPIRES_IN_S, QUERY_CHARS_MAX};
use folkmoot_protocol::{DisconnectCode, ErrorCode, RoomId};
use serde::Deserialize;

use super::Refused;
use super::auth::Administrator;
use super::body::Valid;
use crate::account::token::Token;
use crate::chat::{control_failure, failure, read_failure, signed_out};
use crate::pulse::quantile_us;
use crate::server::Server;
use crate::storage::contract::{Administration, ChangeFeed};
use crate::storage::{Part, UnixMillis, UserChange, UserId};
use crate::user::UserCalls;
use crate::wire;

/// Which page of a listing.
#[derive(Debug, Deserialize)]
pub(crate) struct Page<After> {
    #[serde(default)]
    search: String,
    after: Option<After>,
    limit: Option<u32>,
}

impl<After> Page<After> {
    fn check(&self) -> Result<u32, Refused> {
        field::chars("search", &self.search, 0, QUERY_CHARS_MAX)?;
        page_len(self.limit)
    }
}

fn page_len(limit: Option<u32>) -> Result<u32, Refused> {
    let limit = limit.unwrap_or(ADMIN_PAGE_MAX);
    field::between("limit", limit, 1, ADMIN_PAGE_MAX)?;
    Ok(limit)
}

/// Cuts off what was read beyond the page; says after which entry the next page begins.
fn cut<T, N>(rows: &mut Vec<T>, limit: u32, name: impl Fn(&T) -> N) -> Option<N> {
    let is_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    rows.last().filter(|_| is_more).map(name)
}

/// `GET /api/v1/admin/users`.
pub(crate) async fn users(
    State(server): State<Arc<Server>>,
    _: Administrator,
    Query(page): Query<Page<String>>,
) -> Result<Json<AdminUsers>, Refused> {
    let limit = page.check()?;
    let rows = server
        .administration()
        .user_rows(page.search, page.after.unwrap_or_default(), limit + 1)
        .await;
    let mut rows = rows.map_err(|error| read_failure(&error))?;
    let next = cut(&mut rows, limit, |row| row.account.name.clone());
    Ok(Json(AdminUsers { users: rows.into_iter().map(wire::admin_user).collect(), next }))
}

/// `PATCH /api/v1/admin/users/{id}`.
pub(crate) async fn update_user(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(user): Path<String>,
    Valid(request): Valid<AdminUserUpdate>,
) -> Result<Json<AdminUser>, Refused> {
    let user = user_id(&user)?;
    let change = match (request.administrator, request.disabled) {
        (Some(on), _) => UserChange::Administrator(on),
        (None, on) => UserChange::Disabled(on.unwrap_or_default()),
    };
    change_user(&server, &by, user, change).await?;
    let row = server.administration().user_row(user).await.map_err(|error| read_failure(&error))?;
    Ok(Json(wire::admin_user(row.ok_or_else(no_such_user)?)))
}

/// `DELETE /api/v1/admin/users/{id}/devices`.
pub(crate) async fn sign_out(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(user): Path<String>,
) -> Result<StatusCode, Refused> {
    change_user(&server, &by, user_id(&user)?, UserChange::SignOut).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn change_user(
    server: &Arc<Server>,
    by: &Administrator,
    user: UserId,
    change: UserChange,
) -> Result<(), Refused> {
    let changed = server.administration().change_user(by.user(), user, change, server.now()).await;
    let has_changed = changed.map_err(|error| control_failure(&error))?;
    match change {
        UserChange::Administrator(_) if has_changed => {
            // Connecting again, the client learns what it may do.
            let told = server.user(user).disconnect(DisconnectCode::ForceReconnect).await;
            told.map_err(|error| failure(&error))?;
        }
        UserChange::Administrator(_) => {}
        // Somebody may have changed it before and not come to tell.
        UserChange::Disabled(_) | UserChange::SignOut => {
            signed_out::hang_up(server, user).await;
        }
    }
    Ok(())
}

/// `POST /api/v1/admin/users/{id}/password-reset`.
pub(crate) async fn reset_link(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(user): Path<String>,
) -> Result<(StatusCode, Json<ResetLink>), Refused> {
    let (user, at, token) = (user_id(&user)?, server.now(), Token::random());
    let life_ms = u64::from(PASSWORD_RESET_EXPIRES_IN_S) * 1_000;
    let expires_at = UnixMillis::from_u64(at.as_u64() + life_ms);
    let made = server
        .administration()
        .create_password_reset(by.user(), user, token.hash(), at, expires_at)
        .await;
    made.map_err(|error| control_failure(&error))?;
    Ok((StatusCode::CREATED, Json(ResetLink { token: token.reveal().to_owned(), expires_at })))
}

/// `GET /api/v1/admin/rooms`.
pub(crate) async fn rooms(
    State(server): State<Arc<Server>>,
    _: Administrator,
    Query(page): Query<Page<RoomId>>,
) -> Result<Json<AdminRooms>, Refused> {
    let limit = page.check()?;
    let rows = server.administration().room_rows(page.search, page.after, limit + 1).await;
    let mut rows = rows.map_err(|error| read_failure(&error))?;
    let next = cut(&mut rows, limit, |row| row.id);
    Ok(Json(AdminRooms { rooms: rows.into_iter().map(wire::admin_room).collect(), next }))
}

/// `GET /api/v1/admin/settings`.
pub(crate) async fn settings(
    State(server): State<Arc<Server>>,
    _: Administrator,
) -> Json<AdminSettings> {
    Json(server.settings.view())
}

/// `PATCH /api/v1/admin/settings`.
pub(crate) async fn update_settings(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Valid(request): Valid<AdminSettingsUpdate>,
) -> Result<Json<AdminSettings>, Refused> {
    let AdminSettingsUpdate { registration, branding } = request;
    let (settings, store) = (&server.settings, server.administration());
    if let Some(registration) = registration {
        let chosen = settings.registrations.choose(store, registration).await;
        chosen.map_err(|error| control_failure(&error))?;
        tracing::info!(by = %by.user(), ?registration, "registration was changed");
    }
    if let Some(branding) = branding {
        let chosen = settings.brand.choose(store, branding).await;
        chosen.map_err(|error| control_failure(&error))?;
    }
    Ok(Json(server.settings.view()))
}

/// `GET /api/v1/admin/storage`.
pub(crate) async fn storage(
    State(server): State<Arc<Server>>,
    _: Administrator,
) -> Result<Json<StorageView>, Refused> {
    let totals = server.administration().totals().await.map_err(|error| read_failure(&error))?;
    let store = server.administration().clone();
    let database = store.database_bytes().await.map_err(|error| read_failure(&error))?;
    let mut usage = server.node().blocking(move || store.usage()).await.map_err(|error| {
        tracing::error!(%error, "the data directory cannot be counted");
        Refused::new(ErrorCode::StoreUnavailable, format!("the data directory: {error}"))
    })?;
    if let Some(bytes) = database {
        usage.parts.push(Part { name: "database".to_owned(), bytes });
        usage.parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    }
    let stats = server.changes().stats();
    let part = |part: Part| StoragePart { name: part.name, bytes: part.bytes };
    Ok(Json(StorageView {
        parts: usage.parts.into_iter().map(part).collect(),
        free_bytes: usage.free_bytes,
        disk_bytes: usage.disk_bytes,
        segments: wire::count(stats.segments),
        lag_bytes: stats.lag_bytes,
        users: totals.users,
        rooms: totals.rooms,
        directs: totals.directs,
        messages: totals.messages,
        body_bytes: totals.body_bytes,
    }))
}

/// `GET /api/v1/admin/live`.
pub(crate) async fn live(State(server): State<Arc<Server>>, _: Administrator) -> Json<LiveView> {
    let appends = server.pulse.appends();
    let mut kinds: BTreeMap<String, ActorCount> = BTreeMap::new();
    for kind in server.node().metrics().kinds {
        let count = kinds.entry(kind.name.to_string()).or_insert_with(|| ActorCount {
            name: kind.name.to_string(),
            live: 0,
            waiting: 0,
            handled: 0,
        });
        count.live += kind.live();
        count.waiting += kind.depth;
        count.handled += kind.handled;
    }
    let mut actors: Vec<ActorCount> = kinds.into_values().collect();
    actors.sort_by(|a, b| b.live.cmp(&a.live).then_with(|| a.name.cmp(&b.name)));
    Json(LiveView {
        at: server.now(),
        started_at: server.started_at,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        connections: wire::count(*server.connections().borrow()),
        messages_total: server.metrics.messages_total(),
        appends_total: server.administration().append_times().count(),
        append_p50_us: quantile_us(&appends, 0.5),
        append_p99_us: quantile_us(&appends, 0.99),
        seconds: server.pulse.seconds(),
        actors,
    })
}

/// Which page of the log.
#[derive(Debug, Deserialize)]
pub(crate) struct LogPage {
    before: Option<u64>,
    limit: Option<u32>,
}

/// `GET /api/v1/admin/moderation`.
pub(crate) async fn moderation(
    State(server): State<Arc<Server>>,
    _: Administrator,
    Query(page): Query<LogPage>,
) -> Result<Json<ModerationPage>, Refused> {
    let limit = page_len(page.limit)?;
    let entries = server.administration().moderation(page.before, limit + 1).await;
    let mut entries = entries.map_err(|error| read_failure(&error))?;
    let next = cut(&mut entries, limit, |entry| entry.id);
    let entries = entries.into_iter().map(wire::moderation_entry).collect();
    Ok(Json(ModerationPage { entries, next }))
}

fn user_id(text: &str) -> Result<UserId, Refused> {
    text.parse().map_err(|_| no_such_user())
}

fn no_such_user() -> Refused {
    Refused::new(ErrorCode::NotFound, "no such user")
}
