//! Kills the real server again and again under load, and proves that nothing it acknowledged is
//! lost, doubled or out of order.
//!
//! 50 clients at the level of the protocol (half of them JSON, half protobuf) write into 8 rooms,
//! each with one message under way, which they repeat with the same key until it is acknowledged.
//! The server is killed with SIGKILL in the middle, KILLS times (20 by default), and started again
//! on the same directory and port. With its data in a database, it is one time the server, one time
//! the database while the server runs on, one time both; and one time the index of what is in
//! Cassandra is lost: once each, and as many times more often as KILLS is above 20. In the end the
//! history is compared with the acknowledgements, and every client's stream with the history.
//!
//! The moments of the kills are chosen by a seed, which is printed; `KILL_SEED=n` repeats the
//! choice. Moments count acknowledgements, not milliseconds, so that a slow machine is killed as
//! deep in its work as a fast one.

mod account;
mod client;
mod connection;
mod random;
mod server;
mod set_back;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use althing_testkit::servers::{CassandraServer, PostgresServer};
use folkmoot_protocol::rpc::{InviteAccept, InviteCreate, RoomCreate, RoomGet};
use folkmoot_protocol::{Format, Offset, RoomId};
use tokio::sync::watch;
use tokio::task::JoinSet;

use account::Account;
use client::{Client, Diary};
use connection::Connection;
use random::Random;
use server::{Behind, Server};

const CLIENTS: usize = 50;
const ROOMS: usize = 8;
/// Enough that every room has a crowd, few enough that an unoptimised server keeps up with the
/// fan-out.
const ROOMS_PER_CLIENT: usize = 3;
const KILLS_DEFAULT: usize = 20;
/// Acknowledgements between two kills: sometimes the server dies before its first batch is applied,
/// sometimes with a long log.
const ACKS_BETWEEN_KILLS: std::ops::Range<u64> = 20..400;
/// A server that no longer answers must fail the test, not hang it. For each twenty kills, or each
/// round with a database.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Server,
    Database,
    Both,
    /// The server, whose index of the log in Cassandra is lost with it.
    Index,
    /// One of PostgreSQL's processes, a session of the server's.
    Session,
    /// The database, which does nothing for so many seconds and then goes on.
    Still(u64),
}

impl Victim {
    /// Whether the server ends.
    fn is_server(self) -> bool {
        matches!(self, Self::Server | Self::Both | Self::Index)
    }
}

/// What the clients are told to do.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// Send without end.
    Load,
    /// Send nothing new; get the message under way acknowledged.
    Drain,
    /// Read up to these offsets, then end.
    Finish(Arc<BTreeMap<RoomId, Offset>>),
}

