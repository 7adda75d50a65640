//! What the command line says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use althing_cluster::LEASE_DEFAULT;

pub(crate) const USAGE: &str = "chaos [--seconds 60] [--seed N] [--lease-ms 5000] [--join-ms N]";

/// What a node is told to wait for in the docs. Where etcd is killed again and again it is not
/// enough, and the node is started again.
const JOIN_LEASES: u32 = 6;

pub(crate) enum Arguments {
    /// The whole thing.
    Run { seconds: u64, seed: u64, timing: Timing },
    /// One of its nodes.
    Node(NodeOptions),
}

/// How long leases last, and how long a node tries to join before it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) lease: Duration,
    pub(crate) join: Duration,
}

/// What a node is told by the process that starts it.
pub(crate) struct NodeOptions {
    pub(crate) name: String,
    /// Which life of the node this is: `one.3`.
    pub(crate) life: String,
    /// Where its diaries are.
    pub(crate) directory: PathBuf,
    /// Host and port of etcd, or of the proxy before it.
    pub(crate) etcd: String,
    pub(crate) postgres: String,
    pub(crate) timing: Timing,
    /// Addresses at which others find the node and its authority.
    pub(crate) advertised: SocketAddr,
    pub(crate) authority: SocketAddr,
    /// Where the authorities of all nodes are found.
    pub(crate) authorities: Vec<String>,
    pub(crate) seed: u64,
}

impl Arguments {
    /// # Errors
    /// A word is not known, or has no value that can be read.
    pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut words = words.peekable();
        if words.next_if(|word| word == "node").is_some() {
            return Ok(Self::Node(NodeOptions::read(words)?));
        }
        let (mut seconds, mut seed, mut lease, mut join) = (60, None, LEASE_DEFAULT, None);
        while let Some(word) = words.next() {
            let value = value(&word, words.next())?;
            match &*word {
                "--seconds" => seconds = number(&word, &value)?,
                "--seed" => seed = Some(number(&word, &value)?),
                "--lease-ms" => lease = Duration::from_millis(number(&word, &value)?),
                "--join-ms" => join = Some(Duration::from_millis(number(&word, &value)?)),
                _ => return Err(format!("`{word}` is not known")),
            }
        }
        let since_start = u64::try_from(crate::clock::now()).unwrap_or(0);
        let seed = seed.unwrap_or(since_start % 1_000_000);
        let timing = Timing { lease, join: join.unwrap_or(lease * JOIN_LEASES) };
        Ok(Self::Run { seconds, seed, timing })
    }
}

impl NodeOptions {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut options = Self {
            name: String::new(),
            life: String::new(),
            directory: PathBuf::new(),
            etcd: String::new(),
            postgres: String::new(),
            timing: Timing { lease: LEASE_DEFAULT, join: LEASE_DEFAULT * JOIN_LEASES },
            advertised: nowhere,
            authority: nowhere,
            authorities: Vec::new(),
            seed: 0,
        };
        while let Some(word) = words.next() {
            let value = value(&word, words.next())?;
            let address = || value.parse().map_err(|_| format!("`{word}` needs an address"));
            match &*word {
                "--name" => options.name = value,
                "--life" => options.life = value,
                "--directory" => options.directory = value.into(),
                "--etcd" => options.etcd = value,
                "--postgres" => options.postgres = value,
                "--lease-ms" => {
                    options.timing.lease = Duration::from_millis(number(&word, &value)?)
                }
                "--join-ms" => options.timing.join = Duration::from_millis(number(&word, &value)?),
                "--advertised" => options.advertised = address()?,
                "--authority" => options.authority = address()?,
                "--authorities" => options.authorities.extend(value.split(',').map(str::to_owned)),
                "--seed" => options.seed = number(&word, &value)?,
                _ => return Err(format!("`{word}` is not known")),
            }
        }
        Ok(options)
    }
}

fn value(word: &str, value: Option<String>) -> Result<String, String> {
    value.ok_or_else(|| format!("`{word}` needs a value"))
}

fn number(word: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("`{word}` needs a number, not `{value}`"))
}
