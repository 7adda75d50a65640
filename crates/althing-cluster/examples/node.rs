//! One node of a cluster, told what to do line by line on its standard input.
//!
//! `node --host 127.0.0.1:7400 --name one` serves the authority, too; `node --authority
//! 127.0.0.1:7400 --name two` joins it. Each line is a command with a word in front that its answer
//! repeats: `a add apples 3`, `b later apples`, `c answer apples 7`, `d watch apples`,
//! `e stop apples`, `f cycle apples`, `g load apples me 1000`, `h who`, `i leave`.
//!
//! An account keeps what it is told in a file, under a fence: who was replaced writes nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorRef, AskError, Context, Node, ReplyTo, Start, StopReason, Terminated, actor};
use althing_cluster::{Authority, LEASE_DEFAULT, Member, MemberConfig, State};

/// Lines that an account has taken, in a file that all nodes see, and beside it the fence: the
/// epoch of whoever opened it last.
struct Book {
    file: File,
    fence: File,
    epoch: u64,
}

impl Book {
    /// Opens it in the name of an epoch, so that older ones write no more; returns the sum so far.
    fn open(path: &Path, epoch: u64, node: &str) -> io::Result<(Self, u64)> {
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let fence = path.with_extension("fence");
        let fence =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(fence)?;
        let mut book = Self { file, fence, epoch };
        book.write(&format!("open {epoch} {node}"))?;
        let mut text = String::new();
        book.file.rewind()?;
        book.file.read_to_string(&mut text)?;
        let number = |line: &str| line.split(' ').nth(3).and_then(|word| word.parse::<u64>().ok());
        let added = text.lines().filter(|line| line.starts_with("add ")).filter_map(number);
        Ok((book, added.sum()))
    }

    /// Adds a line unless somebody with a later epoch has opened the book.
    fn write(&mut self, line: &str) -> io::Result<()> {
        self.fence.lock()?;
        let written = self.write_locked(line);
        self.fence.unlock()?;
        written
    }

    fn write_locked(&mut self, line: &str) -> io::Result<()> {
        let mut latest = String::new();
        self.fence.rewind()?;
        self.fence.read_to_string(&mut latest)?;
        let latest = latest.trim().parse().unwrap_or(0);
        if latest > self.epoch {
            return Err(io::Error::other("a later epoch has opened the book"));
        }
        if latest < self.epoch {
            self.fence.rewind()?;
            self.fence.write_all(format!("{:020}", self.epoch).as_bytes())?;
        }
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

/// A sum, by name.
struct Account {
    book: Book,
    node: String,
    sum: u64,
    waiting: Vec<ReplyTo<u64>>,
}

#[actor(name = "example.account", wire)]
impl Account {
    /// Returns the sum, the node and the epoch; an error where the node was replaced.
    async fn add(
        &mut self,
        n: u64,
        who: String,
        ctx: &mut Context<Self>,
    ) -> Result<(u64, String, u64), String> {
        let epoch = self.book.epoch;
        match self.book.write(&format!("add {epoch} {} {n} {who}", self.node)) {
            Ok(()) => self.sum += n,
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
}

#[actor(name = "example.clerk", wire)]
impl Clerk {
    #[wire(skip)]
    async fn watch(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(&self.account);
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
    data: PathBuf,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        name: String::new(),
        authority: String::new(),
        host: None,
        data: std::env::temp_dir().join("althing-cluster-example"),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match &*word {
            "--name" => options.name = value,
            "--authority" => options.authority = value,
            "--host" => options.host = Some(value.parse().map_err(|_| "no address")?),
            "--data" => options.data = value.into(),
            other => return Err(format!("{other} is not known")),
        }
    }
    Ok(options)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    std::fs::create_dir_all(&options.data)?;
    let authority = match options.host {
        Some(listen) => {
            let directory = options.data.join("authority");
            Some(Authority::start("example", &directory, listen, LEASE_DEFAULT)?)
        }
        None => None,
    };
    let at = authority.as_ref().map_or(options.authority, |at| at.address().to_string());
    let config = MemberConfig::new("example", &options.name, at);
    let member = Arc::new(Member::bind(config)?);
    let (name, data) = (options.name.clone(), options.data.clone());
    let account = move |start: Start<Account>| {
        let (name, path) = (name.clone(), data.join(start.key()));
        let epoch = start.activation().epoch.0;
        async move {
            let (book, sum) = Book::open(&path, epoch, &name)?;
            Ok(Account { book, node: name, sum, waiting: Vec::new() })
        }
    };
    let node = Node::builder(&options.name).cluster(member.way()).actor(account).build();
    member.join().await?;
    say("-", "joined");
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
    let clerk = || node.spawn(Clerk { account: account.clone(), word: id.clone() });
    let told = match word(1) {
        "add" => match account.add(number(3), id.clone()).await {
            Ok(Ok((sum, at, epoch))) => format!("{sum} {at} {epoch}"),
            Ok(Err(why)) => format!("fenced: {why}"),
            Err(why) => format!("failed: {why:?}"),
        },
        "later" => format!("{:?}", account.later().timeout(Duration::from_secs(60)).await),
        "answer" => format!("{:?}", account.answer(number(3)).await),
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
