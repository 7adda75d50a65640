//! A PostgreSQL server of a test's own: it can be killed, stopped and started again, and it ends
//! with the test.
//!
//! Once it is dropped, or its process ends in any way, nothing of it is left: a small process that
//! waits for the end of ours sees to it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::cache::cached;
use super::one_process::own_address;
use super::process::{User, family, is_root, signal, user, wait_for_end};
use super::watcher::Watcher;

/// Said by the server once it takes connections, those that only read included.
const READY: &str = "database system is ready to accept";

/// Starts that fail because somebody else took the port in between.
const STARTS_MAX: u32 = 5;

/// Ends what is left, when the pipe that it reads from ends with the process that started it.
const WATCH: &str = r#"cat >/dev/null
server=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null) &&
    kill -s CONT "$server" && kill -s QUIT "$server"
while [ -n "$server" ] && kill -s 0 "$server" 2>/dev/null; do sleep 0.05; done
rm -rf "$0""#;

/// A real PostgreSQL in a temporary directory, with a superuser `test`, a database `postgres`, and
/// every write synced.
///
/// Servers of one version begin as copies of one empty database: they have the same system
/// identifier.
///
/// The server does not run as root, so under root it runs as the user `postgres`, whom Debian's
/// package brings.
///
/// ```
/// let mut server = althing_testkit::servers::PostgresServer::start();
/// println!("{}", server.url());
/// server.kill();
/// server.start_again();
/// ```
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    user: Option<User>,
    /// Before the directory, because it is dropped first.
    _watcher: Watcher,
    directory: TempDir,
    address: String,
    port: u16,
    server: Option<Child>,
}

impl PostgresServer {
    /// Starts a new, empty server; returns when it takes connections.
    ///
    /// # Panics
    /// If PostgreSQL is not installed, or does not start.
    pub fn start() -> Self {
        let programs = programs();
        let user = is_root()
            .then(|| user("postgres").expect("there is a user postgres: PostgreSQL refuses root"));
        let directory = tempfile::Builder::new()
            .prefix("postgres-")
            .tempdir()
            .expect("a temporary directory can be made");
        if let Some(user) = user {
            chown(directory.path(), Some(user.uid), Some(user.gid)).expect("root may do that");
        }
        let address = own_address();
        let watcher = Watcher::start(WATCH, directory.path());
        let mut server =
            Self { programs, user, directory, address, port: 0, server: None, _watcher: watcher };
        server.make();
        for _ in 0..STARTS_MAX {
            let free = TcpListener::bind((&*server.address, 0)).and_then(|it| it.local_addr());
            server.port = free.expect("there is a free port").port();
            match server.run() {
                Ok(()) => return server,
                Err(log) if log.contains("could not bind") => {}
                Err(log) => panic!("PostgreSQL does not start:\n{log}"),
            }
        }
        panic!("PostgreSQL found every port taken");
    }

    /// Where a client finds it, over TCP.
    pub fn url(&self) -> String {
        format!("postgres://test@{}:{}/postgres", self.address, self.port)
    }

