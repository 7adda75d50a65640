//! Who watches, links with or counts on an actor of another node hears of its end once, wherever it
//! has moved meanwhile. Over real sockets.

use std::time::Duration;

use crate::support::proxy::Proxy;
use althing::{
    Actor, ActorError, ActorOptions, ActorRef, Context, Handler, Node, StopReason, Stopped,
    Supervision, Terminated, actor,
};
use althing_cluster::{Authority, Member, MemberConfig, Tls};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than a busy machine needs for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lives here and there.
struct Target;

fn stops_with_a_failure() -> ActorOptions {
    ActorOptions::default().supervision(Supervision::Stop)
}

#[actor(name = "test.target", wire, derive(Clone), options = stops_with_a_failure)]
impl Target {
    async fn home(&mut self, ctx: &mut Context<Self>) -> String {
        ctx.node().name().to_owned()
    }

    async fn nap(&mut self, ctx: &mut Context<Self>) {
        ctx.passivate();
    }

    async fn fail(&mut self, len: u64, ctx: &mut Context<Self>) {
        let len = usize::try_from(len).expect("it fits");
        ctx.fail(ActorError::new("\u{fe}".repeat(len / 2)));
    }
}

/// Says of whose end it hears, and why it has ended itself.
struct Witness(UnboundedSender<String>);

struct Watch(ActorRef<Target>);
struct Unwatch(ActorRef<Target>);
struct Link(ActorRef<Target>);

impl Actor for Witness {
    const NAME: &'static str = "test.witness";

    async fn terminated(&mut self, _: &mut Context<Self>, other: Terminated) {
        let key = other.id.key().map(ToString::to_string).unwrap_or_default();
        _ = self.0.send(format!("{key} {:?}", other.reason));
    }

    async fn stopping(&mut self, _: &mut Context<Self>, reason: StopReason) {
        _ = self.0.send(format!("me {reason:?}"));
    }
}

impl Handler<Watch> for Witness {
    type Reply = ();

    async fn handle(&mut self, Watch(target): Watch, ctx: &mut Context<Self>) {
        ctx.watch(&target);
    }
}

impl Handler<Unwatch> for Witness {
    type Reply = ();

    async fn handle(&mut self, Unwatch(target): Unwatch, ctx: &mut Context<Self>) {
        ctx.unwatch(&target);
    }
}

impl Handler<Link> for Witness {
    type Reply = ();

    async fn handle(&mut self, Link(target): Link, ctx: &mut Context<Self>) {
        ctx.link(&target);
    }
}

struct Scene {
    _directory: tempfile::TempDir,
    _authority: Authority,
    nodes: Vec<(Member, Node)>,
    witness: ActorRef<Witness>,
    heard: UnboundedReceiver<String>,
}

impl Scene {
    /// Three nodes, a witness on the first, and a target `a` that lives on the second.
    async fn new() -> Self {
        Self::with_way(None).await
    }

    /// The same, with that way to the third node.
    async fn with_way(proxy: Option<&Proxy>) -> Self {
        let (_directory, authority) = crate::support::authority();
        let mut nodes = Vec::new();
        for name in ["one", "two", "three"] {
            let at = authority.address().to_string();
            let proxy = proxy.filter(|_| name == "three");
            let mut config = MemberConfig::new("test", name, at, Tls::insecure_plaintext());
            config.advertised = proxy.map(|proxy| proxy.address.to_string());
            let member = Member::bind(config).expect("a port");
            if let Some(proxy) = proxy {
                proxy.target.set(member.address()).expect("once");
            }
            let builder = Node::builder(name).cluster(member.way());
            let node = builder.actor(async |_| Ok(Target)).build();
            member.join().await.expect("the authority is there");
            nodes.push((member, node));
        }
        let (says, heard) = unbounded_channel();
        let witness = nodes[0].1.spawn(Witness(says));
        let scene = Self { _directory, _authority: authority, nodes, witness, heard };
        scene.carry("a", "two").await;
        scene
    }

    fn target(&self, key: &str) -> ActorRef<Target> {
        self.nodes[0].1.get(key)
    }

    /// Has a target live there, and wakes it.
    async fn carry(&self, key: &str, to: &str) {
        let target = self.target(key);
        let member = &self.nodes[0].0;
        let moved = async {
            // The node may not be known yet.
            while member.move_to(&target.id(), to).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, moved).await.expect("it moves");
        let home = target.home().timeout(PATIENCE).await;
        assert_eq!(home.as_deref(), Ok(to));
    }

    async fn watch(&self, key: &str) {
        self.witness.send(Watch(self.target(key))).await.expect("it runs");
    }

    async fn hears(&mut self) -> String {
        let heard = timeout(PATIENCE, self.heard.recv()).await;
        heard.expect("it hears something").expect("it lives")
    }

