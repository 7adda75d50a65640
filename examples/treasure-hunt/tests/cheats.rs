//! Cheats and broken clients: counted, told what is wrong, and harmless to the player next to them.

mod support;

use support::{Running, act, answer, done, join, refused};
use treasure_hunt::limits::{FRAME_LEN_MAX, MALFORMED_MAX};
use treasure_hunt::load::client;
use treasure_hunt::place::{ActSeq, PlayerId};
use treasure_hunt::rules::{Act, Deed, Refusal};
use treasure_hunt::wire::{Command, Notice, Outcome};

async fn fault(client: &mut client::Client) -> String {
    match answer(client).await {
        Notice::Fault(text) => text.into(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cheats_are_refused_and_counted_and_others_play_on() {
    let server = Running::new("cheats").await;
    let (mut good, mut bad) = (server.client().await, server.client().await);
    let honest = join(&mut good, "gil", 30).await.state;
    let cheat = join(&mut bad, "hex", 30).await.state;
    let counters = &server.world.counters;

    let teleport = act(&cheat, Deed::Move, 2, 0);
    assert_eq!(refused(&mut bad, teleport).await, Refusal::TooFar.code());
    let outside = Command::Act(Act { x: 60_000, ..plain(&cheat) });
    assert_eq!(refused(&mut bad, outside).await, Refusal::OutsideWorld.code());
    assert_eq!(counters.teleports.get(), 2);

    for foreign in [act(&honest, Deed::Move, 1, 0), act(&ghost(&honest), Deed::Dig, 0, 0)] {
        assert_eq!(refused(&mut bad, foreign).await, Refusal::NotYours.code());
    }
    assert_eq!(counters.foreign.get(), 2);

    let skipping = Command::Act(Act { seq: ActSeq(9), ..plain(&cheat) });
    assert_eq!(refused(&mut bad, skipping).await, Refusal::WrongSeq { expected: ActSeq(2) }.code());
    let tide = Command::Act(Act { deed: Deed::Tide, ..plain(&cheat) });
    assert_eq!(refused(&mut bad, tide).await, Refusal::NotAllowed.code());

    let mut codes = Vec::new();
    bad.send(&vec![act(&cheat, Deed::Move, 9, 9); 100]).await.unwrap();
    for _ in 0..100 {
        match answer(&mut bad).await {
            Notice::Refused { code, .. } => codes.push(code),
            other => panic!("{other:?}"),
        }
    }
    assert!(codes.contains(&Refusal::Busy.code()) || codes.contains(&Refusal::TooFast.code()));
    assert!(counters.floods.get() > 0);

    assert_eq!(done(&mut good, act(&honest, Deed::Move, 1, 0)).await.seq.0, 2);
    server.stop().await;
}

fn plain(state: &Outcome) -> Act {
    match act(state, Deed::Move, 1, 0) {
        Command::Act(act) => act,
        _ => unreachable!("an act is an act"),
    }
}

fn ghost(state: &Outcome) -> Outcome {
    Outcome { player: PlayerId(4_000_000), ..*state }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_frames_are_named_and_a_client_that_sends_only_those_is_let_go() {
    let server = Running::new("broken").await;
    let (mut good, mut bad) = (server.client().await, server.client().await);
    let honest = join(&mut good, "ida", 31).await.state;
    bad.send_bytes(&[77, 1, 2]).await.unwrap();
    assert_eq!(fault(&mut bad).await, "no frame begins with byte 77");
    bad.send_bytes(&[3, 1, 0]).await.unwrap();
    assert_eq!(fault(&mut bad).await, "the message ends before the field player");
    bad.send_text("hello").await.unwrap();
    assert_eq!(fault(&mut bad).await, "frames are binary");
    for name in ["", "far too long a name", "new\nline"] {
        let join = Command::Join { tag: 1, near: None, name: name.into() };
        assert_eq!(refused(&mut bad, join).await, Refusal::BadName.code());
    }
    for _ in 3..MALFORMED_MAX {
        bad.send_bytes(&[0]).await.unwrap();
        fault(&mut bad).await;
    }
    assert!(bad.next().await.is_err(), "the connection is closed");
    assert_eq!(server.world.counters.malformed.get(), u64::from(MALFORMED_MAX));
    assert_eq!(done(&mut good, act(&honest, Deed::Move, 1, 0)).await.seq.0, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_message_is_named_and_ends_its_connection() {
    let server = Running::new("oversized").await;
    let mut bad = server.client().await;
    bad.send_bytes(&[4; FRAME_LEN_MAX + 1]).await.unwrap();
    assert_eq!(fault(&mut bad).await, "a message has at most 16384 bytes");
    assert!(bad.next().await.is_err());
    assert_eq!(server.world.counters.oversized.get(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_carry_a_strict_policy_and_the_map_says_what_it_has_not() {
    let server = Running::new("pages").await;
    let (code, head, _) = client::get(server.address, "/").await.unwrap();
    assert_eq!(code, 200);
    assert!(head.contains("default-src 'none'; script-src 'self'"), "{head}");
    let (code, _, tiles) = client::get(server.address, "/map/12").await.unwrap();
    assert_eq!((code, tiles.len()), (200, 4_096));
    assert_eq!(client::get(server.address, "/map/256").await.unwrap().0, 404);
    server.stop().await;
}
