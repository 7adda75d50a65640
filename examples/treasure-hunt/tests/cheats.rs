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

/// Two connections with a player each; the second one cheats, and at the end the first must be able
/// to play on.
struct Table {
    server: Running,
    good: client::Client,
    honest: Outcome,
    bad: client::Client,
    cheat: Outcome,
}

impl Table {
    async fn new(name: &str) -> Self {
        let server = Running::new(name).await;
        let (mut good, mut bad) = (server.client().await, server.client().await);
        let honest = join(&mut good, "gil", 30).await.state;
        let cheat = join(&mut bad, "hex", 30).await.state;
        Self { server, good, honest, bad, cheat }
    }

    async fn others_play_on(mut self) {
        assert_eq!(done(&mut self.good, act(&self.honest, Deed::Move, 1, 0)).await.seq.0, 2);
        self.server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_teleport_is_refused_and_counted_and_others_play_on() {
    let mut table = Table::new("teleport").await;
    let far = act(&table.cheat, Deed::Move, 2, 0);
    assert_eq!(refused(&mut table.bad, far).await, Refusal::TooFar.code());
    let outside = Command::Act(Act { x: 60_000, ..plain(&table.cheat) });
    assert_eq!(refused(&mut table.bad, outside).await, Refusal::OutsideWorld.code());
    assert_eq!(table.server.world.counters.teleports.get(), 2);
    table.others_play_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_players_cannot_be_moved_and_others_play_on() {
    let mut table = Table::new("foreign").await;
    let honest = table.honest;
    for foreign in [act(&honest, Deed::Move, 1, 0), act(&ghost(&honest), Deed::Dig, 0, 0)] {
        assert_eq!(refused(&mut table.bad, foreign).await, Refusal::NotYours.code());
    }
    assert_eq!(table.server.world.counters.foreign.get(), 2);
    table.others_play_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_out_of_order_and_acts_of_the_sea_are_refused() {
    let mut table = Table::new("order").await;
    let skipping = Command::Act(Act { seq: ActSeq(9), ..plain(&table.cheat) });
    let expected = Refusal::WrongSeq { expected: ActSeq(2) };
    assert_eq!(refused(&mut table.bad, skipping).await, expected.code());
    let tide = Command::Act(Act { deed: Deed::Tide, ..plain(&table.cheat) });
    assert_eq!(refused(&mut table.bad, tide).await, Refusal::NotAllowed.code());
    table.others_play_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_cut_and_counted_and_others_play_on() {
    let mut table = Table::new("flood").await;
    let mut codes = Vec::new();
    table.bad.send(&vec![act(&table.cheat, Deed::Move, 9, 9); 100]).await.unwrap();
    for _ in 0..100 {
        match answer(&mut table.bad).await {
            Notice::Refused { code, .. } => codes.push(code),
            other => panic!("{other:?}"),
        }
    }
    assert!(codes.contains(&Refusal::Busy.code()) || codes.contains(&Refusal::TooFast.code()));
    assert!(table.server.world.counters.floods.get() > 0);
    table.others_play_on().await;
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
