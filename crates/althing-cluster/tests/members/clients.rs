//! Clients of a cluster, who are no nodes: what they see, what they tell and ask, what they have
//! moved, and what they may not. Over real sockets, with certificates.

use std::pin::pin;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, SystemTime};

use crate::support::proxy::Proxy;
use althing::{ActorId, ActorOptions, AskError, MailboxKind, Node, SendError, actor};
use althing_cluster::{
    Authority, Capability, CertificateAuthority, Certified, Client, ClientConfig, ClientError,
    Member, MemberConfig, State, Tls,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts what it is told.
#[derive(Default)]
struct Tally {
    sum: u64,
    /// What all of them were told, on all nodes.
    told: Arc<Mutex<Vec<u64>>>,
}

#[actor(name = "test.tally", wire)]
impl Tally {
    async fn add(&mut self, n: u64) {
        self.sum += n;
        self.told.lock().push(n);
    }

    async fn sum(&mut self) -> u64 {
        self.sum
    }

    async fn echo(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    async fn grow(&mut self, len: u64) -> Vec<u8> {
        vec![7; usize::try_from(len).expect("it fits")]
    }

    /// Replies after a long time.
    async fn dawdle(&mut self) {
        sleep(PATIENCE * 2).await;
    }
}

/// Takes numbers as long as it has been let, and has room for one that waits.
struct Clogged {
    let_in: Arc<Semaphore>,
    told: Arc<Mutex<Vec<u64>>>,
}

#[actor(name = "test.clogged", wire)]
impl Clogged {
    async fn take(&mut self, n: u64) {
        self.let_in.acquire().await.expect("it is open").forget();
        self.told.lock().push(n);
    }
}

/// Of a kind that the nodes do not have.
struct Stranger;

#[actor(name = "test.stranger", wire)]
impl Stranger {
    async fn hello(&mut self) {}
}

fn in_an_hour() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3_600)
}

/// A cluster with certificates, its authority in the test's own process.
struct Scene {
    certificates: CertificateAuthority,
    directory: tempfile::TempDir,
    authority: Authority,
    nodes: Vec<(Member, Node)>,
    told: Arc<Mutex<Vec<u64>>>,
    let_in: Arc<Semaphore>,
}

impl Scene {
    async fn new(names: &[&str]) -> Self {
        let certificates = CertificateAuthority::new("test", in_an_hour()).expect("a name");
        let own = certificates.certify("authority", in_an_hour()).expect("a name");
        let tls = Tls::from_pem(own.certificate, own.key, certificates.certificate());
        let (directory, authority) = crate::support::authority_with(tls);
        let (nodes, told) = (Vec::new(), Arc::default());
        let let_in = Arc::new(Semaphore::new(0));
        let mut scene = Self { certificates, directory, authority, nodes, told, let_in };
        for name in names {
            scene.join(name).await;
        }
        scene
    }

    fn tls(&self, own: Certified) -> Tls {
        Tls::from_pem(own.certificate, own.key, self.certificates.certificate())
    }

    async fn join(&mut self, name: &str) {
        self.join_behind(name, None).await;
    }

    /// Has a node join that others reach by a proxy.
    async fn join_behind(&mut self, name: &str, proxy: Option<&Proxy>) {
        let own = self.certificates.certify(name, in_an_hour()).expect("a name");
        let authority = self.authority.address().to_string();
        let mut config = MemberConfig::new("test", name, authority, self.tls(own));
        config.advertised = proxy.map(|proxy| proxy.address.to_string());
        let member = Member::bind(config).expect("the certificate is for it");
        if let Some(proxy) = proxy {
            proxy.target.set(member.address()).expect("once");
        }
        let builder = Node::builder(name).cluster(member.way());
        let told = self.told.clone();
        let tally = move |_| {
            let told = told.clone();
            async move { Ok(Tally { sum: 0, told }) }
        };
        let (let_in, told) = (self.let_in.clone(), self.told.clone());
        let clogged = move |_| {
            let (let_in, told) = (let_in.clone(), told.clone());
            async move { Ok(Clogged { let_in, told }) }
        };
        let one_waits = ActorOptions::default().mailbox(MailboxKind::Bounded(1));
        let builder = builder.actor(tally).actor(clogged).options::<Clogged>(one_waits);
        let node = builder.build();
        member.join().await.expect("it is trusted");
        self.nodes.push((member, node));
    }

