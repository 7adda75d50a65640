//! Files that come in pieces: whole in the end, within the limits of other files, for nobody but
//! their user, and going on where they stopped.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{Account, Bytes, Server, Tea};

impl Tea {
    async fn ask(&self, by: &Account, line: &str, body: &[u8]) -> Bytes {
        self.server.exchange(line, by, &[], body).await
    }

    async fn begin(&self, name: &str, size: usize) -> Bytes {
        let line = format!("POST /api/v1/rooms/{}/uploads?name={name}&size={size}", self.room);
        self.ask(&self.anna, &line, b"").await
    }

    /// Begins a file that must be admitted; returns its id.
    async fn begun(&self, name: &str, size: usize) -> String {
        let begun = self.begin(name, size).await;
        assert_eq!(begun.status, 201, "{}", String::from_utf8_lossy(&begun.body));
        assert_eq!(begun.json()["offset"], 0);
        begun.json()["id"].as_str().expect("an id").to_owned()
    }

    async fn piece(&self, id: &str, offset: usize, piece: &[u8]) -> Bytes {
        let line = format!("PATCH /api/v1/uploads/{id}?offset={offset}");
        self.ask(&self.anna, &line, piece).await
    }

    async fn progress(&self, id: &str) -> Bytes {
        self.ask(&self.anna, &format!("GET /api/v1/uploads/{id}"), b"").await
    }

    /// Bytes that Anna's files take.
    async fn taken(&self) -> Value {
        let limits = self.ask(&self.anna, "GET /api/v1/limits", b"").await.json();
        limits["attachments"]["user_bytes"].clone()
    }

