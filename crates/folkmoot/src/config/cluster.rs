//! The settings of a node that is one of several.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use althing_cluster::{LEASE_DEFAULT, RecordStore, check_labels};
use serde::Deserialize;

use super::ConfigError;

/// What a node of several does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// Takes connections, and rooms and users live on it.
    #[default]
    Both,
    /// Takes connections only: it can be stopped without moving a room.
    Gateway,
    /// Rooms and users live on it, and it refuses connections of clients.
    State,
}

impl NodeRole {
    /// Whether rooms and users live on it.
    pub(crate) fn has_state(self) -> bool {
        self != Self::Gateway
    }

    /// Whether clients connect to it.
    pub(crate) fn takes_connections(self) -> bool {
        self != Self::State
    }
}

/// What makes a server one node of several, on the command line.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "One of several nodes")]
pub struct ClusterFlags {
    /// Name of the cluster: this process is one of several nodes of one server, that all have the
    /// same `--store postgres://...`
    #[arg(long, env = "FOLKMOOT_CLUSTER_NAME", value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// Name of this node, for which `folkmoot cluster init` has made a certificate
    #[arg(long, env = "FOLKMOOT_NODE", value_name = "NAME")]
    pub node: Option<String>,
    /// What this node does [default: both]
    #[arg(long, env = "FOLKMOOT_ROLE", value_name = "ROLE")]
    pub role: Option<NodeRole>,
    /// What this node says of itself, such as region=eu; may be given more than once
    #[arg(
        long = "label",
        env = "FOLKMOOT_LABELS",
        value_name = "KEY=VALUE",
        value_delimiter = ','
    )]
    pub labels: Vec<String>,
    /// Where the other nodes connect [default: 127.0.0.1:0, a free port]
    #[arg(long, env = "FOLKMOOT_PEER_LISTEN", value_name = "ADDRESS:PORT")]
    pub peer_listen: Option<SocketAddr>,
    /// Where the nodes agree on who is one of them, while it is this node's turn to keep that
    /// [default: the address of `--peer-listen` and a free port]
    #[arg(long, env = "FOLKMOOT_AUTHORITY_LISTEN", value_name = "ADDRESS:PORT")]
    pub authority_listen: Option<SocketAddr>,
    /// Host by which the other nodes find this one [default: the address listened at]
    #[arg(long, env = "FOLKMOOT_PEER_HOST", value_name = "HOST")]
    pub peer_host: Option<String>,
    /// Directory that `folkmoot cluster init` has made
    #[arg(long, env = "FOLKMOOT_CLUSTER_CERTIFICATES", value_name = "DIR")]
    pub cluster_certificates: Option<PathBuf>,
    /// Directory of the files in messages, which all nodes of a cluster share [default:
    /// `attachments` in the data directory]
    #[arg(long, env = "FOLKMOOT_ATTACHMENTS", value_name = "DIR")]
    pub attachments: Option<PathBuf>,
}

/// The same in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClusterSection {
    name: Option<String>,
    node: Option<String>,
    role: Option<NodeRole>,
    labels: Vec<String>,
    peer_listen: Option<SocketAddr>,
    authority_listen: Option<SocketAddr>,
    peer_host: Option<String>,
    certificates: Option<PathBuf>,
    lease_ms: Option<u64>,
}

/// How this process is one node of several.
#[derive(Debug, Clone)]
pub(crate) struct ClusterConfig {
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) role: NodeRole,
    pub(crate) labels: Vec<String>,
    pub(crate) peer_listen: SocketAddr,
    pub(crate) authority_listen: SocketAddr,
    /// `None`: the address listened at.
    pub(crate) host: Option<String>,
    pub(crate) certificates: PathBuf,
    /// Where the cluster's record is kept: the database that has all else.
    pub(crate) record: RecordStore,
    /// How long the others wait for a node that says nothing.
    pub(crate) lease: Duration,
}

/// What of the other settings decides whether a node can be one of several.
pub(super) struct Others<'a> {
    /// The database, with its password.
    pub(super) store: Option<&'a str>,
    pub(super) has_own_attachments: bool,
    pub(super) is_demo: bool,
    pub(super) is_restored: bool,
}

