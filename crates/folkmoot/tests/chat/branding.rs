//! The server's own name, colour and logo: who sets them, who sees them, what is refused.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};

use crate::support::{Account, Server};

const SETTINGS: &str = "PATCH /api/v1/admin/settings";
const LOGO: &str = "PUT /api/v1/admin/logo";

fn png() -> Vec<u8> {
    let image = DynamicImage::from(RgbImage::from_pixel(300, 200, Rgb([200, 30, 90])));
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).expect("an image of these sizes can be encoded");
    bytes.into_inner()
}

/// As those see it who have no account.
async fn shown(server: &Server) -> Value {
    server.http("GET /api/v1/setup", None, "").await.json()["branding"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn name_colour_and_logo_of_a_server_are_for_everybody_and_outlive_a_restart() {
    let mut server = Server::start().await;
    let anna = Account::of(&server.set_up("anna").await);
    assert_eq!(shown(&server).await, json!({}));
    let chosen = json!({"branding": {"name": "Rowing club", "accent": 0}}).to_string();
    assert_eq!(server.http(SETTINGS, Some(&anna.token), &chosen).await.status, 200);
    let with_logo = server.exchange(LOGO, &anna, &[], &png()).await;
    assert_eq!(with_logo.status, 200, "{with_logo:?}");
    let branding = with_logo.json()["branding"].clone();
    assert_eq!((&branding["name"], &branding["accent"]), (&json!("Rowing club"), &json!(0)));
    server.restart().await;
    assert_eq!(shown(&server).await, branding);

    let path = format!("GET /api/v1/logo/{}", branding["logo"].as_str().expect("an id"));
    let logo = server.http(&path, None, "").await;
    assert!(logo.head.contains("content-type: image/"), "{}", logo.head);
    assert!(logo.head.contains("immutable"), "{}", logo.head);

    // Registration stays as it was; what an update leaves out of the branding is Folkmoot's again.
    let emptied = json!({"branding": {}}).to_string();
    let left = server.http(SETTINGS, Some(&anna.token), &emptied).await.json();
    assert_eq!(left["registration"], "open");
    assert_eq!(left["branding"], json!({"logo": branding["logo"]}));
    let removed = server.http("DELETE /api/v1/admin/logo", Some(&anna.token), "").await;
    assert_eq!(removed.json()["branding"], json!({}));
    assert_eq!(server.http(&path, None, "").await.status, 404);
    server.restart().await;
    assert_eq!(shown(&server).await, json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn branding_is_refused_to_others_and_by_the_field_that_breaks_its_rule() {
    let server = Server::start().await;
    let anna = Account::of(&server.set_up("anna").await);
    let bob = server.sign_up("bob").await;
    let good = json!({"branding": {"name": "Bob's"}}).to_string();
    assert_eq!(server.http(SETTINGS, Some(&bob.token), &good).await.status, 403);
    assert_eq!(server.exchange(LOGO, &bob, &[], &png()).await.status, 403);
    for (branding, status, field) in [
        (json!({"name": ""}), 400, "branding.name"),
        (json!({"name": "x".repeat(33)}), 413, "branding.name"),
        (json!({"name": "tea\u{7}"}), 400, "branding.name"),
        (json!({"accent": 360}), 400, "branding.accent"),
    ] {
        let body = json!({ "branding": branding }).to_string();
        let refused = server.http(SETTINGS, Some(&anna.token), &body).await;
        assert_eq!((refused.status, &refused.json()["field"]), (status, &json!(field)), "{body}");
    }
    let refused = server.exchange(LOGO, &anna, &[], b"<svg onload=\"alert(1)\"/>").await;
    assert_eq!(refused.json()["field"], "picture");
    assert_eq!(shown(&server).await, json!({}));
}
