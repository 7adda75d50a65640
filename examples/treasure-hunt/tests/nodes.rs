//! The hunt on three nodes: real processes with a real PostgreSQL, players on each, and one node
//! killed while they play.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use althing_testkit::servers::PostgresServer;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use treasure_hunt::limits::SOCKET_PLAYERS_MAX;
use treasure_hunt::load::Bot;
use treasure_hunt::load::client::{Client, get_json};
use treasure_hunt::nodes;
use treasure_hunt::place::{PlayerId, RegionId};
use treasure_hunt::recount::Recount;
use treasure_hunt::rules::{Act, Refusal};
use treasure_hunt::wire::{Command as Says, Joined, Notice};

const PROGRAM: &str = env!("CARGO_BIN_EXE_treasure-hunt");
const NODES: usize = 3;
/// On each node.
const PLAYERS: usize = 8;
/// Acts of each player that are acknowledged before a node dies, and as many after that.
const ACTS: u32 = 25;
/// Between two acts of a player: somewhat slower than it may be.
const PAUSE: Duration = Duration::from_millis(60);
/// A lost node is missed after six seconds, on a machine that builds and tests at once.
const PATIENCE: Duration = Duration::from_secs(60);

struct Node {
    process: Child,
    address: SocketAddr,
}

impl Node {
    async fn start(number: usize, store: &str) -> Self {
        let mut process = Command::new(PROGRAM)
            .args(["node", "--name", &format!("n{number}"), "--address", "127.0.0.1:0"])
            .args(["--store", store, "--lease", "4s"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it starts in time");
        let line = line.unwrap().expect("it says where it listens");
        let address = line.rsplit("http://").next().unwrap().parse().unwrap();
        Self { process, address }
    }

    /// How many actors of that kind live on it.
    async fn live(&self, kind: &str) -> u64 {
        let status: Value = get_json(self.address, "/status").await.unwrap();
        let kinds = status["actors"].as_array().unwrap();
        let found = kinds.iter().find(|found| found["name"] == kind);
        found.and_then(|found| found["alive"].as_u64()).unwrap_or_default()
    }

    async fn stop(mut self) {
        let pid = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        let ended = timeout(PATIENCE, self.process.wait()).await.expect("it ends in time");
        assert!(ended.unwrap().success());
    }
}

/// A player who goes on at the next node when theirs is lost.
struct Person {
    nodes: Vec<SocketAddr>,
    at: usize,
    client: Client,
    token: u64,
    bot: Bot,
}

impl Person {
    async fn join(nodes: Vec<SocketAddr>, number: usize) -> Self {
        let at = number % nodes.len();
        let mut client = Client::connect(nodes[at]).await.unwrap();
        client.reads_views = false;
        let name = "somebody".into();
        let near = RegionId::new(u16::try_from(10 * number).unwrap());
        client.send(&[Says::Join { tag: 1, near, name }]).await.unwrap();
        let joined = match timeout(PATIENCE, client.answer()).await.expect("in time").unwrap() {
            Notice::Joined(joined) => joined,
            other => panic!("a join is answered with {other:?}"),
        };
        let bot = Bot::new(&joined, Instant::now());
        Self { nodes, at, client, token: joined.token, bot }
    }

    /// Plays until told to stop, and tells of each act that is acknowledged.
    async fn play(
        mut self,
        done: mpsc::UnboundedSender<PlayerId>,
        stops: watch::Receiver<bool>,
    ) -> Bot {
        while !*stops.borrow() {
            tokio::time::sleep(PAUSE).await;
            let act = self.bot.act(PAUSE);
            if self.does(act).await {
                // Nobody counts any more at the end.
                done.send(self.bot.player).ok();
            }
        }
        self.bot
    }

    /// Whether the act happened; asks as long as nobody knows.
    async fn does(&mut self, act: Act) -> bool {
        loop {
            match self.ask(act).await {
                Some(Notice::Done(outcome)) => {
                    self.bot.done(&outcome, Instant::now());
                    return true;
                }
                Some(Notice::Refused { code, .. })
                    if [Refusal::Unavailable, Refusal::Busy].map(Refusal::code).contains(&code) => {
                }
                Some(Notice::Refused { code, text, .. }) => {
                    let is_of_the_game = self.bot.refused(code, Instant::now());
                    assert!(is_of_the_game || code == Refusal::TooFast.code(), "{text}");
                    return false;
                }
                Some(other) => panic!("an act is answered with {other:?}"),
                None => {
                    let back = self.come_back().await;
                    if back.state.seq == act.seq {
                        self.bot.done(&back.state, Instant::now());
                        return true;
                    }
                    // It did not happen, and something else may be done instead.
                    assert_eq!(back.state.seq.0 + 1, act.seq.0);
                    self.bot.refused(Refusal::Unavailable.code(), Instant::now());
                    return false;
                }
            }
        }
    }

    /// What a node answers; `None`: the connection is lost.
    async fn ask(&mut self, act: Act) -> Option<Notice> {
        self.client.send(&[Says::Act(act)]).await.ok()?;
        timeout(PATIENCE, self.client.answer()).await.expect("an answer in time").ok()
    }

    /// Comes in at the next node that is there.
    async fn come_back(&mut self) -> Joined {
        let back = async {
            loop {
                self.at = (self.at + 1) % self.nodes.len();
                let Ok(mut client) = Client::connect(self.nodes[self.at]).await else { continue };
                client.reads_views = false;
                let resume = Says::Resume { player: self.bot.player, token: self.token };
                if client.send(&[resume]).await.is_err() {
                    continue;
                }
                match client.answer().await {
                    Ok(Notice::Joined(joined)) => {
                        self.client = client;
                        return joined;
                    }
                    Ok(Notice::Refused { code, .. }) if code == Refusal::Unavailable.code() => {}
                    Ok(other) => panic!("a resume is answered with {other:?}"),
                    Err(_) => {}
                }
            }
        };
        timeout(PATIENCE, back).await.expect("a node takes it in time")
    }
}

/// Waits until each player has done so many acts more.
async fn all_act(done: &mut mpsc::UnboundedReceiver<PlayerId>, players: usize) {
    let mut acts = std::collections::HashMap::new();
    while acts.values().filter(|acts| **acts >= ACTS).count() < players {
        let player = timeout(PATIENCE, done.recv()).await.expect("somebody acts");
        *acts.entry(player.expect("all play")).or_insert(0) += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_act_is_lost_or_doubled_when_one_of_three_nodes_is_killed_in_play() {
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    let store = postgres.url();
    let mut nodes = Vec::new();
    for number in 0..NODES {
        nodes.push(Node::start(number, &store).await);
    }
    let addresses: Vec<_> = nodes.iter().map(|node| node.address).collect();
    let (acted, mut done) = mpsc::unbounded_channel();
    let stopping = watch::Sender::new(false);
    let mut people = JoinSet::new();
    for number in 0..NODES * PLAYERS {
        let person = Person::join(addresses.clone(), number).await;
        people.spawn(person.play(acted.clone(), stopping.subscribe()));
    }
    all_act(&mut done, NODES * PLAYERS).await;
    for node in &nodes {
        let lives = (node.live("hunt.player").await, node.live("hunt.region").await);
        assert!(lives.0 > 0 && lives.1 > 0, "{} has {lives:?}", node.address);
    }

    let mut killed = nodes.remove(1);
    killed.process.kill().await.unwrap();
    while done.try_recv().is_ok() {}
    all_act(&mut done, NODES * PLAYERS).await;
    stopping.send_replace(true);
    let mut bots = Vec::new();
    while let Some(bot) = people.join_next().await {
        bots.push(bot.unwrap());
    }
    for node in nodes {
        node.stop().await;
    }

    let counted = Command::new(PROGRAM).args(["recount", "--json", "--store", &store]).output();
    let counted = counted.await.unwrap();
    assert!(counted.status.success(), "{}", String::from_utf8_lossy(&counted.stderr));
    let recount: Recount = serde_json::from_slice(&counted.stdout).unwrap();
    assert_eq!(recount.violations, 0, "{:?}", recount.violations_told);
    assert_eq!(recount.players.len(), bots.len());
    for bot in &bots {
        assert_eq!(recount.players[&bot.player.0], bot.count, "player {}", bot.player.0);
    }
    let points: u64 = recount.players.values().map(|player| u64::from(player.score)).sum();
    assert_eq!(recount.score, points);
    assert!(recount.events >= u64::from(2 * ACTS) * bots.len() as u64, "{}", recount.events);
}

/// Recounts the world until it is as it should be.
async fn counts(store: &str, what: &str, is_it: impl Fn(&Recount) -> bool) {
    let counted = async {
        // Another process writes it, and says nothing.
        while !is_it(&nodes::recount(store).await.unwrap()) {
            tokio::time::sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, counted).await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_amid_their_coming_leaves_the_world_after_a_while() {
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    let store = postgres.url();
    let node = Node::start(0, &store).await;
    let mut client = Client::connect(node.address).await.unwrap();
    let join = Says::Join { tag: 1, near: RegionId::new(5), name: "somebody".into() };
    client.send(&[join]).await.unwrap();
    drop(client);
    counts(&store, "the player to come", |recount| recount.events > 0).await;
    counts(&store, "the player to go", |recount| recount.present == 0).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_players_is_counted_before_it_is_answered() {
    const TOO_MANY: usize = 64;
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    let node = Node::start(0, &postgres.url()).await;
    let mut client = Client::connect(node.address).await.unwrap();
    client.reads_views = false;
    let join = || Says::Join { tag: 1, near: RegionId::new(5), name: "x".into() };
    for _ in 0..(SOCKET_PLAYERS_MAX + TOO_MANY) / TOO_MANY {
        client.send(&std::array::from_fn::<_, TOO_MANY, _>(|_| join())).await.unwrap();
    }
    let mut refused = 0;
    while refused < TOO_MANY {
        match timeout(PATIENCE, client.answer()).await.expect("in time").unwrap() {
            Notice::Refused { code, .. } if code == Refusal::TooManyPlayers.code() => refused += 1,
            Notice::Joined(_) | Notice::Refused { .. } => {}
            other => panic!("a join is answered with {other:?}"),
        }
    }
}
