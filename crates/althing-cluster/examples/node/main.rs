//! One node of a cluster, told what to do line by line on its standard input.
//!
//! `node --host 127.0.0.1:7400 --name one` serves the authority, too; `node --authority
//! 127.0.0.1:7400 --name two` joins it. `node --nodes 3` does both in three processes, of which
//! this one is the first; a line that begins with `@two` is for the second. Each line is a command
//! with a word in front that its answer repeats: `a add apples 3`, `b later apples`,
//! `c answer apples 7`, `d watch apples`, `e stop apples`, `f cycle apples`,
//! `g load apples me 1000`, `h who`, `i asks apples 5000`, `j follow apples`, `k leave`.
//!
//! `node --host 127.0.0.1:7400 --store postgres://..` or `--store etcd://host:port,host:port` is a
//! candidate for being the authority beside others with that store; with `--name` it is a node, too.
//!
//! With `--tls DIR` connections are encrypted by the certificates in that directory, which `folkmoot
//! cluster init DIR --cluster example --node one --node two` makes.
//!
//! An account keeps what it is told in a file, under a fence: who was replaced writes nothing. It
//! publishes each addition on a topic of its name, numbered as in the file.

mod book;
mod candidate;
mod family;

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use althing::{
    ActorError, ActorRef, AskError, Context, Epoch, Node, Published, Publisher, ReplyTo, Sequence,
    Start, StopReason, Subscription, Terminated, Topic, TopicOptions, Wire, actor,
};
use althing_cluster::{LEASE_DEFAULT, Member, MemberConfig, State, Tls};

use self::book::Book;
use self::family::Family;

/// Longer than any pause that a cluster promises.
const ASK_TIMEOUT: Duration = Duration::from_secs(30);

/// Published by an account with each addition.
#[derive(Wire)]
struct Added {
    sum: u64,
    node: String,
}

/// Who did not hear an addition gets it from these.
const REPLAY: TopicOptions = TopicOptions { replay: 1024 };

/// A sum, by name.
struct Account {
    name: String,
    book: Book,
    node: String,
    sum: u64,
    /// How many numbers that is the sum of.
    count: u64,
    publisher: Option<Publisher<Added>>,
    waiting: Vec<ReplyTo<u64>>,
}

