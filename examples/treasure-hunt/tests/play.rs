//! Playing over real sockets: what is answered is in the log, whoever dies meanwhile.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use std::time::Duration;

use support::{PATIENCE, Running, act, answer, done, join, refused};
use treasure_hunt::journal::LOG_NAME;
use treasure_hunt::load::{self, client};
use treasure_hunt::place::{Place, PlayerId};
use treasure_hunt::recount;
use treasure_hunt::rules::{Deed, Refusal};
use treasure_hunt::wire::{Change, Command, Notice};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_is_in_the_log() {
    let server = Running::new("answered").await;
    let mut client = server.client().await;
    let mut state = join(&mut client, "ann", 100).await.state;
    for (dx, dy) in [(1, 0), (0, 1), (-1, -1)] {
        state = done(&mut client, act(&state, Deed::Move, dx, dy)).await;
    }
    state = done(&mut client, act(&state, Deed::Dig, 0, 0)).await;
    assert_eq!(
        refused(&mut client, act(&state, Deed::Dig, 0, 0)).await,
        Refusal::AlreadyDug.code()
    );
    let log = recount::of_file(&server.data.join(LOG_NAME)).unwrap();
    assert_eq!((log.events, log.violations, log.present), (5, 0, 1));
    assert_eq!(log.players[&state.player.0].seq, state.seq.0);
    assert_eq!(log.score, u64::from(state.score));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_twice_is_answered_twice_and_done_once() {
    let server = Running::new("twice").await;
    let mut client = server.client().await;
    let start = join(&mut client, "bea", 3).await.state;
    let step = act(&start, Deed::Move, 1, 0);
    let first = done(&mut client, step.clone()).await;
    let second = done(&mut client, step).await;
    assert_eq!((first.seq, first.x, first.y), (second.seq, second.x, second.y));
    let log = recount::of_file(&server.data.join(LOG_NAME)).unwrap();
    assert_eq!((log.events, log.violations), (2, 0));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_player_and_a_killed_region_lose_nothing() {
    let server = Running::new("killed").await;
    let mut client = server.client().await;
    let mut state = join(&mut client, "cay", 55).await.state;
    let region = Place::new(state.x, state.y).unwrap().region();
    let mut round = 0;
    while round < 30 {
        let dx = if round % 2 == 0 { 1 } else { -1 };
        client.send(&[act(&state, Deed::Move, dx, 0)]).await.unwrap();
        // In the middle of things: before, while and after the act is on its way.
        match round % 3 {
            0 => server.world.player(state.player).kill(),
            1 => server.world.region(region).kill(),
            _ => {}
        }
        match answer(&mut client).await {
            Notice::Done(outcome) => {
                assert_eq!(outcome.seq.0, state.seq.0 + 1);
                state = outcome;
                round += 1;
            }
            // Faster than players may be: the same act once more.
            Notice::Refused { code, .. } if code == Refusal::TooFast.code() => {}
            other => panic!("round {round}: {other:?}"),
        }
    }
    let log = recount::of_file(&server.data.join(LOG_NAME)).unwrap();
    assert_eq!((log.events, log.violations), (31, 0));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_comes_back_after_a_restart_of_the_server() {
    let server = Running::new("restart").await;
    let mut client = server.client().await;
    let joined = join(&mut client, "dan", 9).await;
    let state = done(&mut client, act(&joined.state, Deed::Move, 1, 1)).await;
    drop(client);
    let server = Running::on(server.stop().await).await;
    let mut client = server.client().await;
    let resume = |token| Command::Resume { player: state.player, token };
    assert_eq!(refused(&mut client, resume(joined.token ^ 1)).await, Refusal::WrongToken.code());
    client.send(&[resume(joined.token)]).await.unwrap();
    match answer(&mut client).await {
        Notice::Joined(back) => assert_eq!((back.state.seq, back.state.x), (state.seq, state.x)),
        other => panic!("a resume is answered with {other:?}"),
    }
    let state = done(&mut client, act(&state, Deed::Move, 1, 0)).await;
    let left = done(&mut client, act(&state, Deed::Leave, 0, 0)).await;
    assert_eq!(refused(&mut client, act(&left, Deed::Move, 1, 0)).await, Refusal::NotYours.code());
    assert_eq!(refused(&mut client, resume(joined.token)).await, Refusal::NoSuchPlayer.code());
    assert_eq!(server.world.arena.usage().blocks, 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_see_each_other_move_and_go() {
    let server = Running::new("neighbours").await;
    let (mut one, mut two) = (server.client().await, server.client().await);
    let first = join(&mut one, "eve", 20).await.state;
    let second = join(&mut two, "fay", 20).await.state;
    let moved = done(&mut two, act(&second, Deed::Move, 1, 0)).await;
    let region = Place::new(first.x, first.y).unwrap().region();
    sees(&mut one, |notice| match notice {
        Notice::View(at, changes) => {
            *at == region && changes.iter().any(|change| is_there(*change, moved.player, moved.x))
        }
        Notice::Snapshot { .. } => false,
        _ => false,
    })
    .await;
    done(&mut two, act(&moved, Deed::Leave, 0, 0)).await;
    sees(&mut one, |notice| {
        matches!(notice, Notice::View(_, changes) if changes.contains(&Change::Left(second.player)))
    })
    .await;
    assert_eq!(done(&mut one, act(&first, Deed::Move, 1, 0)).await.seq.0, 2);
    server.stop().await;
}

fn is_there(change: Change, player: PlayerId, x: u16) -> bool {
    matches!(change, Change::Moved(who, tile) if who == player && tile % 64 == x % 64)
}

async fn sees(client: &mut client::Client, is_it: impl Fn(&Notice) -> bool) {
    let seen = async { while !is_it(&client.next().await.unwrap()) {} };
    tokio::time::timeout(PATIENCE, seen).await.expect("news in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn bots_play_and_the_recount_agrees() {
    let server = Running::new("bots").await;
    let options = load::Options {
        address: server.address,
        players: 60,
        players_per_socket: 7,
        rate: 10.0,
        duration: Duration::from_secs(2),
    };
    let report = load::play(options).await.unwrap();
    assert!(report.verdict.is_good() && report.errors == 0, "{report}");
    assert!(report.done > 400 && report.views > 0, "{report}");
    server.stop().await;
}
