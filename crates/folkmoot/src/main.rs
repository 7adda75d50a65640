//! The `folkmoot` command: reads the settings, runs the server until it is told to stop; or does
//! one of the tasks that an administrator has with its data.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use clap::Parser;
use folkmoot::backup;
use folkmoot::check::Checked;
use folkmoot::cluster::ClusterTask;
use folkmoot::load::{LoadFlags, LoadPlan};
use folkmoot::read_states::ReadStatesFlags;
use folkmoot::relay::RelayFlags;
use folkmoot::retention::{Retained, RetentionFlags};
use folkmoot::seed::{SeedFlags, SeedPlan};
use folkmoot::storage::{Retention, Site, UnixMillis};
use folkmoot::{Config, Flags};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What was typed: a server runs, unless something else is asked for.
#[derive(Debug, Parser)]
#[command(name = "folkmoot", version, about)]
struct Line {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Fills the store with people, rooms and messages, to try a server of some size
    Seed(SeedFlags),
    /// Puts a running server under load, and says how long messages take and whether any is lost
    Load(LoadFlags),
    /// Writes all that the server keeps into one new file; the server may run meanwhile
    Backup {
        /// The backup: a file that is not there yet
        file: PathBuf,
    },
    /// Makes the store, which must be empty, of a backup of either kind of store; clients fetch
    /// anew
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Says what is wrong with what the server keeps, and changes nothing; the server may run
    Check,
    /// Shows how long messages are kept, or sets it; the server may run
    Retention(RetentionFlags),
    /// Carries all that a server keeps into another store: from a data directory into PostgreSQL
    /// or Cassandra, or back. No server runs on either meanwhile; cut off, the same command goes on
    Migrate {
        /// The store to read: a data directory, postgres://user:password@host:port/database or
        /// cassandra://user:password@host:port/keyspace. It stays as it is
        from: Site,
        /// The store to fill, which is empty. Beside a database, files of messages are in --data
        to: Site,
    },
    /// Serves read states to another chat, over a protocol of its own
    ReadStates(ReadStatesFlags),
    /// Makes the certificates by which nodes of a cluster know each other
    #[command(subcommand)]
    Cluster(ClusterTask),
    /// Serves channels to the clients of another backend, with Centrifugo's protocol and server API
    Relay(RelayFlags),
}