    fn at(&self) -> Vec<String> {
        self.nodes.iter().map(|(member, _)| member.address().to_string()).collect()
    }

    fn config(&self, may: &[Capability]) -> ClientConfig {
        let own = self.certificates.certify_client("ada", may, in_an_hour()).expect("a name");
        ClientConfig::new("test", self.at(), self.tls(own))
    }

    /// Messages that wait for an actor that takes one after the other.
    fn waiting(&self, key: &str) -> usize {
        let id = ActorId::named("test.clogged", key);
        let views = self.nodes.iter().filter_map(|(_, node)| node.inspector().actor(&id));
        views.map(|view| view.depth).sum()
    }

    async fn client(&self, may: &[Capability]) -> Client {
        Client::connect(self.config(may)).await.expect("it is trusted")
    }

    /// Runs the command with a certificate that says so.
    fn althing(&self, may: Capability, arguments: &[&str]) -> impl Future<Output = Output> + use<> {
        let mut command = self.command(may, arguments);
        async move {
            let run = tokio::task::spawn_blocking(move || command.output());
            timeout(PATIENCE, run).await.expect("it ends").expect("no panic").expect("it starts")
        }
    }

    fn command(&self, may: Capability, arguments: &[&str]) -> Command {
        let name = format!("ada.{may}.client");
        let own = self.certificates.certify(&name, in_an_hour()).expect("a name");
        let place = |file: String| self.directory.path().join(file);
        std::fs::write(place(format!("{name}.pem")), own.certificate).expect("there is room");
        std::fs::write(place(format!("{name}.key")), own.key).expect("there is room");
        let authority = self.certificates.certificate();
        std::fs::write(place("ca.pem".to_owned()), authority).expect("there is room");
        let mut command = Command::new(env!("CARGO_BIN_EXE_althing"));
        command.args(["--cluster", "test", "--at", &self.at().join(","), "--as", &name, "--tls"]);
        command.arg(self.directory.path()).args(arguments).stdin(Stdio::null());
        command
    }

