//! Read states over a socket.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod support;

use std::io;
use std::path::Path;
use std::sync::Arc;

use folkmoot_read_states::wire::{
    Acknowledge, All, Command, Done, FRAME_LEN_MAX, Mention, Outcome, Place, Reply, Request, State,
    States, get, put,
};
use folkmoot_read_states::{
    Options, ROOMS_MAX, ReadState, ReadStates, Row, RowStore, SqliteRows, serve,
};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn start(directory: &Path) -> Server {
    start_on(directory, Arc::new(rows(directory))).await
}

fn rows(directory: &Path) -> SqliteRows {
    SqliteRows::open(&directory.join("read-states.db")).unwrap()
}

async fn start_on(directory: &Path, store: Arc<dyn RowStore>) -> Server {
    let options = Options { log: Some(directory.join("log")), ..Options::default() };
    let states = ReadStates::open(store, options).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(async move {
        serve(listener, states, async { drop(stopped.await) }).await.unwrap();
    });
    Server { address, stop, ended }
}

struct Client(TcpStream);

impl Client {
    async fn connect(server: &Server) -> Self {
        Self(TcpStream::connect(server.address).await.unwrap())
    }

    async fn send(&mut self, commands: &[Command]) {
        let mut bytes = Vec::new();
        for command in commands {
            put(&Request { command: Some(command.clone()) }, &mut bytes);
        }
        self.0.write_all(&bytes).await.unwrap();
    }

    async fn reply(&mut self) -> io::Result<Option<Outcome>> {
        let reply: Option<Reply> = get(&mut self.0, &mut Vec::new()).await?;
        Ok(reply.and_then(|reply| reply.outcome))
    }
}

fn acknowledge(user: u64, message: u64) -> Command {
    Command::Acknowledge(Acknowledge { user, room: 5, message, mentions_left: 0 })
}

fn states(last_read: u64, mentions: u32) -> Outcome {
    Outcome::States(States { states: vec![State { room: 5, last_read, mentions }] })
}

#[tokio::test]
async fn replies_come_in_the_order_of_their_requests() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    let mut client = Client::connect(&server).await;
    let mention = Command::Mention(Mention { users: vec![1, 2], room: 5, message: 11 });
    let one = |user| Command::One(Place { user, room: 5 });
    let forget = Command::Forget(Place { user: 2, room: 5 });
    let all = |user| Command::All(All { user });
    client.send(&[acknowledge(1, 10), mention, all(1), one(2)]).await;
    let done = Outcome::Done(Done {});
    for expected in [done.clone(), done.clone(), states(10, 1), states(0, 1)] {
        assert_eq!(client.reply().await.unwrap(), Some(expected));
    }
    client.send(&[forget, all(2)]).await;
    assert_eq!(client.reply().await.unwrap(), Some(done));
    assert_eq!(client.reply().await.unwrap(), Some(Outcome::States(States::default())));
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash_and_after_a_stop() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    let mut client = Client::connect(&server).await;
    let commands: Vec<_> = (1..=500).map(|user| acknowledge(user, user)).collect();
    client.send(&commands).await;
    for _ in &commands {
        assert_eq!(client.reply().await.unwrap(), Some(Outcome::Done(Done {})));
    }
    let crashed = tempfile::tempdir().unwrap();
    support::copy(directory.path(), crashed.path());
    server.stop.send(()).unwrap();
    server.ended.await.unwrap();
    for directory in [&crashed, &directory] {
        let server = start(directory.path()).await;
        let mut client = Client::connect(&server).await;
        for user in 1..=500 {
            client.send(&[Command::All(All { user })]).await;
            assert_eq!(client.reply().await.unwrap(), Some(states(user, 0)));
        }
    }
}

/// More requests than may wait, from a client that reads no reply until it has sent them all: the
/// server stops reading, and goes on when the client reads.
#[tokio::test]
async fn a_client_that_reads_late_is_answered_whole() {
    const REQUESTS: usize = 200_000;
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    let (mut reader, mut writer) = Client::connect(&server).await.0.into_split();
    let sending = tokio::spawn(async move {
        let mut bytes = Vec::new();
        put(&Request { command: Some(Command::One(Place { user: 1, room: 5 })) }, &mut bytes);
        for _ in 0..REQUESTS {
            writer.write_all(&bytes).await.unwrap();
        }
        writer
    });
    let mut buffer = Vec::new();
    for _ in 0..REQUESTS {
        let reply: Reply = get(&mut reader, &mut buffer).await.unwrap().unwrap();
        assert_eq!(reply.outcome, Some(states(0, 0)));
    }
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn garbage_is_named_and_ends_its_connection_only() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    let mut honest = Client::connect(&server).await;
    let mut oversized = (FRAME_LEN_MAX + 1).to_le_bytes().to_vec();
    oversized.extend([0; 100]);
    for (garbage, named) in [
        (oversized, "1048577"),
        (vec![0; 4], "without a command"),
        ([&3u32.to_le_bytes()[..], &[0xff; 3]].concat(), "decode"),
    ] {
        let mut client = Client::connect(&server).await;
        client.0.write_all(&garbage).await.unwrap();
        let Some(Outcome::Failure(failure)) = client.reply().await.unwrap() else {
            panic!("garbage is refused");
        };
        assert_eq!(failure.code, "malformed");
        assert!(failure.text.contains(named), "{}", failure.text);
        // Closed, perhaps with what was not read.
        assert!(matches!(client.reply().await, Ok(None) | Err(_)));
    }
    honest.send(&[acknowledge(1, 1)]).await;
    assert_eq!(honest.reply().await.unwrap(), Some(Outcome::Done(Done {})));
}