/// Where the data of a server is, as people read it.
fn place(config: &Config) -> String {
    match &config.database {
        Some(address) => address.to_string(),
        None => config.data().display().to_string(),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("folkmoot: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes, of which some tell theirs themselves.
fn told(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

fn run() -> anyhow::Result<()> {
    let Line { flags, task } = Line::parse();
    if !matches!(task, Some(Task::ReadStates(_))) {
        leave_huge_pages();
    }
    let config = match &task {
        Some(Task::Relay(_)) => Config::load_for_relay(flags)?,
        _ => Config::load(flags)?,
    };
    let filter = EnvFilter::try_new(&config.log)
        .with_context(|| format!("`{}` is not a log filter", config.log))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match task {
        None => runtime.block_on(serve(config)),
        Some(Task::Seed(flags)) => runtime.block_on(seed(&config, flags)),
        Some(Task::Load(flags)) => {
            // One thread for all clients: the server that they measure needs the others.
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(load(flags))
        }
        Some(Task::Backup { file }) => back_up(&config, &file),
        Some(Task::Restore { file }) => runtime.block_on(restore(&config, &file)),
        Some(Task::Check) => check(&config),
        Some(Task::Retention(flags)) => runtime.block_on(retention(&config, &flags)),
        Some(Task::Migrate { from, to }) => migrate(&config, &from, &to),
        Some(Task::ReadStates(flags)) => runtime.block_on(read_states(&config, flags)),
        Some(Task::Cluster(task)) => cluster(task),
        Some(Task::Relay(flags)) => runtime.block_on(relay(&config, flags)),
    }
}

/// The kernel clears two megabytes in the middle of a message when it makes a huge page; on a
/// virtual machine, where the host has to find them first, that takes tens of milliseconds. And a
/// page counts as a whole of which a connection uses a few bytes. Kernels that cannot leave it off
/// lose nothing but that. Read states as a server of their own are one large table, and a third
/// quicker with them.
fn leave_huge_pages() {
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
}

async fn seed(config: &Config, flags: SeedFlags) -> anyhow::Result<()> {
    let plan = SeedPlan::load(flags)?;
    let now = now()?;
    let began = Instant::now();
    let made = folkmoot::seed::seed(config, &plan, now).await?;
    let folkmoot::seed::Seeded { users, rooms, memberships, messages } = made;
    let took = began.elapsed().as_secs_f64();
    say(&format!(
        "{users} users, {rooms} rooms, {memberships} memberships and {messages} messages in {} \
         after {took:.1} s; sign in as user000001 with the password {}",
        place(config),
        plan.password,
    ));
    Ok(())
}

fn back_up(config: &Config, file: &Path) -> anyhow::Result<()> {
    let made = backup::back_up(config, file, now()?)?;
    let (mib, data) = (made.bytes.div_ceil(1 << 20), place(config));
    for missing in &made.missing {
        eprintln!("folkmoot: {} is missing; the backup lacks it", missing.display());
    }
    say(&format!("{data} is in {}: {mib} MiB with {} files", file.display(), made.files));
    Ok(())
}

async fn restore(config: &Config, file: &Path) -> anyhow::Result<()> {
    let made = backup::restore(config, file).await?;
    let data = place(config);
    say(&format!(
        "{data} is as {} has it, with {} files; clients fetch anew",
        file.display(),
        made.files
    ));
    Ok(())
}

fn migrate(config: &Config, from: &Site, to: &Site) -> anyhow::Result<()> {
    let migrated = folkmoot::migrate::migrate(config, from, to, now()?)?;
    for missing in &migrated.missing {
        eprintln!("folkmoot: {} is missing; {to} lacks it", missing.display());
    }
    for (table, digest) in &migrated.tables {
        say(&format!("{table}: {digest}"));
    }
    let (files, directory) = (migrated.files, migrated.directory.display());
    say(&format!(
        "{to} has all that {from} has, with {files} files in {directory}; clients fetch anew, and \
         the search index is made by the first start"
    ));
    Ok(())
}

fn check(config: &Config) -> anyhow::Result<()> {
    let checked = folkmoot::check::check(config, now()?)?;
    checked.lines.iter().for_each(|line| say(line));
    let untold = checked.wrong - checked.lines.len() as u64;
    if untold > 0 {
        say(&format!("and {untold} more"));
    }
    checked.notes.iter().for_each(|note| say(&format!("note: {note}")));
    let (data, Checked { records, rooms, messages, files, wrong, .. }) = (place(config), &checked);
    say(&format!(
        "{data}: {messages} messages in {rooms} rooms, {files} files and {records} records of the \
         log were looked at"
    ));
    anyhow::ensure!(
        *wrong == 0,
        "{wrong} of it is wrong; keep a copy of it, then restore a backup from before"
    );
    Ok(())
}

async fn retention(config: &Config, flags: &RetentionFlags) -> anyhow::Result<()> {
    let now = now()?;
    let retained = folkmoot::retention::retain(config, flags, now).await?;
    let Retained { server, rooms, deleted } = retained;
    say(&format!("the server keeps {}", kept(server)));
    for room in rooms {
        let name = if room.name.is_empty() { "a direct conversation" } else { &room.name };
        say(&format!("{} ({name}) keeps {}", room.room, kept(room.retention)));
    }
    say(&match deleted {
        Some(deleted) => format!("{deleted} messages were deleted"),
        None => "a server runs here; it deletes what is due within the hour".to_owned(),
    });
    Ok(())
}

/// A rule in words.
fn kept(rule: Retention) -> String {
    match (rule.days, rule.messages) {
        (None, None) => "all messages".to_owned(),
        (Some(days), None) => format!("messages for {days} days"),
        (None, Some(messages)) => format!("the newest {messages} messages of a room"),
        (Some(days), Some(messages)) => {
            format!("the newest {messages} messages of a room for {days} days")
        }
    }
}

/// Milliseconds since 1970.
fn now() -> anyhow::Result<UnixMillis> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(UnixMillis::from_u64(u64::try_from(now.as_millis())?))
}

async fn load(flags: LoadFlags) -> anyhow::Result<()> {
    let json = flags.json;
    let plan = LoadPlan::load(flags)?;
    let report = folkmoot::load::load(plan).await?;
    say(&if json { serde_json::to_string(&report)? } else { report.to_string() });
    anyhow::ensure!(report.is_clean(), "the server did not deliver everything once and in order");
    Ok(())
}

async fn read_states(config: &Config, flags: ReadStatesFlags) -> anyhow::Result<()> {
    let stop = told_to_stop()?;
    let server = folkmoot::read_states::open(config.data(), flags).await?;
    say(&format!("Read states are served on {}", server.address()?));
    server.serve(stop).await
}

fn cluster(task: ClusterTask) -> anyhow::Result<()> {
    for file in folkmoot::cluster::run(task)? {
        say(&format!("{} is written", file.display()));
    }
    Ok(())
}

async fn relay(config: &Config, flags: RelayFlags) -> anyhow::Result<()> {
    let stop = told_to_stop()?;
    let relay = folkmoot::relay::start(flags, config).await?;
    say(&format!("Folkmoot relays on {}://{}", relay.scheme(), relay.address()));
    tokio::select! {
        () = stop => {}
        () = relay.evicted() => {
            anyhow::bail!("the other nodes have given this one up: start it again");
        }
    }
    tracing::info!("stopping");
    relay.stop().await;
    Ok(())
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let stop = told_to_stop()?;
    let running = folkmoot::start(config).await?;
    say(&format!("Folkmoot listens on {}://{}", running.scheme(), running.address()));
    if let Some(link) = running.setup_link() {
        say(&format!("Nobody administers this server yet. Become its administrator at {link}"));
    }
    tokio::select! {
        () = stop => {}
        () = running.evicted() => {
            anyhow::bail!("the other nodes have given this one up: start it again");
        }
        lost = running.lost() => anyhow::bail!("{lost}"),
    }
    tracing::info!("stopping");
    running.stop().await;
    Ok(())
}

/// Ready once somebody stops the process.
fn told_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Tells whoever started the server. A reader who went away after the first line ends nothing.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
