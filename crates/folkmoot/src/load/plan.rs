//! What to put on a server: how many sockets, in which rooms, how much is said.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use folkmoot_protocol::limits::{BODY_CHARS_MAX, CHANNELS_PER_CONNECTION_MAX};

use crate::account::token::random_id;

/// More than one machine has ports for.
const SOCKETS_MAX: usize = 10_000_000;
/// More than anybody waits for, and less than a clock cannot add.
const SECONDS_MAX: u64 = 365 * 24 * 60 * 60;

/// Puts a running server under load, and checks that nothing is lost, doubled or out of order.
#[derive(Debug, Clone, clap::Args)]
pub struct LoadFlags {
    /// Where the server listens; given several times, its nodes, which connections take in turn
    #[arg(long = "server", value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub servers: Vec<SocketAddr>,
    /// The file that `folkmoot seed --tokens` has written: one token a line
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
    /// Connections; they take the tokens in turn
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub sockets: usize,
    /// Rooms that each connection subscribes to, of those that its user is in
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rooms: usize,
    /// Takes rooms with so many members only
    #[arg(long, value_name = "MEMBERS")]
    pub room_of: Option<u32>,
    /// Connections that send, spread over all of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub senders: usize,
    /// Messages a second of all senders together; 0: each sends as soon as its last one is
    /// acknowledged
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub rate: u32,
    /// Messages of all senders together that somebody has not got yet: the next one waits until
    /// the first of them has reached everybody; 0: no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub in_flight: usize,
    /// How long messages are sent, or connections are held that send nothing
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub seconds: u64,
    /// Length of a message
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub bytes: usize,
    /// Afterwards everybody leaves, misses so many messages in each room, and comes back at once
    #[arg(long, value_name = "MESSAGES")]
    pub reconnect: Option<u32>,
    /// A connection that ends goes on at the next node, from where it was, and says again what was
    /// not acknowledged
    #[arg(long)]
    pub resume: bool,
    /// Process of a server on this machine: says what memory a connection takes there
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Says what came of it as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What can be put on a server.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    pub(super) flags: LoadFlags,
    pub(super) tokens: Vec<String>,
    /// Tells this run from others on the same rooms.
    pub(super) run: String,
}

/// Why a plan cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LoadPlanError {
    /// The file of tokens cannot be read.
    #[error("cannot read {0}: {1}")]
    Tokens(PathBuf, std::io::Error),
    /// It has none.
    #[error("{0} has no tokens")]
    NoTokens(PathBuf),
    /// More than there are.
    #[error("{senders} senders need as many sockets, there are {sockets}")]
    TooManySenders {
        /// Wanted.
        senders: usize,
        /// In all.
        sockets: usize,
    },
    /// Nothing would be measured, or the server refuses it whatever it does.
    #[error("--{name} must be {min} to {max}, not {found}")]
    OutOfRange {
        /// The flag.
        name: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// What was asked for.
        found: u64,
    },
}

impl LoadPlan {
    /// Reads the tokens and checks the rest.
    ///
    /// # Errors
    /// [`LoadPlanError`], in one line.
    pub fn load(flags: LoadFlags) -> Result<Self, LoadPlanError> {
        let LoadFlags { sockets, senders, rooms, seconds, bytes, .. } = flags;
        for (name, found, min, max) in [
            ("sockets", sockets as u64, 1, SOCKETS_MAX as u64),
            ("rooms", rooms as u64, 1, CHANNELS_PER_CONNECTION_MAX as u64),
            ("seconds", seconds, 0, SECONDS_MAX),
            ("bytes", bytes as u64, 0, BODY_CHARS_MAX as u64),
        ] {
            if !(min..=max).contains(&found) {
                return Err(LoadPlanError::OutOfRange { name, min, max, found });
            }
        }
        if senders > sockets {
            return Err(LoadPlanError::TooManySenders { senders, sockets });
        }
        let tokens = read(&flags.tokens)?;
        let run = format!("{:x}", random_id());
        Ok(Self { flags, tokens, run })
    }

    pub(super) fn token(&self, socket: usize) -> &str {
        &self.tokens[socket % self.tokens.len()]
    }

    /// Where a socket connects when it does so for the `turn`th time, counted from 0.
    pub(super) fn server(&self, socket: usize, turn: usize) -> SocketAddr {
        let servers = &self.flags.servers;
        servers[(socket + turn) % servers.len()]
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs(self.flags.seconds)
    }

    /// Between two messages of one sender; `None`: as soon as the last one is acknowledged.
    pub(super) fn pause(&self) -> Option<Duration> {
        let LoadFlags { rate, senders, .. } = self.flags;
        let senders = u32::try_from(senders).unwrap_or(u32::MAX);
        (rate > 0).then(|| Duration::from_secs(1) * senders / rate)
    }

    /// Whether the socket of a number is one of those that send.
    pub(super) fn sends(&self, socket: usize) -> bool {
        let LoadFlags { senders, sockets, .. } = self.flags;
        // So many of the first n sockets are the same part of them everywhere.
        (socket + 1) * senders / sockets > socket * senders / sockets
    }
}

fn read(path: &Path) -> Result<Vec<String>, LoadPlanError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| LoadPlanError::Tokens(path.to_owned(), error))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tokens: Vec<String> = lines.map(str::to_owned).collect();
    if tokens.is_empty() {
        return Err(LoadPlanError::NoTokens(path.to_owned()));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(sockets: usize, senders: usize, rate: u32) -> LoadPlan {
        let flags = LoadFlags {
            servers: vec![SocketAddr::from(([127, 0, 0, 1], 1))],
            tokens: PathBuf::new(),
            sockets,
            rooms: 1,
            room_of: None,
            senders,
            rate,
            seconds: 1,
            bytes: 1,
            reconnect: None,
            resume: false,
            server_pid: None,
            in_flight: 0,
            json: false,
        };
        LoadPlan { flags, tokens: Vec::new(), run: String::new() }
    }

    #[test]
    fn as_many_send_as_were_asked_for_and_they_are_spread() {
        for (sockets, senders) in [(10, 3), (1_000, 64), (5, 5), (7, 0)] {
            let plan = plan(sockets, senders, 0);
            let sending: Vec<_> = (0..sockets).filter(|socket| plan.sends(*socket)).collect();
            assert_eq!(sending.len(), senders);
        }
        let plan = plan(100, 2, 0);
        assert!(plan.sends(49) && plan.sends(99));
    }

    #[test]
    fn what_the_server_would_refuse_is_refused_by_its_flag() {
        let refused = |change: fn(&mut LoadFlags)| {
            let mut flags = plan(10, 1, 0).flags;
            change(&mut flags);
            LoadPlan::load(flags).unwrap_err().to_string()
        };
        assert!(refused(|flags| flags.sockets = 0).starts_with("--sockets must be 1 to "));
        assert!(refused(|flags| flags.sockets = usize::MAX).starts_with("--sockets must be 1 to "));
        assert!(refused(|flags| flags.rooms = 2_001).starts_with("--rooms must be 1 to 2000, "));
        assert!(refused(|flags| flags.seconds = u64::MAX).starts_with("--seconds must be 0 to "));
        assert!(refused(|flags| flags.bytes = 8_001).starts_with("--bytes must be 0 to 8000, "));
    }

    #[test]
    fn the_rate_is_that_of_all_senders_together() {
        assert_eq!(plan(100, 10, 1_000).pause(), Some(Duration::from_millis(10)));
        assert_eq!(plan(100, 10, 0).pause(), None);
    }
}
