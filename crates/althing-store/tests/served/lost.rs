//! A commit that the server has made, and whose answer is lost on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use althing::{ActorId, Epoch};
use althing_store::{Store, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Served, With, id, turn, whole};

/// What the muffler does with the server's answers.
const OPEN: u8 = 0;
/// Mute from the client's last word on.
const ARMED: u8 = 1;
const MUTE: u8 = 2;

/// Passes on what the client says, and what the server answers only while it is not mute.
#[derive(Clone, Default)]
struct Muffler(Arc<AtomicU8>);

impl Muffler {
    async fn start<S: Served>(&self, server: &S) -> String {
        let server = server.address();
        // Drivers may take the server's own address, and the port at which they have found it.
        let (address, _) = server.split_once(':').expect("host and port");
        let listener = TcpListener::bind((address, 0)).await.expect("there is a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let muffler = self.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(stream) = TcpStream::connect(&server).await else { continue };
                let ((asks, hears), (answers, told)) = (client.into_split(), stream.into_split());
                tokio::spawn(muffler.clone().pass(asks, told, S::LAST_WORD));
                tokio::spawn(muffler.clone().answer(answers, hears));
            }
        });
        address
    }

    fn arm<S: Served>(&self) {
        let now = if S::LAST_WORD.is_some() { ARMED } else { MUTE };
        self.0.store(now, Ordering::SeqCst);
    }

    fn open(&self) {
        self.0.store(OPEN, Ordering::SeqCst);
    }

    async fn pass(
        self,
        mut from: impl AsyncReadExt + Unpin,
        mut to: impl AsyncWriteExt + Unpin,
        last_word: Option<&'static [u8]>,
    ) {
        let mut bytes = vec![0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            let said = &bytes[..read];
            let is_last = |word: &[u8]| said.windows(word.len()).any(|part| part == word);
            if last_word.is_some_and(is_last) {
                // Before it is passed on, so that its answer finds it mute.
                _ = self.0.compare_exchange(ARMED, MUTE, Ordering::SeqCst, Ordering::SeqCst);
            }
            if to.write_all(said).await.is_err() {
                break;
            }
        }
    }

    async fn answer(self, mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin) {
        let mut bytes = vec![0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            let is_mute = self.0.load(Ordering::SeqCst) == MUTE;
            if !is_mute && to.write_all(&bytes[..read]).await.is_err() {
                break;
            }
        }
    }
}

/// Waits until the server has a version, of which its store may not hear.
async fn has_version(server: &impl Served, id: &ActorId, version: u64) {
    while server.version_of(id).await.is_none_or(|held| held < version) {}
}

/// Also where the store finds out by itself that it was written.
pub(crate) async fn a_commit_whose_answer_is_lost_is_acknowledged_once_or_unknown<S: Served>(
    server: &S,
) {
    let muffler = Muffler::default();
    let with = With {
        through: Some(muffler.start(server).await),
        answer_within: Some(Duration::from_millis(500)),
        wait_within: Some(Duration::from_secs(5)),
        ..With::default()
    };
    let store = server.try_connect(with).await.expect("the server takes connections");
    let id = id("applied", 1);
    store.open(&id, Epoch(1)).await.expect("it opens");
    store.commit(turn(&id, 1, 1)).await.expect("it follows");
    muffler.arm::<S>();
    let written = store.commit(turn(&id, 1, 2));
    // What follows at once follows on what was written, or is told the same.
    let next = store.commit(turn(&id, 1, 3));
    has_version(server, &id, 2).await;
    muffler.open();
    let is_known = match written.await {
        Ok(()) => true,
        Err(unknown) if unknown.may_have_written() => false,
        Err(refused) => panic!("it was written: {refused}"),
    };
    match next.await {
        Ok(()) => assert_eq!(whole(&store, &id).await, 3),
        Err(refused) => {
            assert!(!is_known && !matches!(refused, StoreError::Fenced { .. }), "{refused}");
            let version = whole(&store, &id).await;
            assert!(version >= 2, "to open the actor tells");
            if version == 2 {
                store.commit(turn(&id, 1, 3)).await.expect("the actor goes on");
            }
        }
    }
    // And if nothing can be found out in time, it says so.
    muffler.arm::<S>();
    let unknown = store.commit(turn(&id, 1, 4)).await.expect_err("it is not answered");
    assert!(matches!(unknown, StoreError::Unknown(_)), "{unknown}");
    has_version(server, &id, 4).await;
    muffler.open();
    assert_eq!(whole(&store, &id).await, 4, "to open the actor tells");
    store.commit(turn(&id, 1, 5)).await.expect("the actor goes on");
}
