//! One life of a node: it takes part in being the authority, is a member, has counters, and sends to
//! all of them.

use std::future::poll_fn;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use althing::{Node, Start};
use althing_cluster::JoinError as NotJoined;
use althing_cluster::{Authority, AuthorityConfig, Member, MemberConfig, RecordStore, State, Tls};
use althing_store::{Postgres, Store};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep, timeout};

use crate::arguments::NodeOptions;
use crate::clock::now;
use crate::counter::{COUNTERS, Counter, CounterCalls, name};
use crate::diary::Diary;
use crate::random::Random;

/// The name of the cluster.
pub(crate) const CLUSTER: &str = "chaos";

/// What a life ends with that was evicted.
pub(crate) const EVICTED: u8 = 3;

/// What a life ends with that did not become a member in its time: another one may.
pub(crate) const NOT_JOINED: u8 = 4;

/// One that tells, one that tells and asks in turn, and one that asks many at once.
const SENDERS: u64 = 3;

/// Between two messages of a sender, but in bursts.
const PAUSE: Duration = Duration::from_millis(25);

const BURST: u64 = 40;

/// Asks that leave one behind the other: they go to each other node in few parts, and a connection
/// that breaks within one has some of them arrive again.
const AT_ONCE: u64 = 30;

/// Longer than any pause the cluster promises, so that a tell is handed back only if it is stuck.
const TELL_TIMEOUT: Duration = Duration::from_secs(40);

const ASK_TIMEOUT: Duration = Duration::from_secs(10);

const LEAVE_TIMEOUT: Duration = Duration::from_secs(20);

const RESIGN_TIMEOUT: Duration = Duration::from_secs(2);

/// Lives until it is told to leave, is evicted, or its input ends.
///
/// # Errors
/// It cannot begin, or does not become a member.
pub(crate) async fn run(
    options: NodeOptions,
) -> Result<ExitCode, Box<dyn std::error::Error + Send + Sync>> {
    let diary = Arc::new(Diary::open(&options.directory, &options.life)?);
    let record = RecordStore::etcd([&options.etcd])?;
    let config = AuthorityConfig::new(CLUSTER, record, Tls::insecure_plaintext());
    let config = config.lease(options.timing.lease).advertised(options.authority.to_string());
    let authority = Authority::serve(config)?;
    let config = MemberConfig::new(CLUSTER, &options.name, "", Tls::insecure_plaintext());
    let config = config.authorities(&options.authorities).join_timeout(options.timing.join);
    let member = Arc::new(Member::bind(config.advertised(options.advertised.to_string()))?);
    say(&format!("ready {} {}", member.address(), authority.address()));
    let store: Arc<dyn Store> = Arc::new(Postgres::connect(&options.postgres).await?);
    let of_counters = diary.clone();
    let counter =
        move |start: Start<Counter>| Counter::load(start, store.clone(), of_counters.clone());
    let node = Node::builder(&options.name).cluster(member.way()).actor(counter).build();
    if let Err(why) = member.join().await {
        return not_joined(why);
    }
    diary.joined();
    say("joined");
    let is_over = Arc::new(AtomicBool::new(false));
    let mut senders: Vec<_> = (0..SENDERS)
        .map(|number| {
            let sender = format!("{}/{number}", diary.life());
            let random = Random::new(options.seed ^ (number << 32));
            tokio::spawn(send(node.clone(), diary.clone(), sender, random, is_over.clone()))
        })
        .collect();
    let mut orders = orders();
    let mut state = member.state();
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            _ = state.wait_for(|state| *state == State::Evicted) => {
                diary.evicted();
                return Ok(ExitCode::from(EVICTED));
            }
        };
        match order.as_deref() {
            Some("finish") => {
                end(&mut senders, &is_over).await?;
                say("finished");
            }
            Some("leave") => {
                end(&mut senders, &is_over).await?;
                let began = Instant::now();
                let report = member.leave(LEAVE_TIMEOUT).await;
                if began.elapsed() >= LEAVE_TIMEOUT || !report.killed.is_empty() {
                    diary.left_in_part();
                }
                // Where etcd is away, another one leads after a while anyway.
                _ = timeout(RESIGN_TIMEOUT, authority.resign()).await;
                return Ok(ExitCode::SUCCESS);
            }
            Some(order) => say(&format!("`{order}` is not known")),
            None => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// How a life ends that is no member after its time: one that came later could be one, unless this
/// program is wrong.
fn not_joined(why: NotJoined) -> Result<ExitCode, Box<dyn std::error::Error + Send + Sync>> {
    match why {
        NotJoined::NameTaken(_) | NotJoined::Unreachable(_) => {
            eprintln!("the node could not join: {why}");
            Ok(ExitCode::from(NOT_JOINED))
        }
        why => Err(why.into()),
    }
}

async fn end(senders: &mut Vec<JoinHandle<()>>, is_over: &AtomicBool) -> Result<(), JoinError> {
    is_over.store(true, Ordering::Relaxed);
    for sender in senders.drain(..) {
        sender.await?;
    }
    Ok(())
}

fn say(text: &str) {
    let mut out = io::stdout().lock();
    // Nobody listens any more when this fails.
    _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn orders() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, orders) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        io::stdin().lock().lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
    });
    orders
}

