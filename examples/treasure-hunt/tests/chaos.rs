//! Chaos from outside: two processes, actors killed the whole time, and a recount that trusts only
//! the log.
//!
//! `CHAOS_SECONDS` sets how long it rages (8 unless set; `make test` takes 60).
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use treasure_hunt::load::Report;
use treasure_hunt::recount::Recount;

const PROGRAM: &str = env!("CARGO_BIN_EXE_treasure-hunt");
const PLAYERS: &str = "400";

/// Ends the server also when the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn serve(data: &PathBuf) -> (Server, String) {
    let mut child = Command::new(PROGRAM)
        .args(["serve", "--address", "127.0.0.1:0", "--chaos", "2s", "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit("http://").next().unwrap().to_owned();
    (Server(child), address)
}

#[test]
fn nothing_acknowledged_is_lost_while_actors_die_all_the_time() {
    let seconds = std::env::var("CHAOS_SECONDS").unwrap_or_else(|_| "8".to_owned());
    let data = std::env::temp_dir().join(format!("hunt-chaos-{}", std::process::id()));
    std::fs::remove_dir_all(&data).ok();
    let (server, address) = serve(&data);
    let load = Command::new(PROGRAM)
        .args(["load", "--json", "--players", PLAYERS, "--players-per-socket", "5"])
        .args(["--address", &address, "--seconds", &seconds])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&load.stderr);
    let report: Report = serde_json::from_slice(&load.stdout).expect(&told);
    assert!(report.verdict.is_good(), "{report}");
    assert_eq!(report.errors, 0, "{report}");
    assert!(report.killed > 20, "{report}");
    assert!(report.done > 1_000, "{report}");
    println!("{report}");

    // Not even a kill of the whole process, without warning, takes anything back.
    drop(server);
    let recount =
        Command::new(PROGRAM).args(["recount", "--json", "--data"]).arg(&data).output().unwrap();
    assert!(recount.status.success(), "{}", String::from_utf8_lossy(&recount.stderr));
    let recount: Recount = serde_json::from_slice(&recount.stdout).unwrap();
    assert!(recount.events >= report.verdict.log_events);
    let by_players: u64 = recount.players.values().map(|player| u64::from(player.score)).sum();
    assert_eq!((recount.score, recount.violations), (by_players, 0));
    std::fs::remove_dir_all(&data).ok();
}
