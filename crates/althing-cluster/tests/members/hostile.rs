//! What comes to a node's port and should not, and links that break or hang. The nodes are in one
//! process and talk over TCP.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::cluster::{Cluster, bound, joined};
use crate::support::proxy::Proxy;
use crate::support::{LEASE, any_port};
use althing::{ActorRef, AskError, Node, SendError, actor};
use althing_cluster::{JoinError, Member, MemberConfig, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Hears numbers.
#[derive(Default)]
struct Ear(Vec<u64>);

#[actor(name = "test.ear", wire)]
impl Ear {
    async fn hear(&mut self, n: u64) {
        self.0.push(n);
    }

    async fn heard(&self) -> Vec<u64> {
        self.0.clone()
    }

    async fn weigh(&mut self, load: Vec<u8>) -> u64 {
        load.len() as u64
    }

    async fn grow(&mut self, len: u64) -> Vec<u8> {
        vec![7; usize::try_from(len).expect("it fits")]
    }
}

async fn node(config: MemberConfig) -> (Member, Node) {
    joined(config, |node| node.actor(async |_| Ok(Ear::default()))).await
}

fn build(config: MemberConfig) -> (Member, Node) {
    bound(config, |node| node.actor(async |_| Ok(Ear::default())))
}

/// Waits until that many members own buckets and none moves.
async fn settled(member: &Member, nodes: usize) {
    let mut views = member.views();
    loop {
        views.mark_unchanged();
        let view = member.view();
        let least = view.members.iter().map(|member| member.buckets).min().unwrap_or(0);
        if view.members.len() == nodes && least > 4_096 / (nodes + 1) {
            return;
        }
        views.changed().await.expect("it lives");
    }
}

/// An ear that lives on `there`, seen from `here`.
async fn ear_on(member: &Member, there: &Node, here: &Node) -> ActorRef<Ear> {
    settled(member, 2).await;
    let ears = (0..100).map(|n| here.get::<Ear>(format!("ear-{n}")));
    let mut on_it = ears.filter(|ear| member.owner_of(&ear.id()) == Some(there.incarnation()));
    on_it.next().expect("one of a hundred is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_of_one_name_does_not_join_and_the_first_goes_on() {
    let cluster = Cluster::new();
    let (_member, node) = node(cluster.config("one")).await;
    let ear = node.get::<Ear>("a");
    ear.hear(1).await.expect("it runs");
    let (second, _node) = build(cluster.config("one").join_timeout(LEASE * 2));
    assert_eq!(second.join().await, Err(JoinError::NameTaken("one".to_owned())));
    assert_eq!(*second.state().borrow(), State::Joining);
    assert_eq!(ear.heard().await, Ok(vec![1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_on_the_ports_are_shown_out_and_harm_nobody() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let (two, second) = node(cluster.config("two")).await;
    let ear = ear_on(&one, &second, &first).await;
    let garbage: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 64],
        &[0, 0, 0, 0],
        // A greeting of another cluster.
        &[0, 0, 0, 9, 0x08, 1, 0x12, 5, b'o', b't', b'h', b'e', b'r'],
        &[0, 0, 0, 4, 0x80, 0x80, 0x80, 0x80],
    ];
    for address in [two.address(), cluster.authority.address()] {
        for bytes in garbage {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            stream.write_all(bytes).await.expect("it takes a few bytes");
            let mut rest = Vec::new();
            // An end or a reset; in no case silence.
            _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest))
                .await
                .expect("an end");
        }
        // One that says nothing is shown out as well.
        let mut silent = TcpStream::connect(address).await.expect("it listens");
        let end = timeout(Duration::from_secs(10), silent.read_u8()).await.expect("an end");
        assert!(end.is_err());
    }
    ear.hear(1).await.expect("it runs");
    assert_eq!(ear.heard().await, Ok(vec![1]));
}

/// The version of the protocol.
const VERSION: u64 = 5;

/// A greeting as a node would write it.
fn greeting(version: u64, cluster: &str, from: u64, to: u64) -> Vec<u8> {
    let mut body = Vec::new();
    for (tag, mut number) in [(0x08, version), (0x18, from), (0x20, to)] {
        body.push(tag);
        while number >= 0x80 {
            body.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
            number >>= 7;
        }
        body.push(u8::try_from(number).expect("seven bits"));
    }
    body.extend([0x12, u8::try_from(cluster.len()).expect("it is short")]);
    body.extend(cluster.bytes());
    let mut frame = u32::try_from(body.len()).expect("it is short").to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

/// Sends these bytes; returns what comes until the other side ends the connection.
async fn say(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(bytes).await.expect("it takes a few bytes");
    let mut heard = Vec::new();
    let end = timeout(Duration::from_secs(10), stream.read_to_end(&mut heard)).await;
    // A reset is an end, too.
    _ = end.expect("the connection ends");
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greeting_of_another_version_cluster_or_node_is_refused_with_its_reason() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let (two, second) = node(cluster.config("two")).await;
    settled(&one, 2).await;
    let (from, to) = (first.incarnation().0, second.incarnation().0);
    let refused = [
        (greeting(VERSION + 1, "test", from, to), "another version"),
        (greeting(VERSION, "tset", from, to), "another cluster"),
        (greeting(VERSION, "test", from, to ^ 1), "another node"),
        (greeting(VERSION, "test", from ^ 1, to), "not known as a member"),
    ];
    for (bytes, why) in refused {
        let heard = say(two.address(), &bytes).await;
        let heard = String::from_utf8_lossy(&heard).into_owned();
        assert!(heard.contains(why), "{why}: {heard}");
    }
    // The authority answers nothing at all.
    for bytes in [greeting(VERSION + 1, "test", 0, 0), greeting(VERSION, "tset", 0, 0)] {
        assert_eq!(say(cluster.authority.address(), &bytes).await, b"");
    }
}

/// Stands before a node as if that were of the former version: whoever greets in the present one is
/// shown to it as one of the next, which it refuses. Returns the keys with which the frames began
/// that were sent in the former version.
fn former_version(listener: TcpListener, node: SocketAddr) -> mpsc::UnboundedReceiver<u8> {
    let (key, keys) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (key, mut far) = (key.clone(), TcpStream::connect(node).await.expect("it listens"));
            tokio::spawn(async move {
                let ((mut from, mut back), (mut answers, mut to)) = (near.split(), far.split());
                let forth = async {
                    let mut is_greeting = true;
                    loop {
                        let len = from.read_u32().await?;
                        let mut body = vec![0; usize::try_from(len).expect("it fits")];
                        from.read_exact(&mut body).await?;
                        match body[1] {
                            version if is_greeting && u64::from(version) == VERSION => body[1] += 1,
                            _ if is_greeting => {}
                            _ => _ = key.send(body[0]),
                        }
                        is_greeting = false;
                        to.write_u32(len).await?;
                        to.write_all(&body).await?;
                    }
                };
                let forth: std::pin::Pin<Box<dyn Future<Output = std::io::Result<()>> + Send>> =
                    Box::pin(forth);
                tokio::select! {
                    _ = forth => {}
                    _ = tokio::io::copy(&mut answers, &mut back) => {}
                }
            });
        }
    });
    keys
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_the_former_version_is_told_and_asked_in_its_own() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let listener = TcpListener::bind(any_port()).await.expect("any port");
    let address = listener.local_addr().expect("it is bound");
    let (two, second) = build(cluster.config("two").advertised(address.to_string()));
    let mut keys = former_version(listener, two.address());
    two.join().await.expect("nobody has the name");
    let ear = ear_on(&one, &second, &first).await;
    for n in 0..1_000 {
        ear.hear(n).tell().await.expect("there is room");
    }
    assert_eq!(ear.heard().await, Ok((0..1_000).collect::<Vec<_>>()));
    let mut items = 0;
    while let Ok(key) = keys.try_recv() {
        assert!([0x0a, 0x12].contains(&key), "an item or a ping, not {key:#x}");
        items += u64::from(key == 0x0a);
    }
    assert!(items > 1_000, "each was sent by itself: {items}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_in_the_name_of_a_member_ends_its_connection_and_loses_nothing() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let (two, second) = node(cluster.config("two")).await;
    let ear = ear_on(&one, &second, &first).await;
    let hello = greeting(VERSION, "test", first.incarnation().0, second.incarnation().0);
    let garbage: [&[u8]; 4] = [
        // A frame of four gigabytes.
        &[0xff, 0xff, 0xff, 0xff, 1, 2, 3],
        // A field that ends nowhere.
        &[0, 0, 0, 4, 0x80, 0x80, 0x80, 0x80],
        // A frame of nothing that is known.
        &[0, 0, 0, 2, 0x7a, 0],
        // An item far ahead of the last one.
        &[0, 0, 0, 6, 0x0a, 4, 0x08, 0x80, 0x80, 0x01],
    ];
    for (n, garbage) in (0..).zip(garbage) {
        ear.hear(n).await.expect("it runs");
        say(two.address(), &[&hello[..], garbage].concat()).await;
    }
    ear.hear(4).await.expect("it runs");
    assert_eq!(ear.heard().await, Ok(vec![0, 1, 2, 3, 4]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_too_long_fails_its_ask_and_no_other() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one").frame_len_max(100_000)).await;
    let (_two, second) = node(cluster.config("two").frame_len_max(100_000)).await;
    let ear = ear_on(&one, &second, &first).await;
    assert_eq!(ear.weigh(vec![1; 90_000]).await, Ok(90_000));
    let refused = ear.weigh(vec![1; 110_000]).await;
    assert!(matches!(&refused, Err(AskError::NotUnderstood(_, why)) if why.contains("longer")));
    let refused = ear.grow(110_000).await;
    assert!(matches!(&refused, Err(AskError::ReplyTooLong(_, why)) if why.contains("longer")));
    assert_eq!(ear.weigh(vec![1; 10]).await, Ok(10));
    // Nobody would hear of a tell that was lost: its message comes back whole.
    for _ in 0..3 {
        let back = ear.weigh(vec![1; 110_000]).tell().await;
        let Err(SendError::TooLong(message)) = back else { panic!("{back:?}") };
        assert_eq!(message.load, vec![1; 110_000]);
        let back = ear.weigh(vec![1; 110_000]).try_tell();
        assert!(matches!(back, Err(SendError::TooLong(_))), "{back:?}");
    }
    ear.weigh(vec![1; 90_000]).tell().await.expect("it fits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_reads_shorter_frames_is_sent_no_longer_ones_and_goes_on() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let (_two, second) = node(cluster.config("two").frame_len_max(10_000)).await;
    let ear = ear_on(&one, &second, &first).await;
    let refused = ear.weigh(vec![1; 20_000]).await;
    assert!(matches!(&refused, Err(AskError::NotUnderstood(_, why)) if why.contains("longer")));
    assert_eq!(ear.weigh(vec![1; 9_000]).await, Ok(9_000), "the link goes on");
    let refused = ear.grow(20_000).await;
    assert!(matches!(&refused, Err(AskError::ReplyTooLong(_, why)) if why.contains("longer")));
    assert_eq!(ear.grow(9_000).await, Ok(vec![7; 9_000]));
    let back = ear.weigh(vec![1; 20_000]).tell().await;
    assert!(matches!(back, Err(SendError::TooLong(_))), "{back:?}");
    ear.weigh(vec![1; 9_000]).tell().await.expect("it fits");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tells_arrive_once_and_in_order_over_links_that_break_and_links_that_hang() {
    let cluster = Cluster::new();
    let mut proxy = Proxy::new().await;
    let (one, first) = node(cluster.config("one")).await;
    let config = cluster.config("two").advertised(proxy.address.to_string());
    let (two, second) = build(config);
    proxy.target.set(two.address()).expect("once");
    two.join().await.expect("nobody has the name");
    let ear = ear_on(&one, &second, &first).await;
    for n in 0..6_000 {
        ear.hear(n).timeout(Duration::from_secs(30)).tell().await.expect("there is room");
        match n {
            3_000 => proxy.hang().await,
            _ if n % 400 == 399 => proxy.cut(),
            _ => {}
        }
    }
    let heard = ear.heard().timeout(Duration::from_secs(30)).await.expect("it lives");
    assert_eq!(heard, (0..6_000).collect::<Vec<_>>());
}

/// The record of the cluster has all names and addresses, and has to be read by all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_name_or_address_is_too_long_does_not_join_and_harms_nobody() {
    let cluster = Cluster::new();
    let (one, first) = node(cluster.config("one")).await;
    let long = "x".repeat(2 << 20);
    let (mut refused, mut joined) = (Vec::new(), Vec::new());
    for n in 0..3 {
        let config = cluster.config(&format!("n{n}")).join_timeout(LEASE * 2);
        let config = config.advertised(format!("{n}{long}:1"));
        match Member::bind(config) {
            Err(why) => refused.push(why.to_string()),
            Ok(member) => {
                let node = Node::builder("n").cluster(member.way()).build();
                _ = member.join().await;
                joined.push((member, node));
            }
        }
    }
    // The cluster goes on: it takes others, and their actors.
    let (_late, second) = node(cluster.config("late")).await;
    let ear = timeout(Duration::from_secs(30), ear_on(&one, &second, &first)).await;
    assert_eq!(ear.expect("it settles").hear(1).await, Ok(()));
    assert_eq!(*one.state().borrow(), State::Serving);
    assert_eq!((joined.len(), refused.len()), (0, 3));
    assert!(refused.iter().all(|why| why.contains("address has 512")), "{refused:?}");
    let name = Member::bind(cluster.config(&"n".repeat(300))).map(drop);
    assert!(name.is_err_and(|why| why.to_string().contains("name has 253")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_joins_and_leaves_a_group_while_a_link_hangs_is_seen_so_when_it_goes_on() {
    let cluster = Cluster::new();
    let proxy = Proxy::new().await;
    let (one, _first) = node(cluster.config("one")).await;
    let (two, second) = build(cluster.config("two"));
    two.join().await.expect("nobody has the name");
    // What the second node says to the first goes over this.
    let (three, third) = build(cluster.config("three").advertised(proxy.address.to_string()));
    proxy.target.set(three.address()).expect("once");
    three.join().await.expect("nobody has the name");
    let groups = [&one, &two, &three].map(|member| member.group::<Ear>("ears").expect("short"));
    let counts = async |at: usize, wanted: usize| {
        let mut changes = groups[at].changes();
        let counts = changes.wait_for(|count| *count == wanted);
        let counts = timeout(Duration::from_secs(30), counts).await;
        assert!(counts.is_ok(), "{wanted} on {at}: {:?}", groups[at]);
    };
    let ears: Vec<_> = (0..3).map(|_| second.spawn(Ear::default())).collect();
    let far = third.spawn(Ear::default());
    groups[1].join(&ears[0]).expect("it lives there");
    groups[1].join(&ears[1]).expect("it lives there");
    groups[2].join(&far).expect("it lives there");
    for at in 0..3 {
        counts(at, 3).await;
    }
    proxy.stop().await;
    // One leaves, one stops, one joins, one comes and goes; of all that the third hears nothing.
    groups[1].leave(&ears[0]);
    ears[1].stop().await;
    groups[1].join(&ears[2]).expect("it lives there");
    let brief = second.spawn(Ear::default());
    groups[1].join(&brief).expect("it lives there");
    brief.stop().await;
    counts(0, 2).await;
    counts(1, 2).await;
    assert_eq!(groups[2].members().len(), 3, "it has not heard yet");
    proxy.go_on();
    let ids = |at: usize| groups[at].members().iter().map(ActorRef::id).collect::<Vec<_>>();
    let mut changes = groups[2].changes();
    let same = timeout(Duration::from_secs(30), changes.wait_for(|_| ids(2) == ids(1))).await;
    assert!(same.is_ok(), "{groups:?}");
    assert_eq!(ids(2), ids(0));
    assert_eq!(ids(2).len(), 2);
}

/// What a node hangs for must not fill the memory of those who send to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_for_a_node_that_hangs_is_bounded_in_bytes() {
    const LOAD_LEN: usize = 1 << 20;
    let cluster = Cluster::new();
    let proxy = Proxy::new().await;
    let (one, first) = node(cluster.config("one")).await;
    let (two, second) = build(cluster.config("two").advertised(proxy.address.to_string()));
    proxy.target.set(two.address()).expect("once");
    two.join().await.expect("nobody has the name");
    let ear = ear_on(&one, &second, &first).await;
    ear.hear(0).await.expect("it runs");
    proxy.stop().await;
    // Far fewer than the messages that may be under way, and more bytes.
    let mut accepted = 0;
    while accepted < 200 && ear.weigh(vec![1; LOAD_LEN]).try_tell().is_ok() {
        accepted += 1;
    }
    assert!((32..130).contains(&accepted), "{accepted} MiB were taken");
    let refused = ear.weigh(vec![1; LOAD_LEN]).timeout(Duration::from_millis(50)).tell().await;
    assert!(matches!(refused, Err(SendError::Timeout(_))), "{refused:?}");
    // Whoever waits goes on with the node, behind what was taken before.
    let waits = tokio::spawn({
        let ear = ear.clone();
        async move { ear.hear(1).timeout(Duration::from_secs(30)).tell().await }
    });
    proxy.go_on();
    waits.await.expect("no panic").expect("there is room again");
    assert_eq!(ear.heard().timeout(Duration::from_secs(30)).await, Ok(vec![0, 1]));
}

/// Markers, members of groups and refusals have to fit, or moves would never end and groups differ.
#[tokio::test]
async fn frames_that_are_too_short_for_the_cluster_itself_are_refused() {
    let cluster = Cluster::new();
    for len in [0, 100, 8_191] {
        let refused = Member::bind(cluster.config("one").frame_len_max(len)).map(drop);
        let why = refused.expect_err("it could not take part").to_string();
        assert!(why.contains("8192") && why.contains(&len.to_string()), "{why}");
    }
    Member::bind(cluster.config("one").frame_len_max(8_192)).expect("that is enough");
}