/// The numbers of a sender, which rise for each counter.
struct Numbers(Vec<u64>);

impl Numbers {
    /// A counter, and the next number for it.
    fn next(&mut self, random: &mut Random) -> (String, u64) {
        let at = random.below(COUNTERS);
        let number = &mut self.0[usize::try_from(at).expect("it is small")];
        *number += 1;
        (name(at), *number)
    }
}

/// Tells and asks all counters, each with numbers that rise, and writes down what became of it.
async fn send(
    node: Node,
    diary: Arc<Diary>,
    sender: String,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) {
    let mut numbers = Numbers(vec![0; usize::try_from(COUNTERS).expect("it is small")]);
    let mut burst = 0;
    while !is_over.load(Ordering::Relaxed) {
        // The first one only tells, and so is not held up by nodes that do not answer: it keeps the
        // counters of its own node at work while that is cut off.
        if sender.ends_with("/2") {
            ask_many(&node, &diary, &sender, &mut numbers, &mut random).await;
        } else {
            let (counter, number) = numbers.next(&mut random);
            let began = now();
            let add = node.get::<Counter>(&*counter);
            let add = add.add(sender.clone(), number, String::new());
            if sender.ends_with("/1") && random.below(2) == 0 {
                // Without an answer it may have run, and nothing is claimed.
                if let Ok(answer) = add.timeout(ASK_TIMEOUT).await {
                    diary.acked(&sender, &counter, number, answer, began);
                }
            } else if add.timeout(TELL_TIMEOUT).tell().await.is_ok() {
                diary.told(&sender, &counter, number, began);
            } else {
                diary.refused(&sender, &counter, number);
            }
        }
        if burst == 0 && random.below(100) == 0 {
            burst = BURST;
        }
        burst = u64::saturating_sub(burst, 1);
        if burst == 0 || sender.ends_with("/2") {
            sleep(PAUSE).await;
        }
    }
}

/// Asks many times at once, in the order of the numbers, and waits for all answers.
async fn ask_many(
    node: &Node,
    diary: &Diary,
    sender: &str,
    numbers: &mut Numbers,
    random: &mut Random,
) {
    let mut asks = Vec::new();
    for _ in 0..AT_ONCE {
        let (counter, number) = numbers.next(random);
        let add = node.get::<Counter>(&*counter);
        let sender = sender.to_owned();
        let mut ask = Box::pin(async move {
            let began = now();
            let answer = add.add(sender, number, String::new()).timeout(ASK_TIMEOUT).await;
            (counter, number, answer, began)
        });
        // It sets out when it is polled first.
        let answered = poll_fn(|context| Poll::Ready(ask.as_mut().poll(context))).await;
        asks.push((answered, ask));
    }
    for (answered, ask) in asks {
        let (counter, number, answer, began) = match answered {
            Poll::Ready(answered) => answered,
            Poll::Pending => ask.await,
        };
        if let Ok(answer) = answer {
            diary.acked(sender, &counter, number, answer, began);
        }
    }
}
