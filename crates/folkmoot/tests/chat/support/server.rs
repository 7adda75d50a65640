//! A server under test, and accounts on it.

use std::net::SocketAddr;
use std::path::PathBuf;

use folkmoot::{Config, Flags, Running, StoreText};
use serde_json::json;

use super::{Answer, Bytes, Client, Scratch, exchange, keeps, request};

/// A test reads when it asks for something; on a busy machine, a ping would wait for that too long.
pub(crate) const PATIENT: &str = "[gateway]\nping_s = 300\npong_timeout_s = 300\n";

pub(crate) struct Server {
    running: Option<Running>,
    scratch: Scratch,
    settings: String,
    has_demo: bool,
    store: Option<StoreText>,
    data: PathBuf,
}

/// A signed-up user.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) token: String,
    pub(crate) device: String,
}

impl Account {
    /// Signs somebody up at a server that is only known by its address.
    pub(crate) async fn sign_up(at: SocketAddr, name: &str) -> Self {
        let body = json!({"name": name, "password": "correct horse"}).to_string();
        Self::of(&request(at, "POST /api/v1/accounts", None, &body).await)
    }

    /// The account of an answer that signed a device in.
    pub(crate) fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 201, "{answer:?}");
        let answer = answer.json();
        let text = |value: &serde_json::Value| value.as_str().expect("a string").to_owned();
        Self {
            id: text(&answer["user"]["id"]),
            token: text(&answer["token"]),
            device: text(&answer["device"]),
        }
    }
}

/// The data is embedded, unless `FOLKMOOT_TEST_STORE=postgres` says that all tests are to run on
/// PostgreSQL; those of the embedded store's files fail then.
async fn store() -> Option<StoreText> {
    if std::env::var_os("FOLKMOOT_TEST_STORE").is_none_or(|store| store != "postgres") {
        return None;
    }
    let address = crate::storage_postgres::new_database().await;
    Some(address.to_string().parse().expect("any text will do"))
}

impl Server {
    pub(crate) async fn start() -> Self {
        // Tests send as fast as they can, unless the limit is what they test.
        let limits = "messages_per_second = 0\naccounts_per_minute = 0\nsearches_per_minute = 0";
        Self::with(&format!("[limits]\n{limits}\n{PATIENT}")).await
    }

    /// A server with its data in a database.
    pub(crate) async fn on(store: &str) -> Self {
        let mut server = Self::start().await;
        server.stop().await;
        let files = server.beside("files");
        server.serve(files, store).await;
        server
    }

    /// A server with a settings file.
    pub(crate) async fn with(settings: &str) -> Self {
        let scratch = Scratch::new();
        let settings = settings.to_owned();
        let store = store().await;
        let data = scratch.path().join("data");
        let mut server = Self { running: None, scratch, settings, has_demo: false, store, data };
        server.begin().await;
        server
    }

    /// A server whose demo is ready.
    pub(crate) async fn demo() -> Self {
        let scratch = Scratch::new();
        let settings = "[limits]\naccounts_per_minute = 0\n".to_owned();
        let store = store().await;
        let data = scratch.path().join("data");
        let mut server = Self { running: None, scratch, settings, has_demo: true, store, data };
        server.begin().await;
        server
    }

    async fn begin(&mut self) {
        let config = Config::load(self.flags()).expect("the settings are valid");
        self.running = Some(folkmoot::start(config).await.expect("the server starts"));
    }

    fn flags(&self) -> Flags {
        Flags {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            data: Some(self.data()),
            store: self.store.clone(),
            config: Some(self.scratch.file("folkmoot.toml", &self.settings)),
            demo: self.has_demo,
            log_segment_mib: Some(1),
            ..Flags::default()
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone()
    }

    /// A place beside the data, which goes with the server.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Starts it, stopped before, on other data.
    pub(crate) async fn serve(&mut self, data: PathBuf, store: &str) {
        (self.data, self.store) = (data, Some(store.parse().expect("any text will do")));
        self.begin().await;
    }

    /// Stops it as SIGTERM does, and starts it again on the same data.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.begin().await;
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    /// Waits until nothing is left of what was deleted.
    pub(crate) async fn erased(&self) {
        self.running.as_ref().expect("the server runs").erased().await;
    }

    /// Waits until all messages are gone that are kept no longer.
    pub(crate) async fn kept(&self) {
        self.running.as_ref().expect("the server runs").kept_to().await;
    }

    /// Whether the files of the database, of the log or of the index have a text. The server is
    /// stopped.
    pub(crate) fn keeps(&self, text: &str) -> bool {
        assert!(self.running.is_none(), "a running server has its files open");
        keeps(&self.data(), text)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.as_ref().expect("the server runs").address()
    }

    pub(crate) async fn http(&self, line: &str, token: Option<&str>, body: &str) -> Answer {
        request(self.address(), line, token, body).await
    }

    /// A request whose body and answer may be anything.
    pub(crate) async fn exchange(
        &self,
        line: &str,
        account: &Account,
        headers: &[&str],
        body: &[u8],
    ) -> Bytes {
        exchange(self.address(), line, Some(&account.token), headers, body).await
    }

    /// Uploads a file to a room.
    pub(crate) async fn upload(
        &self,
        account: &Account,
        room: &str,
        name: &str,
        file: &[u8],
    ) -> Bytes {
        let line = format!("POST /api/v1/rooms/{room}/attachments?name={name}");
        self.exchange(&line, account, &[], file).await
    }

    pub(crate) async fn sign_up(&self, name: &str) -> Account {
        self.sign("POST /api/v1/accounts", name).await
    }

    /// One more device of an account.
    pub(crate) async fn sign_in(&self, name: &str) -> Account {
        self.sign("POST /api/v1/sessions", name).await
    }

    async fn sign(&self, line: &str, name: &str) -> Account {
        let body = json!({"name": name, "password": "correct horse"}).to_string();
        Account::of(&self.http(line, None, &body).await)
    }

    /// The token of the link that the server offers to its first administrator.
    pub(crate) fn setup_token(&self) -> Option<String> {
        let link = self.running.as_ref().expect("the server runs").setup_link()?;
        let (page, token) = link.split_once('#').expect("the token stands behind a #");
        let scheme = self.running.as_ref().expect("the server runs").scheme();
        assert_eq!(page, format!("{scheme}://{}/setup", self.address()));
        Some(token.to_owned())
    }

    /// Makes the first administrator.
    pub(crate) async fn set_up(&self, name: &str) -> Answer {
        let token = self.setup_token();
        let body = json!({"token": token, "name": name, "password": "correct horse"}).to_string();
        self.http("POST /api/v1/setup", None, &body).await
    }

    /// A connected client of an account.
    pub(crate) async fn connect(&self, account: &Account) -> Client {
        let mut client = Client::open(self.address()).await;
        client.connect(&account.token).await.expect("the token is valid");
        client
    }

    /// Signs up and connects.
    pub(crate) async fn join(&self, name: &str) -> Client {
        let account = self.sign_up(name).await;
        self.connect(&account).await
    }
}