/// The settings of a node of several; `None` for a server alone.
pub(super) fn merge(
    flags: ClusterFlags,
    file: ClusterSection,
    others: &Others<'_>,
) -> Result<Option<ClusterConfig>, ConfigError> {
    let node = flags.node.or(file.node);
    let role = flags.role.or(file.role);
    let labels = if flags.labels.is_empty() { file.labels } else { flags.labels };
    let certificates = flags.cluster_certificates.or(file.certificates);
    let peer_listen = flags.peer_listen.or(file.peer_listen);
    let authority_listen = flags.authority_listen.or(file.authority_listen);
    let host = flags.peer_host.or(file.peer_host);
    let Some(name) = flags.cluster_name.or(file.name) else {
        let given = [
            ("--node", node.is_some()),
            ("--role", role.is_some()),
            ("--label", !labels.is_empty()),
            ("--peer-listen", peer_listen.is_some()),
            ("--authority-listen", authority_listen.is_some()),
            ("--peer-host", host.is_some()),
            ("--cluster-certificates", certificates.is_some()),
        ];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(problem(flag, "needs --cluster-name")),
            None => Ok(None),
        };
    };
    let needs = |flag| problem("--cluster-name", &format!("needs {flag}"));
    check_labels(&labels).map_err(|why| problem("--label", &why))?;
    let node = node.ok_or_else(|| needs("--node"))?;
    let certificates = certificates.ok_or_else(|| needs("--cluster-certificates"))?;
    let store = others.store.ok_or_else(|| needs("--store postgres://..."))?;
    if store.starts_with("cassandra://") {
        return Err(problem(
            "--store",
            "is in Cassandra, which is for a server without --cluster-name",
        ));
    }
    if others.has_own_attachments {
        return Err(needs("--attachments, a directory that all nodes share"));
    }
    if others.is_demo {
        return Err(problem("--demo", "is for a server without --cluster-name"));
    }
    if others.is_restored {
        let text = "is for a server without --cluster-name: start one alone first";
        return Err(problem("--restored", text));
    }
    let peer_listen = peer_listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let authority_listen = authority_listen.unwrap_or_else(|| SocketAddr::new(peer_listen.ip(), 0));
    let is_anywhere = |address: SocketAddr| address.ip().is_unspecified();
    if host.is_none() && (is_anywhere(peer_listen) || is_anywhere(authority_listen)) {
        let text = "is missing: other nodes cannot connect to an unspecified address";
        return Err(problem("--peer-host", text));
    }
    if host.is_some() && (peer_listen.port() == 0 || authority_listen.port() == 0) {
        let text = "needs ports in --peer-listen and --authority-listen that others can be told";
        return Err(problem("--peer-host", text));
    }
    let record = RecordStore::postgres(store)
        .map_err(|error| problem("--store", &format!("cannot keep the cluster: {error}")))?;
    let lease = file.lease_ms.map_or(LEASE_DEFAULT, Duration::from_millis);
    let config = ClusterConfig {
        name,
        node,
        role: role.unwrap_or_default(),
        labels,
        peer_listen,
        authority_listen,
        host,
        certificates,
        record,
        lease,
    };
    Ok(Some(config))
}

impl ClusterConfig {
    /// What other nodes are told of an address that this one listens at.
    pub(crate) fn advertised(&self, port: u16, ip: IpAddr) -> String {
        match &self.host {
            Some(host) => format!("{host}:{port}"),
            None => SocketAddr::new(ip, port).to_string(),
        }
    }
}

fn problem(flag: &'static str, text: &str) -> ConfigError {
    ConfigError::Cluster { flag, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> ClusterFlags {
        ClusterFlags {
            cluster_name: Some("moot".to_owned()),
            node: Some("n1".to_owned()),
            cluster_certificates: Some("tls".into()),
            ..ClusterFlags::default()
        }
    }

    fn merged(flags: ClusterFlags, others: &Others<'_>) -> Result<Option<ClusterConfig>, String> {
        merge(flags, ClusterSection::default(), others).map_err(|error| error.to_string())
    }

    const OTHERS: Others<'_> = Others {
        store: Some("postgres://ana:hush@db/chat"),
        has_own_attachments: false,
        is_demo: false,
        is_restored: false,
    };

    #[test]
    fn what_is_missing_or_does_not_go_together_is_named_by_its_flag() {
        assert!(merged(ClusterFlags::default(), &OTHERS).unwrap().is_none());
        for (flags, others, flag) in [
            (ClusterFlags { node: None, ..flags() }, OTHERS, "--node"),
            (ClusterFlags { cluster_name: None, ..flags() }, OTHERS, "--cluster-name"),
            (ClusterFlags { cluster_certificates: None, ..flags() }, OTHERS, "--cluster-cert"),
            (
                ClusterFlags { role: Some(NodeRole::State), ..ClusterFlags::default() },
                OTHERS,
                "--role",
            ),
            (
                ClusterFlags { labels: vec!["a=b".to_owned()], ..ClusterFlags::default() },
                OTHERS,
                "--label",
            ),
            (ClusterFlags { labels: vec!["ssd".to_owned()], ..flags() }, OTHERS, "`ssd`"),
            (flags(), Others { store: None, ..OTHERS }, "--store"),
            (flags(), Others { store: Some("cassandra://db/chat"), ..OTHERS }, "Cassandra"),
            (flags(), Others { has_own_attachments: true, ..OTHERS }, "--attachments"),
            (flags(), Others { is_demo: true, ..OTHERS }, "--demo"),
            (flags(), Others { is_restored: true, ..OTHERS }, "--restored"),
            (
                ClusterFlags { peer_listen: "0.0.0.0:7".parse().ok(), ..flags() },
                OTHERS,
                "--peer-host",
            ),
            (ClusterFlags { peer_host: Some("n1".to_owned()), ..flags() }, OTHERS, "--peer-host"),
        ] {
            let error = merged(flags, &others).unwrap_err();
            assert!(error.contains(flag) && !error.contains("hush"), "{flag}: {error}");
        }
    }

    #[test]
    fn a_node_is_found_where_it_listens_or_by_its_host() {
        let config = merged(flags(), &OTHERS).unwrap().unwrap();
        assert!(!format!("{config:?}").contains("hush"));
        assert_eq!(config.advertised(7, config.peer_listen.ip()), "127.0.0.1:7");
        let hosted = ClusterFlags {
            peer_host: Some("n1.internal".to_owned()),
            peer_listen: "0.0.0.0:7".parse().ok(),
            authority_listen: "0.0.0.0:8".parse().ok(),
            ..flags()
        };
        let config = merged(hosted, &OTHERS).unwrap().unwrap();
        assert_eq!(config.advertised(7, config.peer_listen.ip()), "n1.internal:7");
    }
}
