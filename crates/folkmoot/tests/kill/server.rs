//! The real server process on a directory of its own, with its data there, or in a PostgreSQL or a
//! Cassandra of its own. The first start takes a free port, later ones the same again, as after a
//! crash in the field.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use althing_testkit::servers::{CassandraServer, PostgresServer};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio_postgres::NoTls;

/// Limits that stand in the way of 50 clients of one address.
const SETTINGS: &str =
    "[limits]\nmessages_per_second = 0\naccounts_per_minute = 0\nsearches_per_minute = 0\n";

/// Where the data is.
pub(crate) enum Behind {
    Nobody,
    Postgres(PostgresServer),
    Cassandra(CassandraServer),
}

impl Behind {
    fn name(&self) -> &'static str {
        match self {
            Self::Nobody => "embedded",
            Self::Postgres(_) => "postgres",
            Self::Cassandra(_) => "cassandra",
        }
    }

    /// For `--store`.
    fn store(&self) -> String {
        match self {
            Self::Nobody => "embedded".to_owned(),
            Self::Postgres(server) => server.url(),
            Self::Cassandra(server) => format!("cassandra://{}/chat?replicas=1", server.host()),
        }
    }
}

pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    process: Option<Child>,
    behind: Behind,
}

impl Server {
    pub(crate) async fn start(behind: Behind) -> Self {
        // Its end removes it; what a test that has failed leaves is for whoever looks for the reason.
        let name = format!("folkmoot-kill-{}-", behind.name());
        let folder = tempfile::Builder::new().prefix(&name).tempdir();
        let folder = folder.expect("the temporary directory can be written").keep();
        std::fs::write(folder.join("settings.toml"), SETTINGS)
            .expect("the settings can be written");
        let mut server = Self { folder, port: 0, process: None, behind };
        server.launch().await;
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Starts the process; returns once it listens.
    pub(crate) async fn launch(&mut self) {
        let store = self.behind.store();
        let mut process = Command::new(env!("CARGO_BIN_EXE_folkmoot"))
            .env("FOLKMOOT_STORE", store)
            .arg("--listen")
            .arg(format!("127.0.0.1:{}", self.port))
            .arg("--data")
            .arg(self.folder.join("data"))
            .arg("--config")
            .arg(self.folder.join("settings.toml"))
            .args(["--log", "warn"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary is built");
        let said = process.stdout.take().expect("it was asked for");
        let line = BufReader::new(said).lines().next_line().await.expect("its output is text");
        let line = line.expect("a server that starts says where it listens");
        let (_, port) =
            line.trim().rsplit_once(':').unwrap_or_else(|| panic!("no address in: {line}"));
        self.port = port.parse().unwrap_or_else(|_| panic!("no port in: {line}"));
        self.process = Some(process);
    }

    /// SIGKILL; returns once the process is gone.
    pub(crate) async fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().await.expect("our own child can be killed");
    }

    /// SIGKILL of all processes of the database, which then starts again.
    pub(crate) fn kill_database(&mut self) {
        tokio::task::block_in_place(|| match &mut self.behind {
            Behind::Nobody => unreachable!("the data is embedded"),
            Behind::Postgres(server) => server.start_again(),
            Behind::Cassandra(server) => server.start_again(),
        });
    }

    /// SIGKILL of PostgreSQL's process that writes what the server says; all others begin anew.
    pub(crate) async fn kill_session(&self) {
        let Behind::Postgres(server) = &self.behind else { unreachable!("only it has sessions") };
        let (client, connection) =
            tokio_postgres::connect(&server.url(), NoTls).await.expect("it takes connections");
        tokio::spawn(connection);
        let writes = "SELECT pid FROM pg_stat_activity
                      WHERE application_name LIKE 'folkmoot %' AND application_name NOT LIKE '%reader'";
        let session: i32 = client.query_one(writes, &[]).await.expect("it is there").get(0);
        let killed = Command::new("kill").args(["-s", "KILL", &session.to_string()]).status().await;
        assert!(killed.expect("there is such a program").success());
    }

    /// Has PostgreSQL keep its files as they are now; it starts anew.
    pub(crate) fn keep_database(&mut self) {
        let Behind::Postgres(server) = &mut self.behind else { unreachable!("only it does") };
        tokio::task::block_in_place(|| server.keep());
    }

    /// Has PostgreSQL begin anew with the files that it kept.
    pub(crate) fn set_database_back(&mut self) {
        let Behind::Postgres(server) = &mut self.behind else { unreachable!("only it does") };
        tokio::task::block_in_place(|| server.go_back());
    }

    /// Waits until the process ends by itself, with an error.
    pub(crate) async fn ended(&mut self) {
        let mut process = self.process.take().expect("it runs");
        let status = process.wait().await.expect("it is our child");
        assert!(!status.success(), "{status}");
    }

    /// Stops the database where it is, for so long.
    pub(crate) async fn hold_database(&self, time: Duration) {
        match &self.behind {
            Behind::Nobody => unreachable!("the data is embedded"),
            Behind::Postgres(server) => server.pause(),
            Behind::Cassandra(server) => server.pause(),
        }
        tokio::time::sleep(time).await;
        match &self.behind {
            Behind::Nobody => {}
            Behind::Postgres(server) => server.resume(),
            Behind::Cassandra(server) => server.resume(),
        }
    }

    /// Removes what can be made anew of the log in Cassandra.
    pub(crate) fn lose_index(&self) {
        for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
            let _ = std::fs::remove_file(self.folder.join("data").join(name));
        }
    }

    pub(crate) async fn stop(mut self) {
        self.kill().await;
        std::fs::remove_dir_all(&self.folder).expect("the directory is ours");
    }
}