    /// Kills all of its processes at once, as a crash of the machine would; it stays away until it
    /// is started again.
    pub fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        // It is stopped first, so that it starts no child of which we do not know.
        signal("STOP", &[server.id()]);
        let family = family(server.id());
        signal("KILL", &family);
        server.wait().expect("it is our child");
        // Its memory is in use until the last one has let it go, and it would not start again.
        wait_for_end(&family);
        // Somebody else may get its number.
        _ = fs::remove_file(self.data().join("postmaster.pid"));
    }

    /// Starts it again at the same address, with what it has kept.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&mut self) {
        self.kill();
        self.run().unwrap_or_else(|log| panic!("PostgreSQL does not start again:\n{log}"));
    }

    /// Has it encrypt whatever clients want encrypted, with a certificate and its key in PEM. It
    /// starts anew.
    ///
    /// # Panics
    /// If it does not start with them.
    pub fn encrypt(&mut self, certificate: &str, key: &str) {
        self.kill();
        for (name, pem) in [("server.crt", certificate), ("server.key", key)] {
            let path = self.data().join(name);
            fs::write(&path, pem).expect("the directory is ours");
            // It refuses a key that others may read.
            let mode = fs::Permissions::from_mode(0o600);
            fs::set_permissions(&path, mode).expect("it is our file");
            if let Some(user) = self.user {
                chown(&path, Some(user.uid), Some(user.gid)).expect("root may do that");
            }
        }
        let settings = self.data().join("postgresql.auto.conf");
        let settings = fs::File::options().append(true).open(settings);
        settings.and_then(|mut it| it.write_all(b"ssl = on\n")).expect("it is there");
        self.start_again();
    }

    /// Keeps its files as they are now, for `go_back`. It starts anew.
    ///
    /// # Panics
    /// If it does not start again.
    pub fn keep(&mut self) {
        self.kill();
        copy(&self.data(), &self.kept());
        self.start_again();
    }

    /// Has its files again as they were kept, as a machine that is brought back from a snapshot. It
    /// starts anew.
    ///
    /// # Panics
    /// If nothing was kept, or it does not start with that.
    pub fn go_back(&mut self) {
        self.kill();
        fs::remove_dir_all(self.data()).expect("the directory is ours");
        copy(&self.kept(), &self.data());
        self.start_again();
    }

    /// Has it only read from now on, as a standby does whose primary is away. It starts anew.
    ///
    /// # Panics
    /// If it does not start so.
    pub fn stand_by(&mut self) {
        self.kill();
        let wanted = self.data().join("standby.signal");
        fs::write(&wanted, "").expect("the directory is ours");
        if let Some(user) = self.user {
            chown(&wanted, Some(user.uid), Some(user.gid)).expect("root may do that");
        }
        self.start_again();
    }

    /// The address and the port at which it listens.
    pub fn address(&self) -> (&str, u16) {
        (&self.address, self.port)
    }

    /// Stops all of its processes where they are: connections stay, and nobody answers.
    pub fn pause(&self) {
        if let Some(server) = &self.server {
            signal("STOP", &[server.id()]);
            signal("STOP", &family(server.id()));
        }
    }

    /// Lets it go on after `pause`.
    pub fn resume(&self) {
        if let Some(server) = &self.server {
            signal("CONT", &family(server.id()));
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn kept(&self) -> PathBuf {
        self.directory.path().join("kept")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command.current_dir(self.directory.path()).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// Gives it the directory of an empty database, which is made once for a version and copied.
    fn make(&self) {
        let version = self.command("postgres").arg("--version").output();
        let version = version.expect("the server can be run").stdout;
        let version = String::from_utf8_lossy(&version).trim().replace([' ', '/'], "-");
        let owner = self.user.map_or_else(String::new, |user| format!("-of-{}", user.uid));
        let empty = cached(&format!("{version}{owner}"), |made| {
            self.make_anew();
            run(Command::new("mv").arg(self.data()).arg(made));
            made.join("data")
        });
        copy(&empty, &self.data());
    }

    fn make_anew(&self) {
        let mut initdb = self.command("initdb");
        initdb.args(["--username=test", "--auth=trust", "--encoding=UTF8", "--no-locale"]);
        // The cluster itself need not survive; the server syncs what is written to it later.
        run(initdb.args(["--no-sync", "--pgdata"]).arg(self.data()));
    }

    /// Runs the server until it takes connections; otherwise returns what it said.
    fn run(&mut self) -> Result<(), String> {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        command.args(["-h", &self.address, "-p", &self.port.to_string()]);
        command.args(["-c", "fsync=on", "-c", "full_page_writes=on", "-c", "lc_messages=C"]);
        // A test program may run many servers on it at once.
        command.args(["-c", "max_connections=500"]);
        let mut server = command.stderr(Stdio::piped()).spawn().expect("the server can be run");
        let mut lines = BufReader::new(server.stderr.take().expect("it is piped")).lines();
        let mut log = String::new();
        while let Some(Ok(line)) = lines.next() {
            if line.contains(READY) {
                self.server = Some(server);
                // A pipe that nobody reads would hold the server up. Ends with the last of its
                // processes.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(());
            }
            log.push_str(&line);
            log.push('\n');
        }
        server.wait().expect("it is our child");
        Err(log)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Copies a directory that is not there yet.
fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").args(["--archive", "--reflink=auto"]).arg(from).arg(to));
}

/// Runs a program that must succeed.
fn run(command: &mut Command) {
    let made = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(made.status.success(), "{command:?}: {}", String::from_utf8_lossy(&made.stderr));
}

/// The newest version that is installed, or else what the path has.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .map(|entry| entry.path().join("bin"))
        .filter(|path| path.join("initdb").exists())
        .max_by_key(|path| version(path));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let elsewhere = || std::env::split_paths(&path).find(|path| path.join("initdb").exists());
    newest.or_else(elsewhere).expect("PostgreSQL is installed: apt-get install postgresql")
}

fn version(programs: &Path) -> Option<u32> {
    programs.parent()?.file_name()?.to_str()?.parse().ok()
}