    /// Waits until nothing is reserved for Anna any more.
    async fn nothing_is_taken(&self) {
        let within = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        while self.taken().await != json!(0) {
            assert!(tokio::time::Instant::now() < within, "{} bytes are taken", self.taken().await);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

/// Text of some length, no part of which is like another.
fn text(length: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|n: u32| format!("line {n}\n").into_bytes());
    lines.take(length).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_pieces_is_the_file_that_was_sent() {
    let mut tea = Tea::with("").await;
    let file = text(300_000);
    let id = tea.begun("notes.txt", file.len()).await;
    let mut offset = 0;
    for length in [10, 9_000, 200_000] {
        let taken = tea.piece(&id, offset, &file[offset..offset + length]).await;
        offset += length;
        assert_eq!(taken.json(), json!({"id": id, "offset": offset}));
        assert_eq!(tea.progress(&id).await.json(), taken.json());
    }
    let last = tea.piece(&id, offset, &file[offset..]).await.json();
    assert_eq!(
        (&last["offset"], &last["attachment"]["name"]),
        (&json!(300_000), &json!("notes.txt"))
    );
    assert_eq!(last["attachment"]["media_type"], "text/plain");
    assert_eq!(last["attachment"]["id"], id.as_str());
    // The answer may have been lost.
    assert_eq!(tea.progress(&id).await.json(), last);
    assert_eq!(tea.piece(&id, offset, &file[offset..]).await.json(), last);
    let message = json!({"room": tea.room, "key": "k", "body": "", "attachments": [id]});
    tea.at_anna.call("message.send", message).await;
    let whole = tea.ask(&tea.bob, &format!("GET /api/v1/attachments/{id}"), b"").await;
    assert_eq!((whole.status, whole.body == file), (200, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_files_hold_and_are_named() {
    let tea = Tea::with("file_bytes_max = 4000000\nuser_bytes_max = 6000000\n").await;
    let long = tea.begin("long.txt", 4_000_001).await;
    assert_eq!((long.status, long.json()["limit"].clone()), (413, json!(4_000_000)));
    assert_eq!(long.detail(), "file is over the limit of 4000000 bytes");
    assert_eq!(tea.begin("empty.txt", 0).await.detail(), "file is empty");
    let id = tea.begun("notes.txt", 3_000_000).await;
    let over = tea.begin("more.txt", 3_000_001).await;
    assert_eq!((over.status, over.json()["limit"].clone()), (413, json!(6_000_000)));
    let piece = tea.piece(&id, 0, &vec![b'a'; 1024 * 1024 + 1]).await;
    assert_eq!((piece.status, piece.json()["limit"].clone()), (413, json!(1024 * 1024)));
    assert_eq!(piece.detail(), "piece is over the limit of 1048576 bytes");
    assert_eq!(tea.piece(&id, 0, b"").await.detail(), "piece is empty");
    for offset in (0..3).map(|n| n * 999_000) {
        assert_eq!(tea.piece(&id, offset, &vec![b'a'; 999_000]).await.status, 200);
    }
    let more = tea.piece(&id, 2_997_000, &vec![b'a'; 3_001]).await;
    assert_eq!((more.status, more.json()["limit"].clone()), (413, json!(3_000_000)));
    assert_eq!(more.detail(), "file is over the limit of 3000000 announced bytes");
    assert_eq!(tea.piece(&id, 2_997_000, &vec![b'a'; 3_000]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_that_is_not_allowed_is_told_and_the_upload_is_gone() {
    let tea = Tea::with("").await;
    let page = [b"<html ><script>alert(1)</script>".as_slice(), &[b' '; 20_000]].concat();
    let id = tea.begun("photo.png", page.len()).await;
    tea.piece(&id, 0, &page[..10_000]).await;
    let refused = tea.piece(&id, 10_000, &page[10_000..]).await;
    assert_eq!(refused.status, 400);
    let detail = refused.detail();
    assert!(detail.starts_with("file is text/html by its content"), "{detail}");
    assert_eq!(tea.progress(&id).await.status, 404);
    tea.nothing_is_taken().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_that_does_not_follow_the_last_one_is_refused_with_the_place_that_does() {
    let tea = Tea::with("").await;
    let id = tea.begun("a.txt", 10).await;
    tea.piece(&id, 0, b"12345").await;
    for offset in [0, 4, 6, 10, 9_999] {
        let refused = tea.piece(&id, offset, b"x").await;
        assert_eq!(refused.status, 400);
        assert_eq!(refused.detail(), "offset must be 5");
        assert_eq!(refused.json()["field"], "offset");
        assert_eq!(refused.json()["limit"], 5);
    }
    assert_eq!(tea.piece(&id, 5, b"67890").await.json()["attachment"]["size"], 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_that_bring_little_or_nothing_have_a_limit_and_long_ones_have_none() {
    let tea = Tea::at(Server::with("[limits]\nquestions_per_minute = 3\n").await).await;
    let id = tea.begun("a.txt", 1_000_000).await;
    for number in 0..10 {
        let taken = tea.piece(&id, number * 65_536, &[b'a'; 65_536]).await;
        assert_eq!(taken.status, 200, "{}", taken.detail());
    }
    assert_eq!(tea.piece(&id, 7, &[b'a'; 65_536]).await.detail(), "offset must be 655360");
    assert_eq!(tea.piece(&id, 655_360, b"a").await.status, 200);
    assert_eq!(tea.piece(&id, 655_361, b"a").await.status, 200);
    let refused = tea.piece(&id, 655_362, b"a").await;
    assert_eq!(refused.status, 429);
    assert!(refused.detail().starts_with("too many questions: the limit is 3 a minute"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_that_comes_ahead_waits_for_the_one_before_it() {
    let tea = Tea::with("").await;
    let id = tea.begun("a.txt", 15).await;
    let ahead = format!("PATCH /api/v1/uploads/{id}?offset=5&ahead=true");
    let second = tea.ask(&tea.anna, &ahead, b"67890");
    let first = async {
        // The second one is here already, or would be.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert_eq!(tea.progress(&id).await.json()["offset"], 0);
        tea.piece(&id, 0, b"12345").await
    };
    let (second, first) = tokio::join!(second, first);
    assert_eq!((first.status, first.json()["offset"].clone()), (200, json!(5)));
    assert_eq!((second.status, second.json()["offset"].clone()), (200, json!(10)));
    assert_eq!(tea.piece(&id, 10, b"abcde").await.json()["attachment"]["size"], 15);
    let body = tea.ask(&tea.anna, &format!("GET /api/v1/attachments/{id}"), b"").await.body;
    assert_eq!(body, b"1234567890abcde");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_ahead_hears_of_a_file_that_is_refused_and_of_one_given_up() {
    let tea = Tea::with("").await;
    let page = [b"<html ><script>alert(1)</script>".as_slice(), &[b' '; 20_000]].concat();
    let id = tea.begun("photo.png", page.len() + 5).await;
    let ahead = format!("PATCH /api/v1/uploads/{id}?offset={}&ahead=true", page.len());
    let (second, first) =
        tokio::join!(tea.ask(&tea.anna, &ahead, b"12345"), tea.piece(&id, 0, &page));
    let refused = [first.status, second.status];
    assert!(refused.contains(&400), "{refused:?}");
    let id = tea.begun("a.txt", 10).await;
    let line = format!("DELETE /api/v1/uploads/{id}");
    let ahead = format!("PATCH /api/v1/uploads/{id}?offset=5&ahead=true");
    let given_up = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        tea.ask(&tea.anna, &line, b"").await
    };
    let (second, given_up) = tokio::join!(tea.ask(&tea.anna, &ahead, b"67890"), given_up);
    assert_eq!(given_up.status, 204);
    assert_ne!(second.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_sees_or_touches_an_upload() {
    let tea = Tea::with("").await;
    let id = tea.begun("a.txt", 10).await;
    tea.piece(&id, 0, b"12345").await;
    for line in ["GET /api/v1/uploads/", "DELETE /api/v1/uploads/", "GET /api/v1/attachments/"] {
        assert_eq!(tea.ask(&tea.bob, &format!("{line}{id}"), b"").await.status, 404, "{line}");
    }
    let line = format!("PATCH /api/v1/uploads/{id}?offset=5");
    assert_eq!(tea.ask(&tea.bob, &line, b"67890").await.status, 404);
    assert_eq!(tea.progress(&id).await.json()["offset"], 5);
    let other = tea.server.sign_up("cara").await;
    let line = format!("POST /api/v1/rooms/{}/uploads?name=a.txt&size=10", tea.room);
    assert_eq!(tea.ask(&other, &line, b"").await.status, 403, "a stranger to the room");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_has_so_many_under_way_and_gets_the_bytes_of_those_given_up_back() {
    let tea = Tea::with("").await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(tea.begun("a.txt", 10).await);
    }
    assert_eq!(tea.taken().await, 60);
    let refused = tea.begin("a.txt", 10).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.detail(), "6 of your uploads are under way; try again");
    for id in &ids {
        let line = format!("DELETE /api/v1/uploads/{id}");
        assert_eq!(tea.ask(&tea.anna, &line, b"").await.status, 204);
        assert_eq!(tea.piece(id, 0, b"12345").await.status, 404);
    }
    tea.nothing_is_taken().await;
    tea.begun("a.txt", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_that_is_cut_off_counts_for_nothing_and_the_next_one_takes_its_place() {
    let tea = Tea::with("").await;
    let id = tea.begun("a.txt", 10).await;
    tea.piece(&id, 0, b"12345").await;
    // Its sender lost the line in the middle, and neither side has noticed.
    let mut hanging = TcpStream::connect(tea.server.address()).await.unwrap();
    let head = format!(
        "PATCH /api/v1/uploads/{id}?offset=5 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Length: 5\r\n\r\n67",
        tea.anna.token
    );
    hanging.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(tea.progress(&id).await.json()["offset"], 5);
    let whole = tea.piece(&id, 5, b"67890").await.json();
    assert_eq!(whole["attachment"]["size"], 10);
    drop(hanging);
    let body = tea.ask(&tea.anna, &format!("GET /api/v1/attachments/{id}"), b"").await.body;
    assert_eq!(body, b"1234567890");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_forgets_what_was_under_way_and_it_can_begin_anew() {
    let mut tea = Tea::with("").await;
    let id = tea.begun("a.txt", 10).await;
    tea.piece(&id, 0, b"12345").await;
    tea.server.restart().await;
    assert_eq!(tea.piece(&id, 5, b"67890").await.status, 404);
    tea.nothing_is_taken().await;
    let id = tea.begun("a.txt", 10).await;
    assert_eq!(tea.piece(&id, 0, b"1234567890").await.json()["attachment"]["size"], 10);
}