    /// Until every node has its share, and nothing moves.
    async fn settled(&self, client: &Client) {
        let settle = async {
            loop {
                let view = client.view().await.expect("it may look");
                let is_settled = |node: &althing_cluster::Neighbour| {
                    node.arriving + node.departing == 0 && (node.buckets > 0 || node.is_leaving)
                };
                if view.members.len() == self.nodes.len() && view.members.iter().all(is_settled) {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, settle).await.expect("it settles");
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complained(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_tells_and_asks_actors_on_every_node_without_being_one() {
    let scene = Scene::new(&["one", "two", "three"]).await;
    let client = scene.client(&[Capability::Talk]).await;
    for n in 0..60 {
        let tally = client.get::<Tally>(format!("{n}")).expect("it may talk");
        for _ in 0..20 {
            tally.add(n).tell().await.expect("there is room");
        }
        // Behind all that was told.
        assert_eq!(tally.sum().timeout(PATIENCE).await, Ok(n * 20));
    }
    let owners = (0..60).map(|n| {
        let id = ActorId::named("test.tally", format!("{n}"));
        scene.nodes[0].0.owner_of(&id).expect("somebody owns it")
    });
    assert_eq!(owners.collect::<std::collections::BTreeSet<_>>().len(), 3, "on all of them");
    assert_eq!(scene.nodes[0].0.view().members.len(), 3, "the client is no member");
    let stranger = client.get::<Stranger>("nobody").expect("it may talk");
    assert!(matches!(stranger.hello().await, Err(AskError::NotUnderstood(..))));
    let tally = client.get::<Tally>("1").expect("it may talk");
    let long = tally.echo(vec![0; 5 << 20]).await;
    assert!(matches!(long, Err(AskError::NotUnderstood(..))), "longer than a frame");
    let long = tally.echo(vec![0; 5 << 20]).tell().await;
    assert!(matches!(long, Err(SendError::TooLong(_))), "{long:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_does_nothing_that_its_certificate_does_not_say() {
    let scene = Scene::new(&["one", "two"]).await;
    let no = |may| Err::<(), _>(ClientError::NotAllowed(may));
    let talks = scene.client(&[Capability::Talk]).await;
    assert_eq!(talks.view().await.map(drop), no(Capability::Look));
    assert_eq!(talks.changes().await.map(drop), no(Capability::Look));
    let looks = scene.client(&[Capability::Look]).await;
    assert_eq!(looks.get::<Tally>("a").map(drop), no(Capability::Talk));
    let id = ActorId::named("test.tally", "a");
    assert_eq!(looks.move_to(&id, "one", PATIENCE).await, no(Capability::Manage));
    assert_eq!(looks.drain("two", PATIENCE).await, no(Capability::Manage));
    assert!(!scene.nodes[0].0.view().members.iter().any(|node| node.is_leaving));
    // Nor is it a node, or somebody from elsewhere one.
    let name = "ada.manage.client";
    let own = scene.certificates.certify(name, in_an_hour()).expect("a name");
    let authority = scene.authority.address().to_string();
    let config = MemberConfig::new("test", name, authority.clone(), scene.tls(own.clone()));
    assert!(Member::bind(config).is_err(), "a client's name");
    let config = MemberConfig::new("test", "three", authority, scene.tls(own));
    assert!(Member::bind(config).is_err(), "a client's certificate");
    let others = CertificateAuthority::new("test", in_an_hour()).expect("a name");
    let own = others.certify_client("eve", &Capability::ALL, in_an_hour()).expect("a name");
    let tls = Tls::from_pem(own.certificate, own.key, scene.certificates.certificate());
    let refused = Client::connect(ClientConfig::new("test", scene.at(), tls)).await;
    assert!(matches!(refused, Err(ClientError::Untrusted(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_shows_nodes_and_actors_and_refuses_what_is_not_there() {
    let scene = Scene::new(&["one", "two", "three"]).await;
    let client = scene.client(&[Capability::Look, Capability::Talk]).await;
    scene.settled(&client).await;
    client.get::<Tally>("apples").expect("it may talk").add(3).await.expect("it is there");
    let nodes = scene.althing(Capability::Look, &["nodes"]).await;
    let lines: Vec<_> = said(&nodes).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{nodes:?}");
    let status = client.status("two").await.expect("it is there");
    assert_eq!(status.state, State::Serving);
    assert!(lines.iter().all(|line| line.contains(" serving buckets 1")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(" actors 1 waiting 0")), "{lines:?}");
    let found = said(&scene.althing(Capability::Look, &["find", "test.tally", "apples"]).await);
    let owner = found.split(' ').next().expect("a node").to_owned();
    assert!(found.contains("test.tally/apples waiting 0 handled 1"), "{found}");
    let actors = said(&scene.althing(Capability::Look, &["actors", "app"]).await);
    assert_eq!(actors, format!("{owner} test.tally/apples waiting 0 handled 1\n"));
    let no = scene.althing(Capability::Look, &["find", "test.stranger", "a"]).await;
    assert!(complained(&no).contains("no actors are called `test.stranger`"), "{no:?}");
    let no = scene.althing(Capability::Look, &["actors", "--node", "nine"]).await;
    assert!(complained(&no).contains("no node is called `nine`"), "{no:?}");
    let no = scene.althing(Capability::Talk, &["nodes"]).await;
    assert!(complained(&no).contains("the certificate does not say `look`"), "{no:?}");
    let no = scene.althing(Capability::Look, &["drain", "one"]).await;
    assert!(complained(&no).contains("the certificate does not say `manage`"), "{no:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_is_moved_by_hand_while_it_is_told_and_loses_nothing() {
    let scene = Scene::new(&["one", "two"]).await;
    let client = scene.client(&Capability::ALL).await;
    scene.settled(&client).await;
    let tally = client.get::<Tally>("apples").expect("it may talk");
    tally.add(1).await.expect("it is there");
    let found = client.find("test.tally", "apples").await.expect("it may look");
    let from = found.node.expect("somebody owns it");
    let to = if from == "one" { "two" } else { "one" };
    let mut told = vec![1];
    let moved = scene.althing(Capability::Manage, &["move", "test.tally", "apples", to]);
    let mut moved = Box::pin(moved);
    let moved = loop {
        tokio::select! {
            biased;
            moved = &mut moved => break moved,
            sent = tally.add(told.len() as u64 + 1).tell() => {
                sent.expect("there is room");
                told.push(told.len() as u64 + 1);
            }
        }
    };
    assert_eq!(said(&moved), format!("test.tally/apples is on {to}\n"), "{moved:?}");
    let found = client.find("test.tally", "apples").await.expect("it may look");
    assert_eq!((found.node.as_deref(), found.going_to), (Some(to), None));
    // Behind all that was told.
    tally.sum().timeout(PATIENCE).await.expect("it is there");
    assert_eq!(*scene.told.lock(), told, "each once and in order, by the one or the other");
    let view = client.view().await.expect("it may look");
    // It stays, though others come and everything is dealt out anew.
    let no = scene.althing(Capability::Manage, &["move", "test.tally", "apples", "nine"]).await;
    assert!(complained(&no).contains("no node is called `nine`"), "{no:?}");
    let no = scene.althing(Capability::Manage, &["move", "test.stranger", "a", to]).await;
    assert!(complained(&no).contains("no actors are called `test.stranger`"), "{no:?}");
    let mut scene = scene;
    scene.join("three").await;
    scene.settled(&client).await;
    let found = client.find("test.tally", "apples").await.expect("it may look");
    assert_eq!(found.node.as_deref(), Some(to));
    assert!(client.view().await.expect("it may look").number > view.number);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_drained_while_a_client_asks_through_it_and_no_ask_fails() {
    let scene = Scene::new(&["one", "two"]).await;
    let client = scene.client(&[Capability::Look, Capability::Talk]).await;
    scene.settled(&client).await;
    let mut changes = client.changes().await.expect("it may look");
    let drained = scene.althing(Capability::Manage, &["drain", "one"]);
    let mut drained = Box::pin(drained);
    let mut asked = 0;
    let drained = loop {
        let tally = client.get::<Tally>(format!("{}", asked % 40)).expect("it may talk");
        tokio::select! {
            biased;
            drained = &mut drained => break drained,
            sum = tally.sum().timeout(PATIENCE) => { sum.expect("no ask fails"); }
        }
        asked += 1;
    };
    assert_eq!(said(&drained), "one owns nothing\n", "{drained:?}");
    assert!(asked > 0);
    let gone = async {
        loop {
            let view = changes.next().await.expect("the node is there");
            let one = view.members.iter().find(|node| node.name == "one").expect("a member still");
            if one.buckets == 0 {
                return one.is_leaving;
            }
        }
    };
    assert!(timeout(PATIENCE, gone).await.expect("it is told"), "who watches sees it");
    let no = scene.althing(Capability::Manage, &["drain", "two"]).await;
    assert!(complained(&no).contains("no other node takes"), "{no:?}");
}

/// Neither has anybody to give its actors to until a third one comes; or one of them is asked before
/// the other and gives them to that one, which hears that there is nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_are_drained_at_once_serve_until_another_one_takes_all() {
    let mut scene = Scene::new(&["one", "two"]).await;
    let client = Arc::new(scene.client(&Capability::ALL).await);
    scene.settled(&client).await;
    let drains = ["one", "two"].map(|name| {
        let client = client.clone();
        tokio::spawn(async move { client.drain(name, PATIENCE).await })
    });
    let ask_all = async || {
        for n in 0..40 {
            let tally = client.get::<Tally>(format!("{n}")).expect("it may talk");
            tally.sum().timeout(PATIENCE).await.expect("no ask fails");
        }
    };
    ask_all().await;
    scene.join("three").await;
    let mut drained = 0;
    for drain in drains {
        match drain.await.expect("no panic") {
            Ok(()) => drained += 1,
            Err(why) => assert_eq!(why, ClientError::NobodyElse),
        }
    }
    assert!(drained > 0, "somebody takes all");
    ask_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_about_one_node_does_not_wait_for_another_that_hangs() {
    let proxy = Proxy::new().await;
    let mut scene = Scene::new(&["one", "two"]).await;
    let client = scene.client(&[Capability::Look]).await;
    scene.join_behind("three", Some(&proxy)).await;
    proxy.stop().await;
    // A node may not know it yet.
    while client.view().await.expect("it may look").members.len() < 3 {
        sleep(Duration::from_millis(10)).await;
    }
    let mut hangs = pin!(client.status("three"));
    // It dials by then.
    assert!(timeout(Duration::from_millis(500), &mut hangs).await.is_err(), "it hangs");
    let both = async {
        let asked = client.status("two");
        tokio::select! {
            biased;
            _ = &mut hangs => panic!("it hangs"),
            answered = asked => answered.expect("it answers"),
        }
    };
    assert!(timeout(PATIENCE, both).await.expect("in time").view > 0);
    assert!(hangs.await.is_err(), "nobody is heard of there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_node_dies_goes_on_by_another_one_that_it_was_not_told_of() {
    let mut scene = Scene::new(&["one", "two"]).await;
    let may = [Capability::Look, Capability::Talk];
    let own = scene.certificates.certify_client("ada", &may, in_an_hour()).expect("a name");
    let only = [scene.nodes[0].0.address().to_string()];
    let config = ClientConfig::new("test", only, scene.tls(own));
    let client = Client::connect(config).await.expect("it is trusted");
    scene.settled(&client).await;
    let keys: Vec<_> = (0..20).map(|n| format!("{n}")).collect();
    for key in &keys {
        client.get::<Tally>(&**key).expect("it may talk").add(1).await.expect("it is there");
    }
    drop(scene.nodes.remove(0));
    for key in &keys {
        let tally = client.get::<Tally>(&**key).expect("it may talk");
        let answered = async {
            loop {
                match tally.sum().timeout(PATIENCE).await {
                    Ok(_) => return,
                    // What was under way, or has gone to a node that was not known to be dead.
                    Err(AskError::NodeLost(_)) => sleep(Duration::from_millis(20)).await,
                    Err(why) => panic!("{why}"),
                }
            }
        };
        timeout(PATIENCE, answered).await.expect("the other one answers");
    }
    let view = client.view().await.expect("it may look");
    assert!(view.members.iter().any(|node| node.name == "two"), "{view:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_may_only_talk_goes_on_while_all_nodes_are_replaced() {
    let mut scene = Scene::new(&["one"]).await;
    let client = scene.client(&[Capability::Talk]).await;
    let tally = client.get::<Tally>("a").expect("it may talk");
    tally.add(1).await.expect("it is there");
    for next in ["two", "three", "four"] {
        scene.join(next).await;
        let (former, _) = scene.nodes.remove(0);
        former.leave(PATIENCE).await;
        drop(former);
        let answered = async {
            loop {
                match tally.sum().timeout(PATIENCE).await {
                    Ok(_) => return,
                    Err(AskError::NodeLost(_)) => sleep(Duration::from_millis(20)).await,
                    Err(why) => panic!("{next}: {why}"),
                }
            }
        };
        timeout(PATIENCE, answered).await.expect("the next one answers");
    }
    let refused = client.view().await.map(drop);
    assert_eq!(refused, Err(ClientError::NotAllowed(Capability::Look)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_too_long_for_a_client_fails_its_ask_and_no_other() {
    let scene = Scene::new(&["one"]).await;
    let client = scene.client(&[Capability::Talk]).await;
    let tally = client.get::<Tally>("a").expect("it may talk");
    let slow = client.get::<Tally>("slow").expect("it may talk");
    let mut slow = Box::pin(slow.dawdle().timeout(PATIENCE * 2));
    assert!(timeout(Duration::ZERO, &mut slow).await.is_err(), "it is under way");
    let refused = tally.grow(5 << 20).timeout(PATIENCE).await;
    assert!(
        matches!(&refused, Err(AskError::ReplyTooLong(_, why)) if why.contains("longer")),
        "{:?}",
        refused.map(|reply| reply.len())
    );
    assert_eq!(tally.grow(3 << 20).timeout(PATIENCE).await.map(|it| it.len()), Ok(3 << 20));
    assert!(timeout(Duration::ZERO, &mut slow).await.is_err(), "still under way");
    // The same where the client reads less than the node sends.
    let config = scene.config(&[Capability::Talk]).frame_len_max(10_000);
    let client = Client::connect(config).await.expect("it is trusted");
    let tally = client.get::<Tally>("b").expect("it may talk");
    let slow = client.get::<Tally>("slower").expect("it may talk");
    let mut slow = Box::pin(slow.dawdle().timeout(PATIENCE * 2));
    assert!(timeout(Duration::ZERO, &mut slow).await.is_err(), "it is under way");
    for len in [9_000, 10_001, 3 << 20, 9_000] {
        let reply = tally.grow(len).timeout(PATIENCE).await.map(|reply| reply.len() as u64);
        match reply {
            Err(AskError::ReplyTooLong(id, why)) if len > 10_000 => {
                assert!(id == tally.id() && why.contains("longer"), "{id} {why}");
            }
            reply => assert_eq!(reply, Ok(len)),
        }
    }
    assert!(timeout(Duration::ZERO, &mut slow).await.is_err(), "still under way");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_actors_that_is_too_long_for_a_frame_is_cut() {
    let scene = Scene::new(&["one"]).await;
    let client = scene.client(&[Capability::Look, Capability::Talk]).await;
    // Together longer than a frame may be.
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..600 {
        let tally = client.get::<Tally>(format!("{n}{}", "k".repeat(8_000))).expect("it may talk");
        asked.spawn(async move { tally.sum().timeout(PATIENCE).await });
    }
    while let Some(sum) = asked.join_next().await {
        assert_eq!(sum.expect("no panic"), Ok(0));
    }
    let listing = client.actors("one", "", 10_000).await.expect("it may look");
    assert!(listing.actors.len() > 100, "{}", listing.actors.len());
    assert!(listing.left as usize + listing.actors.len() >= 600, "the rest is counted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_amid_its_asks_leaves_nothing_behind() {
    let scene = Scene::new(&["one", "two"]).await;
    let looks = scene.client(&[Capability::Look]).await;
    scene.settled(&looks).await;
    let before = looks.status("one").await.expect("it is there").clients
        + looks.status("two").await.expect("it is there").clients;
    for round in 0..20 {
        let client = scene.client(&[Capability::Talk]).await;
        let slow = (0..50).map(|n| client.get::<Tally>(format!("{round} {n}")).expect("it may"));
        let mut asks: Vec<_> =
            slow.map(|slow| Box::pin(async move { slow.dawdle().await })).collect();
        for ask in &mut asks {
            assert!(timeout(Duration::ZERO, ask).await.is_err(), "under way");
        }
        drop(client);
    }
    let all_gone = async {
        loop {
            let one = looks.status("one").await.expect("it is there").clients;
            let two = looks.status("two").await.expect("it is there").clients;
            if one + two <= before {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, all_gone).await.expect("their connections end");
    let client = scene.client(&[Capability::Talk]).await;
    let tally = client.get::<Tally>("another").expect("it may talk");
    assert_eq!(tally.sum().timeout(PATIENCE).await, Ok(0));
}

/// Two nodes, so that the actor is on the one that the client talks to, or behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_whose_mailbox_stays_full_holds_up_nothing_else_of_its_client() {
    const MESSAGES: u64 = 700;
    let scene = Scene::new(&["one", "two"]).await;
    let client = scene.client(&[Capability::Look, Capability::Talk]).await;
    for key in ["a", "b", "c"] {
        let clogged = client.get::<Clogged>(key).expect("it may");
        let telling = tokio::spawn(async move {
            for n in 0..MESSAGES {
                let told = clogged.take(n).timeout(PATIENCE).tell();
                told.await.expect("there is room in time");
            }
        });
        let waits = async {
            while scene.waiting(key) == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, waits).await.expect("it is told");
        // As many as may be under way are.
        sleep(Duration::from_millis(300)).await;
        for other in 0..8 {
            let tally = client.get::<Tally>(format!("{key}{other}")).expect("it may");
            tally.sum().timeout(PATIENCE).await.expect("it is not held up");
        }
        for node in ["one", "two"] {
            let status = timeout(PATIENCE, client.status(node)).await;
            status.expect("it is not held up").expect("it answers");
        }
        scene.let_in.add_permits(usize::try_from(MESSAGES).expect("it fits"));
        telling.await.expect("all were taken");
        let runs = async {
            while scene.told.lock().len() < usize::try_from(MESSAGES).expect("it fits") {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, runs).await.expect("all of them run");
        let told = std::mem::take(&mut *scene.told.lock());
        assert!(told.into_iter().eq(0..MESSAGES), "in their order");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_actors_that_take_nothing_hold_up_nothing_else_of_their_client() {
    const MESSAGES: usize = 300;
    let scene = Scene::new(&["one", "two"]).await;
    let client = scene.client(&[Capability::Look, Capability::Talk]).await;
    let keys: Vec<_> = (0..6).map(|n| format!("clogged-{n}")).collect();
    let mut telling = Vec::new();
    for key in &keys {
        let clogged = client.get::<Clogged>(key.as_str()).expect("it may");
        telling.push(tokio::spawn(async move {
            for n in 0..MESSAGES as u64 {
                let told = clogged.take(n).timeout(PATIENCE).tell();
                told.await.expect("there is room in time");
            }
        }));
        let waits = async {
            while scene.waiting(key) == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, waits).await.expect("it is told");
        // As many as may be under way are.
        sleep(Duration::from_millis(100)).await;
    }
    for other in 0..8 {
        let tally = client.get::<Tally>(format!("{other}")).expect("it may");
        tally.sum().timeout(PATIENCE).await.expect("it is not held up");
    }
    scene.let_in.add_permits(keys.len() * MESSAGES);
    for telling in telling {
        telling.await.expect("all were taken");
    }
}

/// Counts by its own references.
struct Listed;

impl Wake for Listed {
    fn wake(self: Arc<Self>) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_given_up_waiting_for_room_is_forgotten_after_a_while() {
    let mut scene = Scene::new(&["one"]).await;
    let client = scene.client(&[Capability::Talk]).await;
    let tally = client.get::<Tally>("a").expect("it may");
    let listed = Arc::new(Listed);
    let waker = Waker::from(listed.clone());
    // With nobody to send to, the first wait for a connection and the others for room.
    scene.nodes.clear();
    let waits = async {
        loop {
            let mut told = pin!(tally.add(1).timeout(PATIENCE).tell());
            if told.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, waits).await.expect("there is no room in the end");
    drop(waker);
    assert!(Arc::strong_count(&listed) > 1, "it waits");
    let forgotten = async {
        while Arc::strong_count(&listed) > 1 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, forgotten).await.expect("it has given up");
}