    /// Nothing else was heard before the end of another target.
    async fn hears_nothing_more(&mut self) {
        self.watch("last").await;
        self.target("last").home().timeout(PATIENCE).await.expect("it runs");
        timeout(PATIENCE, self.target("last").stop()).await.expect("it stops");
        assert_eq!(self.hears().await, "last Requested");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_the_one_end_of_an_actor_that_moves_about() {
    let mut scene = Scene::new().await;
    scene.watch("a").await;
    // Also to the watcher's own node, and from there.
    for to in ["three", "one", "three", "two", "one", "two"] {
        scene.carry("a", to).await;
    }
    scene.hears_nothing_more().await;
    let third = scene.nodes[2].1.get::<Target>("a");
    timeout(PATIENCE, third.stop()).await.expect("it stops");
    assert_eq!(scene.hears().await, "a Requested");
    scene.hears_nothing_more().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_the_death_of_the_node_to_which_an_actor_has_moved() {
    let mut scene = Scene::new().await;
    scene.watch("a").await;
    scene.carry("a", "one").await;
    scene.carry("a", "three").await;
    // It says nothing any more, and is evicted.
    drop(scene.nodes.pop());
    assert_eq!(scene.hears().await, "a NodeLost");
    // The next life is another one.
    let home = scene.target("a").home().timeout(PATIENCE).await;
    assert!(["one", "two"].contains(&home.expect("it lives elsewhere").as_str()));
    scene.hears_nothing_more().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_the_death_of_a_node_that_was_not_told_of_the_watch_yet() {
    let proxy = Proxy::new().await;
    let mut scene = Scene::with_way(Some(&proxy)).await;
    scene.watch("a").await;
    // Nothing reaches the third node any more, neither the watch nor what that has to wait for.
    proxy.stop().await;
    let id = scene.target("a").id();
    let moved = timeout(PATIENCE, scene.nodes[0].0.move_to(&id, "three")).await;
    moved.expect("in time").expect("it is there");
    drop(scene.nodes.pop());
    assert_eq!(scene.hears().await, "a NodeLost");
    scene.hears_nothing_more().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_watches_or_waits_anew_hears_nothing_of_an_end_from_before() {
    let proxy = Proxy::new().await;
    let scene = Scene::with_way(Some(&proxy)).await;
    let (says, mut heard) = unbounded_channel();
    let witness = scene.nodes[2].1.spawn(Witness(says));
    let (target, seen) = (scene.nodes[1].1.get::<Target>("a"), scene.nodes[2].1.get("a"));
    witness.send(Watch(seen.clone())).await.expect("it runs");
    seen.home().timeout(PATIENCE).await.expect("it runs, and its node knows of the watch");
    // The word of this end is on its way for long.
    proxy.stop().await;
    timeout(PATIENCE, target.stop()).await.expect("it stops");
    witness.send(Unwatch(seen.clone())).await.expect("it runs");
    target.home().await.expect("another life");
    witness.send(Watch(seen.clone())).await.expect("it runs");
    let mut ended = seen.stopped();
    assert!(timeout(Duration::ZERO, &mut ended).await.is_err(), "it lives");
    proxy.go_on();
    // Its answer comes behind that word.
    seen.home().timeout(PATIENCE).await.expect("it runs");
    witness.send(Watch(seen.clone())).await.expect("it runs");
    assert!(heard.try_recv().is_err(), "it lives");
    assert!(timeout(Duration::ZERO, &mut ended).await.is_err(), "it lives");
    target.kill();
    timeout(PATIENCE, ended).await.expect("its life has ended");
    let heard = timeout(PATIENCE, heard.recv()).await.expect("it hears something");
    assert_eq!(heard.as_deref(), Some("a Killed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_an_actor_that_slept_while_it_was_moved() {
    let mut scene = Scene::new().await;
    scene.watch("a").await;
    scene.target("a").nap().timeout(PATIENCE).await.expect("it runs");
    let id = scene.target("a").id();
    scene.nodes[0].0.move_to(&id, "three").await.expect("it is there");
    scene.carry("a", "one").await;
    scene.target("a").nap().timeout(PATIENCE).await.expect("it runs");
    scene.nodes[0].0.move_to(&id, "two").await.expect("it is there");
    scene.hears_nothing_more().await;
    scene.target("a").home().timeout(PATIENCE).await.expect("it wakes");
    scene.target("a").kill();
    assert_eq!(scene.hears().await, "a Killed");
    scene.hears_nothing_more().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_linked_with_an_actor_that_has_moved_fails_with_it() {
    let mut scene = Scene::new().await;
    scene.witness.send(Link(scene.target("a"))).await.expect("it runs");
    for to in ["three", "one", "two"] {
        scene.carry("a", to).await;
    }
    scene.target("a").kill();
    let heard = scene.hears().await;
    assert!(heard.starts_with("me Linked"), "{heard}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_named_member_of_a_group_that_moves_or_is_unloaded_has_left_it_on_all_nodes() {
    let scene = Scene::new().await;
    let groups: Vec<_> = scene.nodes.iter().map(|(member, _)| member.group("g").unwrap()).collect();
    let count = async |wanted: usize| {
        for group in &groups {
            let mut changes = group.changes();
            let counts = timeout(PATIENCE, changes.wait_for(|count| *count == wanted)).await;
            assert!(counts.is_ok(), "{wanted} are wanted: {group:?}");
        }
    };
    groups[1].join(&scene.nodes[1].1.get::<Target>("a")).expect("it lives there");
    count(1).await;
    scene.carry("a", "three").await;
    count(0).await;
    groups[2].join(&scene.nodes[2].1.get::<Target>("a")).expect("it lives there");
    count(1).await;
    scene.target("a").nap().timeout(PATIENCE).await.expect("it runs");
    count(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_an_end_whose_cause_is_longer_than_a_frame() {
    let mut scene = Scene::new().await;
    scene.watch("a").await;
    _ = scene.target("a").fail(6 << 20).timeout(PATIENCE).await;
    let heard = scene.hears().await;
    assert!(heard.starts_with("a Failed") && heard.len() > 1_000, "{} bytes", heard.len());
    scene.hears_nothing_more().await;
}

/// Awaits an end, which the actor's node knows, because it has answered behind that.
async fn awaited(target: &ActorRef<Target>) -> Stopped {
    let mut ended = target.stopped();
    assert!(timeout(Duration::ZERO, &mut ended).await.is_err(), "it lives");
    target.home().timeout(PATIENCE).await.expect("it runs");
    ended
}

/// The same in a task of its own, which waits by now and looks again only if it is woken.
async fn awaited_apart(target: &ActorRef<Target>) -> JoinHandle<()> {
    let mut ended = awaited(target).await;
    let (tell, told) = oneshot::channel();
    let waiting = tokio::spawn(async move {
        assert!(timeout(Duration::ZERO, &mut ended).await.is_err(), "it lives");
        _ = tell.send(());
        ended.await;
    });
    told.await.expect("it waits");
    waiting
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_awaits_the_end_of_an_actor_elsewhere_hears_that_it_is_unloaded() {
    let mut scene = Scene::new().await;
    let target = scene.target("a");
    scene.watch("a").await;
    let ended = awaited(&target).await;
    target.nap().timeout(PATIENCE).await.expect("it runs");
    timeout(PATIENCE, ended).await.expect("its life has ended");
    // Nobody lives there, and nobody else hears of that.
    timeout(PATIENCE, target.stopped()).await.expect("it sleeps");
    scene.hears_nothing_more().await;
    target.home().timeout(PATIENCE).await.expect("it wakes");
    target.kill();
    assert_eq!(scene.hears().await, "a Killed");
    scene.hears_nothing_more().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_awaits_the_end_of_an_actor_elsewhere_does_so_where_it_has_moved() {
    let scene = Scene::new().await;
    let target = scene.target("a");
    // It does not wake there by itself, on the waiter's own node either.
    for to in ["three", "one"] {
        scene.carry("a", "two").await;
        let ended = awaited_apart(&target).await;
        scene.nodes[0].0.move_to(&target.id(), to).await.expect("it moves");
        timeout(PATIENCE, ended).await.expect("it lives nowhere").expect("it does not panic");
    }
    scene.carry("a", "two").await;
    let ended = awaited(&target).await;
    scene.carry("a", "three").await;
    scene.nodes[2].1.get::<Target>("a").kill();
    timeout(PATIENCE, ended).await.expect("its life there has ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_of_one_that_never_lived_hears_nothing_when_its_end_is_awaited() {
    let mut scene = Scene::new().await;
    let target = scene.target("b");
    scene.nodes[0].0.move_to(&target.id(), "two").await.expect("it is there");
    scene.watch("b").await;
    timeout(PATIENCE, target.stopped()).await.expect("it sleeps");
    scene.hears_nothing_more().await;
    target.home().timeout(PATIENCE).await.expect("it wakes");
    target.kill();
    assert_eq!(scene.hears().await, "b Killed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_an_actor_without_a_name_that_unloads_itself() {
    let mut scene = Scene::new().await;
    let id = scene.nodes[1].1.spawn(Target).id();
    let target = scene.nodes[0].1.resolve::<Target>(&id).expect("there is a cluster");
    scene.witness.send(Watch(target.clone())).await.expect("it runs");
    target.nap().timeout(PATIENCE).await.expect("it runs");
    assert_eq!(scene.hears().await, " Passivated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_hears_of_an_actor_without_a_name_that_had_ended_before() {
    let mut scene = Scene::new().await;
    let target = scene.nodes[1].1.spawn(Target);
    let seen = scene.nodes[0].1.resolve::<Target>(&target.id()).expect("there is a cluster");
    timeout(PATIENCE, target.stop()).await.expect("it stops");
    scene.witness.send(Watch(seen.clone())).await.expect("it runs");
    assert_eq!(scene.hears().await, " Requested");
    timeout(PATIENCE, seen.stopped()).await.expect("it has ended");
    scene.witness.send(Link(seen)).await.expect("it runs");
    let heard = scene.hears().await;
    assert!(heard.starts_with("me Linked"), "{heard}");
}
