//! Files in messages: limits that are named, types by content, who may read, what survives and what
//! is removed.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use serde_json::json;

use crate::support::{Account, Bytes, Server, Tea};

impl Tea {
    async fn upload(&self, name: &str, file: &[u8]) -> Bytes {
        self.server.upload(&self.anna, &self.room, name, file).await
    }

    /// Uploads a file that must be taken; returns its id.
    async fn stored(&self, name: &str, file: &[u8]) -> String {
        let answer = self.upload(name, file).await;
        assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
        answer.json()["id"].as_str().expect("an id").to_owned()
    }

    async fn send(&mut self, key: &str, files: &[&str]) -> u64 {
        let message = json!({"room": self.room, "key": key, "body": "", "attachments": files});
        self.at_anna.call("message.send", message).await["seq"].as_u64().expect("a number")
    }

    async fn get(&self, account: &Account, path: &str) -> Bytes {
        self.server.exchange(&format!("GET /api/v1/attachments/{path}"), account, &[], b"").await
    }
}

fn photo(width: u32, height: u32) -> Vec<u8> {
    png(RgbImage::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, 90])))
}

fn png(image: RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written =
        DynamicImage::from(image).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png);
    written.expect("an image of these sizes can be encoded");
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_reaches_every_member_with_its_thumbnail() {
    let mut tea = Tea::with("").await;
    let photo = photo(900, 600);
    let id = tea.stored("harbour.png", &photo).await;
    let room = tea.room.clone();
    tea.at_bob.subscribe(&room).await;
    tea.send("k", &[&id]).await;
    let event = tea.at_bob.message(&room).await;
    let file = &event["attachments"][0];
    assert_eq!(file["name"], "harbour.png");
    assert_eq!(file["media_type"], "image/png");
    assert_eq!(file["size"], photo.len());
    assert_eq!((&file["width"], &file["height"]), (&json!(900), &json!(600)));
    assert_eq!(file["url"], format!("/api/v1/attachments/{id}"));
    let whole = tea.get(&tea.bob, &id).await;
    assert_eq!((whole.status, whole.body), (200, photo));
    let small = tea.get(&tea.bob, &format!("{id}/thumbnail")).await;
    assert!(small.head.contains("content-type: image/jpeg"), "{}", small.head);
    let small = image::load_from_memory(&small.body).unwrap();
    assert_eq!((small.width(), small.height()), (640, 427));
    let page = tea.at_bob.call("history.get", json!({"room": room})).await;
    assert_eq!(page["messages"][0]["attachments"], event["attachments"]);
    let view = tea.at_bob.call("room.get", json!({"room": room})).await;
    assert_eq!(view["last"]["attachments"], event["attachments"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_over_the_limit_is_refused_by_its_length_and_while_it_streams() {
    let tea = Tea::with("file_bytes_max = 100000\n").await;
    let file = vec![b'a'; 100_001];
    let announced = tea.upload("long.txt", &file).await;
    assert_eq!(announced.status, 413);
    assert_eq!(announced.detail(), "file is over the limit of 100000 bytes");
    assert_eq!(announced.json()["limit"], 100_000);

    // Without a length only the stream can tell.
    let mut chunks = Vec::new();
    for _ in 0..3 {
        chunks.extend_from_slice(b"c350\r\n");
        chunks.extend_from_slice(&[b'a'; 50_000]);
        chunks.extend_from_slice(b"\r\n");
    }
    chunks.extend_from_slice(b"0\r\n\r\n");
    let line = format!("POST /api/v1/rooms/{}/attachments?name=long.txt", tea.room);
    let chunked = ["Transfer-Encoding: chunked"];
    let streamed = tea.server.exchange(&line, &tea.anna, &chunked, &chunks).await;
    assert_eq!(streamed.status, 413);
    assert_eq!(streamed.detail(), "file is over the limit of 100000 bytes");
    tea.stored("fits.txt", &file[1..]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_is_that_of_the_content_whatever_the_name_says() {
    let tea = Tea::with("").await;
    let page = b"<html ><script>alert(1)</script>";
    let drawing =
        b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>";
    for (name, file, media_type) in [
        ("photo.png", &page[..], "text/html"),
        ("photo.jpg", drawing, "image/svg+xml"),
        ("notes.txt", b"#!/bin/sh\nreboot\n", "text/x-shellscript"),
        ("song.mp3", b"MZ\x90\0\x03\0\0\0", "application/vnd.microsoft.portable-executable"),
        ("what", b"\0\x01\x02\x03", "application/octet-stream"),
    ] {
        let refused = tea.upload(name, file).await;
        assert_eq!(refused.status, 400, "{name}");
        let detail = refused.detail();
        assert!(detail.starts_with(&format!("file is {media_type} by its content")), "{detail}");
        assert!(detail.contains("image/png"), "the types allowed are named: {detail}");
    }
    let as_text = tea.upload("script.html", b"just words").await;
    assert_eq!(as_text.json()["media_type"], "text/plain");
    let empty = tea.upload("empty.txt", b"").await;
    assert_eq!(empty.detail(), "file is empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_allowed_beyond_images_is_never_shown_as_a_page() {
    let mut tea = Tea::with("types = [\"*\"]\n").await;
    let page = b"<html ><script>alert(1)</script>";
    let drawing = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>";
    let broken = &photo(20, 20)[..60];
    for (name, file) in [("a.html", &page[..]), ("b.svg", drawing), ("c.png", broken)] {
        let id = tea.stored(name, file).await;
        tea.send(name, &[&id]).await;
        let answer = tea.get(&tea.bob, &id).await;
        assert_eq!(answer.status, 200);
        for header in [
            format!("content-disposition: attachment; filename=\"{name}\""),
            "x-content-type-options: nosniff".to_owned(),
            "content-security-policy: default-src 'none'; sandbox".to_owned(),
            "cache-control: private, no-store".to_owned(),
        ] {
            assert!(answer.head.contains(&header), "{header} is not in {}", answer.head);
        }
        assert_eq!(tea.get(&tea.bob, &format!("{id}/thumbnail")).await.status, 404);
    }
    let image = tea.stored("d.png", &photo(20, 20)).await;
    let answer = tea.get(&tea.anna, &image).await;
    assert!(answer.head.contains("content-disposition: inline; filename=\"d.png\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_to_a_room_get_nothing_of_its_files() {
    let mut tea = Tea::with("").await;
    let cara = tea.server.sign_up("cara").await;
    let foreign = tea.server.upload(&cara, &tea.room, "a.txt", b"hello").await;
    assert_eq!(foreign.status, 403);
    assert_eq!(foreign.detail(), "you are not a member of this room");
    let id = tea.stored("a.png", &photo(20, 20)).await;
    // Until it is sent, it is its uploader's alone.
    assert_eq!(tea.get(&tea.bob, &id).await.status, 404);
    assert_eq!(tea.get(&tea.anna, &id).await.status, 200);
    tea.send("k", &[&id]).await;
    assert_eq!(tea.get(&tea.bob, &id).await.status, 200);
    assert_eq!(tea.get(&cara, &id).await.status, 404);
    assert_eq!(tea.get(&cara, &format!("{id}/thumbnail")).await.status, 404);
    let room = tea.room.clone();
    tea.at_anna.call("room.kick", json!({"room": room, "user": tea.bob.id})).await;
    assert_eq!(tea.get(&tea.bob, &id).await.status, 404);
    let unsigned = tea.server.http(&format!("GET /api/v1/attachments/{id}"), None, "").await;
    assert_eq!(unsigned.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_takes_only_files_of_its_sender_and_its_room_and_each_once() {
    let mut tea = Tea::with("files_per_message_max = 2\n").await;
    let room = tea.room.clone();
    let id = tea.stored("a.txt", b"one").await;
    let others = json!({"room": room, "key": "b", "body": "mine", "attachments": [id]});
    let refused = tea.at_bob.fail("message.send", others).await;
    assert_eq!(refused.code, 404);
    assert!(refused.message.contains(&id), "{}", refused.message);
    let elsewhere = tea.at_anna.create_room("Coffee").await;
    let there = json!({"room": elsewhere, "key": "e", "body": "", "attachments": [id]});
    assert_eq!(tea.at_anna.fail("message.send", there).await.code, 404);
    let twice = json!({"room": room, "key": "t", "body": "", "attachments": [id, id]});
    assert!(tea.at_anna.fail("message.send", twice).await.message.contains("twice"));
    let many = json!({"room": room, "key": "m", "body": "", "attachments": [id, room, elsewhere]});
    let many = tea.at_anna.fail("message.send", many).await;
    assert_eq!(
        (many.code, many.message.as_str()),
        (413, "attachments is over the limit of 2 files")
    );
    let first = tea.send("k", &[&id]).await;
    // A retry is the same message; another message cannot have the file too.
    assert_eq!(tea.send("k", &[&id]).await, first);
    let again = json!({"room": room, "key": "k2", "body": "", "attachments": [id]});
    assert_eq!(tea.at_anna.fail("message.send", again).await.code, 404);
    let other_files = json!({"room": room, "key": "k", "body": "x"});
    assert_eq!(tea.at_anna.fail("message.send", other_files).await.code, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quota_counts_what_is_stored_and_what_is_left_is_named() {
    let mut tea = Tea::with("user_bytes_max = 1000\n").await;
    let id = tea.stored("a.txt", &[b'a'; 600]).await;
    let limits = tea.server.exchange("GET /api/v1/limits", &tea.anna, &[], b"").await.json();
    assert_eq!(limits["attachments"]["user_bytes"], 600);
    assert_eq!(limits["attachments"]["user_bytes_max"], 1000);
    let refused = tea.upload("b.txt", &[b'b'; 401]).await;
    assert_eq!(refused.status, 413);
    let detail = refused.detail();
    assert_eq!(detail, "file is over what is left of your limit of 1000 bytes: 400 bytes");
    tea.stored("c.txt", &[b'c'; 400]).await;
    // Others have their own.
    assert_eq!(tea.server.upload(&tea.bob, &tea.room, "d.txt", &[b'd'; 900]).await.status, 201);
    let seq = tea.send("k", &[&id]).await;
    let room = tea.room.clone();
    tea.at_anna.call("message.delete", json!({"room": room, "seq": seq})).await;
    assert_eq!(tea.get(&tea.anna, &id).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decompression_bomb_is_refused_and_the_server_goes_on() {
    let tea = Tea::with("image_pixels_max = 1000000\n").await;
    // A megapixel and a little more, all of one colour: some kilobytes for three megabytes.
    let bomb = png(RgbImage::new(1001, 1000));
    assert!(bomb.len() < 50_000, "{} bytes are no bomb", bomb.len());
    let refused = tea.upload("bomb.png", &bomb).await;
    assert_eq!(refused.status, 413);
    assert_eq!(refused.detail(), "file is over the limit of 1000000 pixels");
    tea.stored("small.png", &photo(100, 100)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_files_that_were_sent_and_those_that_wait() {
    let mut tea = Tea::with("").await;
    let sent = tea.stored("sent.png", &photo(30, 30)).await;
    let waiting = tea.stored("waiting.txt", b"later").await;
    tea.send("k", &[&sent]).await;
    tea.server.restart().await;
    assert_eq!(tea.get(&tea.bob, &sent).await.body, photo(30, 30));
    assert_eq!(tea.get(&tea.bob, &format!("{sent}/thumbnail")).await.status, 200);
    tea.at_anna = tea.server.connect(&tea.anna).await;
    tea.send("later", &[&waiting]).await;
    assert_eq!(tea.get(&tea.bob, &waiting).await.body, b"later");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_file_can_be_asked_for() {
    let tea = Tea::with("").await;
    let id = tea.stored("digits.txt", b"0123456789").await;
    let line = format!("GET /api/v1/attachments/{id}");
    let part = tea.server.exchange(&line, &tea.anna, &["Range: bytes=2-4"], b"").await;
    assert_eq!((part.status, part.body.as_slice()), (206, &b"234"[..]));
    assert!(part.head.contains("content-range: bytes 2-4/10"), "{}", part.head);
    let beyond = tea.server.exchange(&line, &tea.anna, &["Range: bytes=10-"], b"").await;
    assert_eq!(beyond.status, 416);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_off_leaves_nothing_and_gives_its_bytes_back() {
    use tokio::io::AsyncWriteExt;
    let tea = Tea::with("user_bytes_max = 1000\n").await;
    let mut socket = tokio::net::TcpStream::connect(tea.server.address()).await.unwrap();
    let head = format!(
        "POST /api/v1/rooms/{}/attachments?name=a.txt HTTP/1.1\r\nHost: x\r\n\
         Authorization: Bearer {}\r\nContent-Length: 1000\r\n\r\nhalf of it",
        tea.room, tea.anna.token
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    drop(socket);
    // The server notices by itself; until then the bytes are reserved, so the last of these is the
    // proof.
    let mut whole = tea.upload("b.txt", &[b'b'; 1000]).await;
    while whole.status == 413 {
        tokio::task::yield_now().await;
        whole = tea.upload("b.txt", &[b'b'; 1000]).await;
    }
    assert_eq!(whole.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_uploads_too_often_is_told_the_limit_and_when_to_try_again() {
    let server = Server::with("[limits]\nuploads_per_minute = 2\n").await;
    let anna = server.sign_up("anna").await;
    let room = server.connect(&anna).await.create_room("Tea").await;
    for name in ["a.txt", "b.txt"] {
        assert_eq!(server.upload(&anna, &room, name, b"words").await.status, 201);
    }
    let limited = server.upload(&anna, &room, "c.txt", b"words").await;
    assert_eq!(limited.status, 429);
    assert!(limited.detail().starts_with("too many uploads: the limit is 2 a minute"));
    assert!(limited.head.contains("retry-after: "), "{}", limited.head);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_took_from_the_disk_is_missing_and_nothing_else_is() {
    let tea = Tea::with("").await;
    let (gone, there) = (tea.stored("a.txt", b"gone").await, tea.stored("b.txt", b"there").await);
    let path = tea.server.data().join("attachments/files").join(&gone);
    std::fs::remove_file(path).unwrap();
    let missing = tea.get(&tea.anna, &gone).await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.detail(), "the file is missing on the server's disk");
    assert_eq!(tea.get(&tea.anna, &there).await.body, b"there");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_muted_uploads_nothing() {
    let mut tea = Tea::with("").await;
    let (room, bob) = (tea.room.clone(), tea.bob.id.clone());
    let until = 9_000_000_000_000_u64;
    tea.at_anna.call("room.mute", json!({"room": room, "user": bob, "until": until})).await;
    let refused = tea.server.upload(&tea.bob, &room, "a.txt", b"words").await;
    assert_eq!(refused.status, 403);
    assert!(refused.detail().starts_with("you are muted until"), "{}", refused.detail());
}
