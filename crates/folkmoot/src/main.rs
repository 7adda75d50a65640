//! The `folkmoot` command: reads the settings, runs the server until it is told to stop.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use folkmoot::{Config, Flags};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("folkmoot: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let config = Config::load(Flags::parse())?;
    let filter = EnvFilter::try_new(&config.log)
        .with_context(|| format!("`{}` is not a log filter", config.log))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let running = folkmoot::start(config).await?;
    say(&format!("Folkmoot listens on {}://{}", running.scheme(), running.address()));
    if let Some(link) = running.setup_link() {
        say(&format!("Nobody administers this server yet. Become its administrator at {link}"));
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    running.stop().await;
    Ok(())
}

/// Tells whoever started the server. A reader who went away after the first line ends nothing.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
