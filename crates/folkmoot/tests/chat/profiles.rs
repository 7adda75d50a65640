//! What people show of themselves: pictures that the server made anew, what they are up to, and who
//! hears of it when.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};

use crate::support::{Account, Bytes, Server};

pub(crate) const LIMITS: &str =
    "[limits]\naccounts_per_minute = 0\nprofile_changes_per_minute = 0\n";

pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let image = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 90]));
    let mut bytes = Vec::new();
    let written =
        DynamicImage::from(image).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png);
    written.expect("an image of these sizes can be encoded");
    bytes
}

/// A PNG whose header promises so many pixels, and which has one.
fn announcing(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = png(1, 1);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let check = bytes[12..29].iter().fold(!0, |check: u32, byte| {
        (0..8).fold(check ^ u32::from(*byte), |check, _| match check & 1 {
            1 => (check >> 1) ^ 0xedb8_8320,
            _ => check >> 1,
        })
    });
    bytes[29..33].copy_from_slice(&(!check).to_be_bytes());
    bytes
}

pub(crate) async fn show(server: &Server, account: &Account, picture: &[u8]) -> Bytes {
    server.exchange("PUT /api/v1/me/picture", account, &[], picture).await
}

/// The id of the picture in a view.
fn picture_of(view: &Value) -> String {
    view["picture"].as_str().expect("a picture").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_made_anew_small_and_square_and_may_be_kept_for_ever() {
    let server = Server::with(LIMITS).await;
    let anna = server.sign_up("anna").await;
    let answer = show(&server, &anna, &png(900, 600)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let id = picture_of(&answer.json());
    // Whoever knows the id sees it, as pages fetch images: without a token.
    let got = server.http(&format!("GET /api/v1/pictures/{id}"), None, "").await;
    assert_eq!(got.status, 200);
    assert!(
        got.head.contains("cache-control: public, max-age=31536000, immutable"),
        "{}",
        got.head
    );
    assert!(got.head.contains("content-type: image/jpeg"), "{}", got.head);
    assert!(got.head.contains("content-security-policy: default-src 'none'; sandbox"));
    let line = format!("GET /api/v1/pictures/{id}");
    let bytes = server.exchange(&line, &anna, &[], b"").await.body;
    let seen = image::load_from_memory(&bytes).expect("an image");
    assert_eq!((seen.width(), seen.height()), (256, 256));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_picture_or_too_large_is_refused_by_name() {
    let server = Server::with(LIMITS).await;
    let anna = server.sign_up("anna").await;
    let script = show(&server, &anna, b"<svg onload=boom()></svg>").await;
    assert_eq!(script.status, 400);
    assert!(script.detail().contains("picture is image/svg+xml by its content"), "{script:?}");
    let cut = show(&server, &anna, &png(64, 64)[..60]).await;
    assert!(cut.detail().contains("picture is damaged"), "{cut:?}");
    let large = show(&server, &anna, &vec![0; 4 * 1024 * 1024 + 1]).await;
    assert_eq!(large.status, 413);
    assert_eq!(large.json()["limit"], 4 * 1024 * 1024);
    let missing = server.http("GET /api/v1/pictures/0000000000007", None, "").await;
    assert_eq!(missing.status, 404);
    let strange = server.http("GET /api/v1/pictures/..%2Ffiles%2Fx", None, "").await;
    assert_eq!(strange.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_makes_more_of_itself_than_a_small_picture() {
    let server = Server::with(LIMITS).await;
    let anna = server.sign_up("anna").await;
    let bomb = show(&server, &anna, &announcing(60_000, 60_000)).await;
    assert_eq!(bomb.status, 413, "{bomb:?}");
    assert_eq!(bomb.json()["limit"], 40_000_000, "{bomb:?}");
    assert!(bomb.detail().contains("pixels"), "{bomb:?}");
    for (what, strange) in [
        ("application/pdf", &b"%PDF-1.7 /OpenAction"[..]),
        ("text/html", b"<html><script>boom()</script></html>"),
        ("application/zip", b"PK\x03\x04 an archive that says it is a picture"),
    ] {
        let refused = show(&server, &anna, strange).await;
        assert_eq!(refused.status, 400, "{what}: {refused:?}");
        assert!(refused.detail().contains(what), "{what}: {refused:?}");
    }
    assert_eq!(show(&server, &anna, b"").await.status, 400);
    // A picture with a page behind its last pixel, as are files with two meanings.
    let two_faced = [&png(40, 40)[..], b"<html><script>boom()</script></html>"].concat();
    let id = picture_of(&show(&server, &anna, &two_faced).await.json());
    let shown = server.exchange(&format!("GET /api/v1/pictures/{id}"), &anna, &[], b"").await;
    assert!(!shown.body.windows(4).any(|bytes| bytes == b"boom"));
    // Nothing of what was refused is left on the disk.
    let kept = std::fs::read_dir(server.data().join("attachments/portraits")).expect("a directory");
    assert_eq!(kept.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_is_replaced_or_removed_is_gone() {
    let mut server = Server::with(LIMITS).await;
    let anna = server.sign_up("anna").await;
    let first = picture_of(&show(&server, &anna, &png(8, 8)).await.json());
    let second = picture_of(&show(&server, &anna, &png(9, 9)).await.json());
    assert_eq!(server.http(&format!("GET /api/v1/pictures/{first}"), None, "").await.status, 404);
    server.restart().await;
    let me = server.http("GET /api/v1/me", Some(&anna.token), "").await;
    assert_eq!(picture_of(&me.json()), second);
    let removed = server.http("DELETE /api/v1/me/picture", Some(&anna.token), "").await;
    assert!(removed.json()["picture"].is_null(), "{removed:?}");
    assert_eq!(server.http(&format!("GET /api/v1/pictures/{second}"), None, "").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_look_at_a_room_hear_at_once_what_a_member_shows() {
    let server = Server::with(LIMITS).await;
    let anna = server.sign_up("anna").await;
    let mut at_anna = server.connect(&anna).await;
    let mut bob = server.join("bob").await;
    let room = at_anna.create_room("Tea").await;
    at_anna.invite(&room, &mut bob).await;
    bob.subscribe(&room).await;
    let status = json!({"emoji": "🌴", "text": "on the water", "until": 4_102_444_800_000_u64});
    at_anna.call("status.set", status.clone()).await;
    let told = bob.event(&format!("room:{room}"), "profile").await;
    assert_eq!((&told["user"], &told["status"]), (&json!(anna.id), &status));
    let own = at_anna.event(&format!("user:{}", anna.id), "profile").await;
    assert_eq!(own["status"], status);
    let picture = picture_of(&show(&server, &anna, &png(8, 8)).await.json());
    let told = bob.event(&format!("room:{room}"), "profile").await;
    assert_eq!((&told["picture"], &told["status"]), (&json!(picture), &status));
    // Who comes later finds both in the list.
    let members = bob.call("room.members", json!({"room": room})).await;
    let members = members["members"].as_array().expect("members");
    let listed = members.iter().find(|member| member["name"] == "anna").expect("anna");
    assert_eq!((&listed["picture"], &listed["status"]), (&json!(picture), &status));
    at_anna.call("status.set", json!({"emoji": "", "text": ""})).await;
    let told = bob.event(&format!("room:{room}"), "profile").await;
    assert!(told["status"].is_null(), "{told}");
    for refused in [json!({"emoji": "two words", "text": ""}), json!({"emoji": "", "text": " x"})] {
        assert_eq!(at_anna.fail("status.set", refused).await.code, 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_leaves_neither_picture_nor_status() {
    let server = Server::with(LIMITS).await;
    let anna = server.sign_up("anna").await;
    let mut at_anna = server.connect(&anna).await;
    let mut bob = server.join("bob").await;
    at_anna.call("status.set", json!({"emoji": "🌴", "text": "xylophagous"})).await;
    let id = picture_of(&show(&server, &anna, &png(8, 8)).await.json());
    let wish = json!({"password": "correct horse", "messages": "keep"}).to_string();
    let gone = server.http("POST /api/v1/me/deletion", Some(&anna.token), &wish).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    let left = bob.call("user.get", json!({"user": anna.id})).await;
    assert!(left["picture"].is_null() && left["status"].is_null(), "{left}");
    server.erased().await;
    assert_eq!(server.http(&format!("GET /api/v1/pictures/{id}"), None, "").await.status, 404);
    let kept = std::fs::read_dir(server.data().join("attachments/portraits")).expect("a directory");
    assert_eq!(kept.count(), 0);
}
