//! `althing-console`: shows the console of a node in the terminal, asking it once a second over
//! HTTP.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use althing_console::{View, terminal};
use anyhow::{Context, Result};
use clap::Parser;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};

const REFRESH: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How often the keyboard is looked at: quick enough to feel immediate.
const KEYS: Duration = Duration::from_millis(50);

/// Shows who is busy, who is behind and what is slow on an Althing node.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Where the console's JSON is, such as http://127.0.0.1:8000/console/api
    url: String,
}

fn main() -> Result<()> {
    let Cli { url } = Cli::parse();
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(ANSWER_MAX)).build().into();
    // The first answer is awaited in the open, so that a wrong address is told plainly.
    let first = fetch(&agent, &url)?;
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        // Ends with the receiver, when the terminal is closed.
        while tx.send(fetch(&agent, &url)).is_ok() {
            thread::sleep(REFRESH);
        }
    });
    ratatui::run(|terminal| show(terminal, first, &rx))
}

fn fetch(agent: &ureq::Agent, url: &str) -> Result<View> {
    let mut answer = agent.get(url).call().with_context(|| format!("no answer from {url}"))?;
    answer.body_mut().read_json().with_context(|| format!("{url} is not a console's JSON"))
}

fn show(
    terminal: &mut DefaultTerminal,
    first: View,
    views: &mpsc::Receiver<Result<View>>,
) -> Result<()> {
    let mut view = first;
    let mut trouble = None;
    loop {
        for answer in views.try_iter() {
            match answer {
                Ok(fresh) => (view, trouble) = (fresh, None),
                Err(error) => trouble = Some(format!("{error:#}")),
            }
        }
        terminal.draw(|frame| terminal::draw(frame, &view, trouble.as_deref()))?;
        if event::poll(KEYS)? && quits(&event::read()?) {
            return Ok(());
        }
    }
}

fn quits(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}