/// How the test and its clients see each other.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) phase: watch::Receiver<Phase>,
    /// Whether the server listens.
    pub(crate) up: watch::Receiver<bool>,
    /// Acknowledgements of all clients.
    pub(crate) acks: watch::Sender<u64>,
    /// Clients that have nothing under way since the draining began.
    pub(crate) drained: watch::Sender<usize>,
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_doubled_or_reordered_by_sigkill() {
    killed(Behind::Nobody, &[Victim::Server].repeat(KILLS_DEFAULT)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_postgresql_or_a_server_on_it_is_killed() {
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    let victims = [Victim::Database, Victim::Server, Victim::Both];
    killed(Behind::Postgres(postgres), &victims).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_cassandra_a_server_on_it_or_its_index_is_killed() {
    let cassandra = tokio::task::block_in_place(CassandraServer::start);
    let victims = [Victim::Index, Victim::Database, Victim::Server, Victim::Both];
    killed(Behind::Cassandra(cassandra), &victims).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_postgresql_stands_still_or_a_session_is_killed() {
    let victims = [Victim::Session, Victim::Still(8), Victim::Still(30), Victim::Session];
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    killed(Behind::Postgres(postgres), &victims).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_cassandra_stands_still() {
    let victims = [Victim::Still(8), Victim::Still(30)];
    let cassandra = tokio::task::block_in_place(CassandraServer::start);
    killed(Behind::Cassandra(cassandra), &victims).await;
}

/// Kills these one after the other, as often as KILLS says.
async fn killed(behind: Behind, victims: &[Victim]) {
    let kills = setting("KILLS").map_or(KILLS_DEFAULT, |kills| kills as usize);
    let times = kills as f64 / KILLS_DEFAULT as f64;
    let count = (victims.len() as f64 * times).round() as usize;
    let victims: Vec<Victim> = victims.iter().copied().cycle().take(count).collect();
    let run = run(random(), behind, &victims);
    tokio::time::timeout(TEST_TIMEOUT.mul_f64(times.max(1.0)), run).await.expect("it ends in time");
}

fn random() -> Random {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    let seed = setting("KILL_SEED").unwrap_or(since_1970.as_nanos() as u64);
    println!("KILL_SEED={seed}");
    Random::new(seed)
}

async fn run(mut random: Random, behind: Behind, victims: &[Victim]) {
    let mut server = Server::start(behind).await;
    let accounts = sign_up(server.port()).await;
    let rooms = open_rooms(server.port(), &accounts).await;

    let (phase, phase_seen) = watch::channel(Phase::Load);
    let (up, up_seen) = watch::channel(true);
    let (acks, mut acks_seen) = watch::channel(0);
    let (drained, mut drained_seen) = watch::channel(0);
    let stage = Stage { phase: phase_seen, up: up_seen, acks, drained };
    let mut clients = JoinSet::new();
    for (index, account) in accounts.iter().enumerate() {
        let rooms = memberships(index).map(|room| rooms[room]).collect();
        let client =
            Client::new(index, account.token.clone(), server.port(), rooms, random.split());
        clients.spawn(client.run(stage.clone()));
    }

    for (kill, victim) in (1..).zip(victims) {
        let until = *acks_seen.borrow() + random.between(ACKS_BETWEEN_KILLS);
        acks_seen.wait_for(|acks| *acks >= until).await.expect("clients acknowledge");
        if victim.is_server() {
            up.send_replace(false);
            server.kill().await;
        }
        match *victim {
            Victim::Server => {}
            Victim::Index => server.lose_index(),
            Victim::Database | Victim::Both => server.kill_database(),
            Victim::Session => server.kill_session().await,
            Victim::Still(seconds) => server.hold_database(Duration::from_secs(seconds)).await,
        }
        if victim.is_server() {
            server.launch().await;
            up.send_replace(true);
        }
        println!("kill {kill}, of {victim:?}, after {until} acknowledgements");
    }
    let until = *acks_seen.borrow() + ACKS_BETWEEN_KILLS.end;
    acks_seen
        .wait_for(|acks| *acks >= until)
        .await
        .expect("clients acknowledge after the last kill");

    println!("draining");
    phase.send_replace(Phase::Drain);
    drained_seen.wait_for(|drained| *drained == CLIENTS).await.expect("clients drain");
    println!("finishing");
    let mut observer =
        Connection::open(server.port(), &accounts[0].token, Format::Json).await.expect("it is up");
    let mut ends = BTreeMap::new();
    for &room in &rooms {
        ends.insert(room, observer.call(&RoomGet { room }).await.offset);
    }
    phase.send_replace(Phase::Finish(Arc::new(ends)));
    let diaries: Vec<Diary> = clients.join_all().await;
    verdict::check(&mut observer, &rooms, &diaries).await;
    server.stop().await;
}

/// The rooms of a client, by number; every room gets its share of clients.
fn memberships(client: usize) -> impl Iterator<Item = usize> {
    // 3 and 8 have no common divisor, so neighbours share some rooms but not all.
    (0..ROOMS_PER_CLIENT).map(move |nth| (client + nth * 3) % ROOMS)
}

async fn sign_up(port: u16) -> Vec<Account> {
    let mut signing = JoinSet::new();
    for index in 0..CLIENTS {
        signing
            .spawn(async move { (index, Account::sign_up(port, &format!("client{index}")).await) });
    }
    let mut accounts = signing.join_all().await;
    accounts.sort_by_key(|(index, _)| *index);
    accounts.into_iter().map(|(_, account)| account).collect()
}

/// Makes the rooms as the first account, which is a member of all, and invites the others into
/// theirs.
async fn open_rooms(port: u16, accounts: &[Account]) -> Vec<RoomId> {
    let mut owner =
        Connection::open(port, &accounts[0].token, Format::Json).await.expect("the server is up");
    let mut rooms = Vec::new();
    let mut codes = Vec::new();
    for index in 0..ROOMS {
        let room = owner.call(&RoomCreate { name: format!("room {index}"), topic: None }).await.id;
        let invite = InviteCreate { room, expires_in_s: None, uses_max: None };
        codes.push(owner.call(&invite).await.code);
        rooms.push(room);
    }
    for (index, account) in accounts.iter().enumerate().skip(1) {
        let mut guest =
            Connection::open(port, &account.token, Format::Json).await.expect("the server is up");
        for room in memberships(index) {
            guest.call(&InviteAccept { code: codes[room].clone() }).await;
        }
    }
    rooms
}
