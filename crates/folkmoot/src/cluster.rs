//! `folkmoot cluster`: the certificates by which the nodes of a cluster know each other.
//!
//! A directory gets the authority's certificate and key and a pair for each node. A file is replaced
//! as a whole, so a node that looks meanwhile sees the old one or the new one.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use althing_cluster::{CertificateAuthority, Certified};
use anyhow::Context;

/// How long an authority lasts: to replace it takes every node.
const AUTHORITY_DAYS: u32 = 3_650;

/// What the authority is called.
const AUTHORITY: &str = "ca";

/// What is to be made.
#[derive(Debug, clap::Subcommand)]
pub enum ClusterTask {
    /// Makes the authority of a new cluster, and certificates for its nodes
    Init {
        /// Where the files go; made if it is not there
        directory: PathBuf,
        /// Name of the cluster
        #[arg(long, value_name = "NAME")]
        cluster: String,
        /// Its nodes
        #[command(flatten)]
        nodes: NodeFlags,
    },
    /// Makes certificates by the authority in that directory: for more nodes, or new ones in place of
    /// old ones
    Certify {
        /// Where `cluster init` has put the files
        directory: PathBuf,
        /// Those that get one
        #[command(flatten)]
        nodes: NodeFlags,
    },
}

/// For whom, and for how long.
#[derive(Debug, clap::Args)]
pub struct NodeFlags {
    /// Name of a node; may be given several times
    #[arg(long = "node", value_name = "NAME", required = true)]
    names: Vec<String>,
    /// How long the certificates of the nodes last
    #[arg(long, value_name = "DAYS", default_value_t = 365)]
    days: u32,
}

/// Does the task; returns the files that it has written.
///
/// # Errors
/// A name cannot stand in a certificate, `init` finds an authority or `certify` none, or a file
/// cannot be written.
pub fn run(task: ClusterTask) -> anyhow::Result<Vec<PathBuf>> {
    match task {
        ClusterTask::Init { directory, cluster, nodes } => {
            let authority = CertificateAuthority::new(&cluster, after(AUTHORITY_DAYS))?;
            let certified = certify(&authority, &nodes)?;
            let [certificate, key] = files(&directory, AUTHORITY);
            for file in [&certificate, &key] {
                anyhow::ensure!(
                    !file.exists(),
                    "{} is there already; `folkmoot cluster certify` makes certificates by it",
                    file.display()
                );
            }
            fs::create_dir_all(&directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            let mut written = write_pair(&directory, AUTHORITY, &authority.certified())?.to_vec();
            written.extend(write_all(&directory, &certified)?);
            Ok(written)
        }
        ClusterTask::Certify { directory, nodes } => {
            let [certificate, key] = files(&directory, AUTHORITY).map(|file| {
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
            });
            let authority = CertificateAuthority::open(&certificate?, &key?)
                .with_context(|| format!("of {}", directory.display()))?;
            write_all(&directory, &certify(&authority, &nodes)?)
        }
    }
}

fn after(days: u32) -> SystemTime {
    SystemTime::now() + Duration::from_secs(u64::from(days) * 86_400)
}

/// Nothing is written before all of them are made.
fn certify(
    authority: &CertificateAuthority,
    nodes: &NodeFlags,
) -> anyhow::Result<Vec<(String, Certified)>> {
    let one = |name: &String| {
        anyhow::ensure!(name != AUTHORITY, "a node cannot be called `{AUTHORITY}` here");
        Ok((name.clone(), authority.certify(name, after(nodes.days))?))
    };
    nodes.names.iter().map(one).collect()
}

fn write_all(directory: &Path, all: &[(String, Certified)]) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (name, certified) in all {
        written.extend(write_pair(directory, name, certified)?);
    }
    Ok(written)
}

/// The certificate and the key of that name.
fn files(directory: &Path, name: &str) -> [PathBuf; 2] {
    ["pem", "key"].map(|end| directory.join(format!("{name}.{end}")))
}

fn write_pair(directory: &Path, name: &str, own: &Certified) -> anyhow::Result<[PathBuf; 2]> {
    let [certificate, key] = files(directory, name);
    replace(&key, &own.key, 0o600)?;
    replace(&certificate, &own.certificate, 0o644)?;
    Ok([certificate, key])
}

fn replace(file: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    let write = || {
        // One that was left behind may be readable by others.
        let _ = fs::remove_file(&new);
        let mut to = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        to.write_all(text.as_bytes())?;
        to.sync_all()?;
        fs::rename(&new, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
