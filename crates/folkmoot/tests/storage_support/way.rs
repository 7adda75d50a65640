//! A way to a server that a test leads elsewhere, or on which answers are lost while connections
//! stand.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Where a client connects in place of the server.
pub(crate) struct Way {
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    server: String,
    connections: u64,
    /// Connections before that one hear nothing any more.
    silent_before: u64,
    /// All that there are then hear nothing any more once one of them says this.
    last_word: Option<&'static [u8]>,
}

impl Way {
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let state =
            State { server: server.to_owned(), connections: 0, silent_before: 0, last_word: None };
        let state = Arc::new(Mutex::new(state));
        tokio::spawn(accept(listener, state.clone()));
        Self { address, state }
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// From now on who connects gets there; who is connected stays where they are.
    pub(crate) fn lead_to(&self, server: &str) {
        self.state.lock().server = server.to_owned();
    }

    /// Once one of them says a word, which the server hears, all who are connected then hear nothing
    /// any more, and the server does not hear that they go.
    pub(crate) fn silence_from(&self, word: &'static [u8]) {
        self.state.lock().last_word = Some(word);
    }
}

impl State {
    fn silence(&mut self) {
        self.silent_before = self.connections;
    }

    /// What a client says.
    fn hear(&mut self, said: &[u8]) {
        let is_last = |word: &&[u8]| said.windows(word.len()).any(|part| part == *word);
        if self.last_word.take_if(|word| is_last(word)).is_some() {
            self.silence();
        }
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((client, _)) = listener.accept().await {
        let server = state.lock().server.clone();
        let Ok(server) = TcpStream::connect(&server).await else { continue };
        let number = {
            let mut state = state.lock();
            state.connections += 1;
            state.connections - 1
        };
        let ((asks, hears), (answers, told)) = (client.into_split(), server.into_split());
        tokio::spawn(ask(number, asks, told, state.clone()));
        tokio::spawn(answer(number, answers, hears, state.clone()));
    }
}

async fn ask(
    number: u64,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: Arc<Mutex<State>>,
) {
    let mut bytes = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        state.lock().hear(&bytes[..read]);
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
    if number < state.lock().silent_before {
        std::future::pending::<()>().await;
    }
}

async fn answer(
    number: u64,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: Arc<Mutex<State>>,
) {
    let mut bytes = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let is_silent = number < state.lock().silent_before;
        if !is_silent && to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
