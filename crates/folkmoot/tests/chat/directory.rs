//! The directory: which rooms are found without an invite, by whom, and who comes in.

use serde_json::{Value, json};

use crate::support::{Client, Server};

async fn set(owner: &mut Client, room: &str, access: &str) {
    owner.call("room.set_access", json!({"room": room, "access": access})).await;
}

/// The names in a page of the directory.
async fn names(client: &mut Client, request: Value) -> Vec<String> {
    let page = client.call("rooms.browse", request).await;
    let rooms = page["rooms"].as_array().expect("rooms");
    rooms.iter().map(|room| room["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_found_by_all_once_its_owner_says_so_and_joined_only_if_it_is_open() {
    let mut server = Server::start().await;
    let anna_account = server.sign_up("anna").await;
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.join("bob").await;
    let [open, listed, hidden] = [
        anna.create_room("Open").await,
        anna.create_room("Listed").await,
        anna.create_room("Hidden").await,
    ];
    // A room begins hidden.
    assert_eq!(names(&mut bob, json!({})).await, Vec::<String>::new());
    assert_eq!(anna.call("room.access", json!({"room": open})).await["access"], "hidden");
    set(&mut anna, &open, "open").await;
    set(&mut anna, &listed, "invite").await;
    anna.say(&open, "1", "before bob").await;
    let page = bob.call("rooms.browse", json!({})).await;
    let expected = json!([
        {"id": listed, "name": "Listed", "topic": "", "members": 1, "access": "invite"},
        {"id": open, "name": "Open", "topic": "", "members": 1, "access": "open"},
    ]);
    assert_eq!(page, json!({"rooms": expected}));
    // What is listed is not yet readable.
    assert_eq!(bob.fail("history.get", json!({"room": open})).await.code, 103);
    let refused = bob.fail("room.join", json!({"room": listed})).await;
    assert!(refused.code == 103 && refused.message.contains("ask one for an invite"));
    let refused = bob.fail("room.join", json!({"room": hidden})).await;
    assert_eq!(refused, bob.fail("room.get", json!({"room": hidden})).await);
    let none = bob.fail("room.join", json!({"room": "0000000000007"})).await;
    assert_eq!(none.code, 404);
    let view = bob.call("room.join", json!({"room": open})).await;
    assert_eq!((&view["role"], &view["members"]), (&json!("member"), &json!(2)));
    let history = bob.call("history.get", json!({"room": open})).await;
    assert_eq!(history["messages"][0]["body"], "before bob");
    // Again changes nothing, and members find themselves in it; also after a restart.
    assert_eq!(bob.call("room.join", json!({"room": open})).await["members"], 2);
    server.restart().await;
    let mut anna = server.connect(&anna_account).await;
    let rooms = anna.call("rooms.browse", json!({"search": "open"})).await;
    assert_eq!(
        (&rooms["rooms"][0]["joined"], &rooms["rooms"][0]["members"]),
        (&json!(true), &json!(2))
    );
    set(&mut anna, &open, "hidden").await;
    let mut cara = server.join("cara").await;
    assert_eq!(names(&mut cara, json!({})).await, ["Listed"]);
    assert_eq!(cara.fail("room.join", json!({"room": open})).await.code, 103);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_owners_say_who_finds_a_room_and_comes_in() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let mut cara = server.join("cara").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    let open = json!({"room": room, "access": "open"});
    assert_eq!(bob.fail("room.set_access", open.clone()).await.code, 103);
    let role = json!({"room": room, "user": bob_account.id, "role": "moderator"});
    anna.call("room.set_role", role).await;
    let refused = bob.fail("room.set_access", open.clone()).await;
    assert!(refused.code == 103 && refused.message.contains("only owners"), "{refused:?}");
    assert_eq!(bob.call("room.access", json!({"room": room})).await["access"], "hidden");
    // Strangers learn nothing.
    for method in ["room.access", "room.set_access"] {
        assert_eq!(cara.fail(method, open.clone()).await.code, 103, "{method}");
    }
    let direct = anna.call("direct.open", json!({"user": bob_account.id})).await;
    let direct = json!({"room": direct["id"], "access": "open"});
    assert_eq!(anna.fail("room.set_access", direct).await.code, 103);
    let strange = json!({"room": room, "access": "public"});
    assert_eq!(anna.fail("room.set_access", strange).await.code, 400);
    anna.call("room.set_access", open).await;
    assert_eq!(names(&mut cara, json!({})).await, ["Tea"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_banned_neither_finds_the_room_nor_comes_in() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    set(&mut anna, &room, "open").await;
    bob.call("room.join", json!({"room": room})).await;
    let ban = |on: bool| json!({"room": room, "user": bob_account.id, "on": on});
    anna.call("room.ban", ban(true)).await;
    assert_eq!(names(&mut bob, json!({})).await, Vec::<String>::new());
    let refused = bob.fail("room.join", json!({"room": room})).await;
    assert!(refused.code == 103 && refused.message.contains("banned"), "{refused:?}");
    anna.call("room.ban", ban(false)).await;
    assert_eq!(names(&mut bob, json!({})).await, ["Tea"]);
    // Nor is found, or joined, what is archived or deleted.
    anna.call("room.archive", json!({"room": room, "on": true})).await;
    assert_eq!(names(&mut bob, json!({})).await, Vec::<String>::new());
    assert_eq!(bob.fail("room.join", json!({"room": room})).await.code, 103);
    anna.call("room.delete", json!({"room": room})).await;
    assert_eq!(names(&mut bob, json!({})).await, Vec::<String>::new());
    assert_eq!(bob.fail("room.join", json!({"room": room})).await.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_is_searched_by_any_part_without_case_and_accents_and_goes_on_in_pages() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    for (name, topic) in [
        ("Küche", "Rezepte & Café"),
        ("alpha", ""),
        ("Beta", "of the Harbour"),
        ("beta", "the other"),
        ("東京タワー", ""),
    ] {
        let room = anna.call("room.create", json!({"name": name, "topic": topic})).await;
        set(&mut anna, room["id"].as_str().expect("an id"), "open").await;
    }
    for (search, found) in [
        ("kuch", &["Küche"][..]),
        ("CAFE rezept", &["Küche"]),
        ("harb", &["Beta"]),
        ("京タ", &["東京タワー"]),
        ("cafe harbour", &[]),
    ] {
        assert_eq!(names(&mut bob, json!({"search": search})).await, found, "{search}");
    }
    let (mut seen, mut after) = (Vec::new(), Value::Null);
    loop {
        let mut request = json!({"limit": 2});
        if !after.is_null() {
            request["after"] = after;
        }
        let mut page = bob.call("rooms.browse", request).await;
        let rooms = page["rooms"].as_array().expect("rooms");
        assert!(rooms.len() <= 2);
        seen.extend(rooms.iter().map(|room| room["name"].as_str().expect("a name").to_lowercase()));
        after = page["next"].take();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(seen, ["alpha", "beta", "beta", "küche", "東京タワー"]);
}
