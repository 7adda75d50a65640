//! Routes of the server's own name, colour and logo. Whoever may see the page that asks for a
//! password may see them: that page shows them.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use folkmoot_protocol::chat::{AdminSettings, Branding};
use folkmoot_protocol::{ErrorCode, PictureId};
use serde_json::{Value, json};

use super::auth::Administrator;
use super::{Refused, assets, pictures};
use crate::attachment::{media_type, portrait};
use crate::chat::control_failure;
use crate::server::Server;

/// `PUT /api/v1/admin/logo`, the body is the image; cut square and encoded anew like a user's
/// picture.
pub(crate) async fn set_logo(
    State(server): State<Arc<Server>>,
    _: Administrator,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<AdminSettings>, Refused> {
    let made = portrait::make(&server, pictures::sent(body)?).await?;
    choose(&server, Some(made.into())).await
}

/// `DELETE /api/v1/admin/logo`.
pub(crate) async fn remove_logo(
    State(server): State<Arc<Server>>,
    _: Administrator,
) -> Result<Json<AdminSettings>, Refused> {
    choose(&server, None).await
}

async fn choose(server: &Server, logo: Option<Bytes>) -> Result<Json<AdminSettings>, Refused> {
    let chosen = server.settings.brand.choose_logo(server.administration(), logo).await;
    chosen.map_err(|error| control_failure(&error))?;
    Ok(Json(server.settings.view()))
}

/// `GET /api/v1/logo/{id}`.
pub(crate) async fn logo(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let bytes = id.parse().ok().and_then(|id: PictureId| server.settings.brand.logo(id));
    let bytes = bytes.ok_or_else(|| Refused::new(ErrorCode::NotFound, "no such logo"))?;
    Ok(pictures::for_ever(media_type::of(&bytes), bytes))
}

/// `GET /manifest.webmanifest`: what an installed client is called, and its icon.
pub(crate) async fn manifest(State(server): State<Arc<Server>>) -> Result<Response, Refused> {
    let own = assets::file("manifest.webmanifest")
        .ok_or_else(|| Refused::new(ErrorCode::NotFound, "built without the web client"))?;
    let headers = [(CONTENT_TYPE, "application/manifest+json"), (CACHE_CONTROL, "no-cache")];
    Ok((headers, named(&own, &server.settings.brand.now())).into_response())
}

/// The client's manifest with the server's name and logo in it.
fn named(own: &[u8], branding: &Branding) -> Vec<u8> {
    let Ok(Value::Object(mut manifest)) = serde_json::from_slice(own) else { return own.to_vec() };
    if let Some(name) = &branding.name {
        manifest.insert("name".into(), json!(name));
        manifest.insert("short_name".into(), json!(name));
    }
    if let Some(logo) = branding.logo {
        let icon = json!({ "src": format!("/api/v1/logo/{logo}"), "sizes": "256x256" });
        manifest.insert("icons".into(), json!([icon]));
    }
    Value::Object(manifest).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_client_bears_the_name_and_logo_of_its_server() {
        let own = br#"{"name":"Folkmoot","short_name":"Folkmoot","icons":[{"src":"/icon.svg"}]}"#;
        let unchanged: Value = serde_json::from_slice(&named(own, &Branding::default())).unwrap();
        assert_eq!(unchanged, serde_json::from_slice::<Value>(own).unwrap());
        let logo = PictureId::from_u64(7);
        let name = Some("Rowing \"club\"".into());
        let branding = Branding { name, logo: Some(logo), accent: None };
        let changed: Value = serde_json::from_slice(&named(own, &branding)).unwrap();
        assert_eq!(changed["short_name"], "Rowing \"club\"");
        assert_eq!(changed["icons"][0]["src"], format!("/api/v1/logo/{logo}"));
        assert_eq!(changed["icons"].as_array().unwrap().len(), 1);
    }
}