#[actor(name = "example.account", wire)]
impl Account {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        let topic = ctx.node().topic::<Added>(&*self.name, REPLAY);
        // None: this node has heard of a later owner, so it was replaced.
        self.publisher = topic.publisher(Epoch(self.book.epoch)).ok();
        Ok(())
    }

    /// Returns the sum, the node and the epoch; an error where the node was replaced.
    async fn add(
        &mut self,
        n: u64,
        who: String,
        ctx: &mut Context<Self>,
    ) -> Result<(u64, String, u64), String> {
        let epoch = self.book.epoch;
        match self.book.write(&format!("add {epoch} {} {n} {who}", self.node)) {
            Ok(()) => {
                (self.sum, self.count) = (self.sum + n, self.count + 1);
                let added = Added { sum: self.sum, node: self.node.clone() };
                // Refused: this node was replaced, and its next line will be.
                let publish = |publisher: &Publisher<Added>| {
                    publisher.publish_at(Sequence(self.count), added).is_ok()
                };
                self.publisher.take_if(|publisher| !publish(publisher));
            }
            Err(error) => {
                ctx.stop();
                return Err(error.to_string());
            }
        }
        Ok((self.sum, self.node.clone(), epoch))
    }

    #[delayed]
    async fn later(&mut self, reply: ReplyTo<u64>) {
        self.waiting.push(reply);
    }

    async fn answer(&mut self, n: u64) -> u64 {
        let waiting = self.waiting.len() as u64;
        for reply in self.waiting.drain(..) {
            reply.send(n);
        }
        waiting
    }

    async fn ask_back(&mut self, other: ActorRef<Clerk>) -> Result<u64, AskError> {
        other.look().await
    }

    async fn stopping(&mut self, reason: StopReason) {
        if reason == StopReason::Moved {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Stands for the person at this node.
struct Clerk {
    account: ActorRef<Account>,
    word: String,
    following: Option<Subscription>,
}

#[actor(name = "example.clerk", wire)]
impl Clerk {
    #[wire(skip)]
    async fn watch(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(&self.account);
    }

    #[wire(skip)]
    async fn follow(&mut self, topic: Topic<Added>, ctx: &mut Context<Self>) {
        self.following = Some(topic.subscribe(&ctx.address()));
    }

    #[event]
    async fn on_added(&mut self, added: &Published<Added>) {
        let Added { sum, node } = &added.payload;
        say(&self.word, &format!("{} {} sum {sum} {node}", added.previous.0, added.sequence.0));
    }

    #[wire(skip)]
    async fn cycle(&mut self, me: ActorRef<Clerk>) -> Result<u64, AskError> {
        self.account.ask_back(me).await?
    }

    async fn look(&mut self) -> u64 {
        0
    }

    async fn terminated(&mut self, other: Terminated) {
        say(&self.word, &format!("ended {:?}", other.reason));
    }
}

fn say(word: &str, text: &str) {
    let mut out = io::stdout().lock();
    // Nobody listens any more when this fails.
    _ = writeln!(out, "{word} {text}");
    _ = out.flush();
}

struct Options {
    name: String,
    authority: String,
    host: Option<SocketAddr>,
    store: Option<String>,
    lease: Duration,
    data: PathBuf,
    nodes: usize,
    /// Where `folkmoot cluster init` has put certificates.
    tls: Option<PathBuf>,
}

impl Options {
    fn tls(&self) -> Tls {
        match &self.tls {
            Some(directory) => Tls::from_directory(directory, &self.name),
            None => Tls::insecure_plaintext(),
        }
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        name: String::new(),
        authority: String::new(),
        host: None,
        store: None,
        lease: LEASE_DEFAULT,
        data: std::env::temp_dir().join("althing-cluster-example"),
        nodes: 1,
        tls: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match &*word {
            "--name" => options.name = value,
            "--authority" => options.authority = value,
            "--host" => options.host = Some(value.parse().map_err(|_| "no address")?),
            "--store" => options.store = Some(value),
            "--lease-ms" => {
                options.lease = Duration::from_millis(value.parse().map_err(|_| "no number")?);
            }
            "--data" => options.data = value.into(),
            "--tls" => options.tls = Some(value.into()),
            "--nodes" => options.nodes = value.parse().map_err(|_| "no number")?,
            other => return Err(format!("{other} is not known")),
        }
    }
    if options.nodes > 1 {
        options.name = "one".to_owned();
        options.host = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    }
    Ok(options)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    std::fs::create_dir_all(&options.data)?;
    let authority = match options.host {
        Some(listen) => Some(candidate::start(&options, listen)?),
        None => None,
    };
    if options.name.is_empty() {
        candidate::wait_for_the_end_of_input().await;
        return Ok(());
    }
    let address = authority.as_ref().map(|at| at.address().to_string());
    let at = address.as_deref().unwrap_or(&options.authority);
    let mut family = Family::start(&options, at)?;
    let config = MemberConfig::new("example", &options.name, "", options.tls());
    let config = config.authorities(at.split(','));
    let member = Arc::new(Member::bind(config)?);
    let (name, data) = (options.name.clone(), options.data.clone());
    let account = move |start: Start<Account>| {
        let (name, key) = (name.clone(), start.key().to_owned());
        let path = data.join(&key);
        let epoch = start.activation().epoch.0;
        async move {
            let (book, sum, count) = Book::open(&path, epoch, &name)?;
            let (publisher, waiting) = (None, Vec::new());
            Ok(Account { name: key, book, node: name, sum, count, publisher, waiting })
        }
    };
    let builder = Node::builder(&options.name).cluster(member.way()).actor(account);
    let node = builder.event::<Added>("example.added").build();
    member.join().await?;
    say("-", "joined");
    family.greet();
    let mut state = member.state();
    tokio::spawn(async move {
        while state.changed().await.is_ok() {
            say("-", &format!("{:?}", *state.borrow_and_update()));
        }
    });
    let (lines, mut read) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        io::stdin().lock().lines().map_while(Result::ok).all(|line| lines.send(line).is_ok())
    });
    while let Some(line) = read.recv().await {
        let Some(line) = family.take(line) else { continue };
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if words.get(1).is_some_and(|command| command == "leave") {
            let report = member.leave(Duration::from_secs(20)).await;
            say(&words[0], &format!("left, {} killed", report.killed.len()));
            return Ok(());
        }
        tokio::spawn(command(node.clone(), member.clone(), words));
    }
    Ok(())
}