#[tokio::test]
async fn all_rooms_of_a_user_who_has_as_many_as_may_be_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(rows(directory.path()));
    let entry = |room| ReadState { room: u64::MAX - room, last_read: u64::MAX, mentions: u32::MAX };
    let entries = (0..ROOMS_MAX as u64).map(entry).collect();
    store.save(vec![Row { user: 1, version: 1, entries }]).await.unwrap();
    let server = start_on(directory.path(), store).await;
    let mut client = Client::connect(&server).await;
    client.send(&[Command::All(All { user: 1 })]).await;
    let Some(Outcome::States(all)) = client.reply().await.unwrap() else { panic!("no states") };
    assert_eq!(all.states.len(), ROOMS_MAX);
}

/// What is read waits in memory for its reply to leave.
#[tokio::test]
async fn a_client_that_asks_for_much_ahead_has_little_of_it_read_ahead() {
    const REQUESTS: u64 = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let store = support::Faulty::new(rows(directory.path()));
    let server = start_on(directory.path(), store.clone()).await;
    let mut client = Client::connect(&server).await;
    store.hold_loads(true);
    let all: Vec<_> = (1..=REQUESTS).map(|user| Command::All(All { user })).collect();
    client.send(&all).await;
    // Another one, who comes later and is answered, shows that the first ones were read.
    let mut other = Client::connect(&server).await;
    for user in 1..=500 {
        other.send(&[acknowledge(user, user)]).await;
        assert_eq!(other.reply().await.unwrap(), Some(Outcome::Done(Done {})));
    }
    assert!((1..=64).contains(&store.loads()), "{} are read ahead", store.loads());
    store.hold_loads(false);
    for _ in 1..=REQUESTS {
        assert!(matches!(client.reply().await.unwrap(), Some(Outcome::States(_))));
    }
}

/// Their replies wait behind one that takes long: what each waits for is a position, however many are mentioned.
#[tokio::test]
async fn a_client_that_mentions_many_ahead_takes_little_memory() {
    const USERS: u64 = 20_000;
    const MENTIONS: u64 = 200;
    let directory = tempfile::tempdir().unwrap();
    let store = support::Faulty::new(support::NoRows);
    let server = start_on(directory.path(), store.clone()).await;
    let mut client = Client::connect(&server).await;
    let users: Vec<_> = (1..=USERS).collect();
    for users in users.chunks(1_000) {
        let all: Vec<_> = users.iter().map(|user| Command::All(All { user: *user })).collect();
        client.send(&all).await;
        for _ in users {
            assert!(matches!(client.reply().await.unwrap(), Some(Outcome::States(_))));
        }
    }
    client.send(&users.iter().map(|user| acknowledge(*user, 10)).collect::<Vec<_>>()).await;
    for _ in &users {
        assert_eq!(client.reply().await.unwrap(), Some(Outcome::Done(Done {})));
    }
    store.hold_loads(true);
    client.send(&[Command::All(All { user: USERS + 1 })]).await;
    let before = memory_mib();
    // They were read already: nothing changes.
    let mention = Command::Mention(Mention { users, room: 5, message: 1 });
    for _ in 0..MENTIONS {
        client.send(std::slice::from_ref(&mention)).await;
    }
    client.send(&[acknowledge(1, 11)]).await;
    let mut other = Client::connect(&server).await;
    loop {
        other.send(&[Command::One(Place { user: 1, room: 5 })]).await;
        if other.reply().await.unwrap() == Some(states(11, 0)) {
            break;
        }
    }
    let grown = memory_mib().saturating_sub(before);
    assert!(grown < 100, "{grown} MiB more");
    store.hold_loads(false);
    for _ in 0..MENTIONS + 2 {
        assert!(client.reply().await.unwrap().is_some());
    }
}

/// Of this process.
fn memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() / 1_024
}

/// What has come whole is made; what was cut off is not, and nobody else notices.
#[tokio::test]
async fn a_client_that_is_gone_amid_a_request_has_those_made_that_have_come_whole() {
    const WHOLE: u64 = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path()).await;
    let mut other = Client::connect(&server).await;
    for cut in [1, 3, 4, 5, 9] {
        let mut client = Client::connect(&server).await;
        let whole: Vec<_> = (1..=WHOLE).map(|message| acknowledge(cut, message)).collect();
        client.send(&whole).await;
        let mut last = Vec::new();
        put(&Request { command: Some(acknowledge(cut, WHOLE + 1)) }, &mut last);
        client.0.write_all(&last[..cut as usize]).await.unwrap();
        client.0.shutdown().await.unwrap();
        for _ in &whole {
            assert_eq!(client.reply().await.unwrap(), Some(Outcome::Done(Done {})));
        }
        drop(client);
        other.send(&[Command::One(Place { user: cut, room: 5 })]).await;
        assert_eq!(other.reply().await.unwrap(), Some(states(WHOLE, 0)));
    }
}