async fn command(node: Node, member: Arc<Member>, words: Vec<String>) {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let number = |at| word(at).parse().unwrap_or(0);
    let id = word(0).to_owned();
    let account = node.get::<Account>(word(2));
    let clerk =
        || node.spawn(Clerk { account: account.clone(), word: id.clone(), following: None });
    let told = match word(1) {
        "add" => match account.add(number(3), id.clone()).await {
            Ok(Ok((sum, at, epoch))) => format!("{sum} {at} {epoch}"),
            Ok(Err(why)) => format!("fenced: {why}"),
            Err(why) => format!("failed: {why:?}"),
        },
        "later" => format!("{:?}", account.later().timeout(Duration::from_secs(60)).await),
        "answer" => format!("{:?}", account.answer(number(3)).await),
        "follow" => {
            let topic = node.topic::<Added>(word(2), REPLAY);
            match clerk().follow(topic.clone()).await {
                Ok(()) => format!("{:?}", member.subscribed(&topic).await),
                Err(why) => format!("failed: {why:?}"),
            }
        }
        "watch" => format!("{:?}", clerk().watch().await),
        "stop" => {
            account.stop().await;
            "stopped".to_owned()
        }
        "cycle" => {
            let clerk = clerk();
            match clerk.cycle(clerk.clone()).await {
                Ok(Err(AskError::Cycle(path))) => format!("a cycle of {}", path.len()),
                other => format!("{other:?}"),
            }
        }
        "load" => {
            let mut told = 0;
            for n in 0..number(4) {
                let who = format!("{} {n}", word(3));
                let add = account.add(1, who).timeout(Duration::from_secs(30));
                told += u64::from(add.tell().await.is_ok());
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
            format!("told {told}")
        }
        "asks" => asks(&node, word(2), Duration::from_millis(number(3))).await,
        "who" => {
            let view = member.view();
            let members = view.members.iter();
            let members: Vec<_> =
                members.map(|member| format!("{}:{}", member.name, member.buckets)).collect();
            members.join(" ")
        }
        "state" => format!("{:?}", *member.state().borrow() == State::Serving),
        other => format!("{other} is no command"),
    };
    say(&id, &told);
}

/// Asks a few accounts without pause, one after the other; tells how many asks failed and how long
/// the slowest one took.
async fn asks(node: &Node, name: &str, time: Duration) -> String {
    let (mut asked, mut failed, mut slowest) = (0_u64, 0, Duration::ZERO);
    let start = Instant::now();
    while start.elapsed() < time {
        let account = node.get::<Account>(format!("{name}-{}", asked % 8));
        let began = Instant::now();
        let added = account.add(1, format!("asks {asked}")).timeout(ASK_TIMEOUT).await;
        failed += u64::from(!matches!(added, Ok(Ok(_))));
        slowest = slowest.max(began.elapsed());
        asked += 1;
    }
    format!("asked {asked} failed {failed} slowest {}", slowest.as_millis())
}
