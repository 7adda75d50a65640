//! Connections of members to a candidate: requests go to its task, answers and news come back.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::desk::{ANSWERS_MAX, Desk, Input};
use crate::protocol::{
    Answer, Broken, GREETING_LEN_MAX, Greeting, RECORD_LEN_MAX, Request, VERSION, read, write,
};
use crate::transport::{self, GREETING_TIMEOUT};

/// Connections at one time: each node has one.
const CONNECTIONS_MAX: usize = 1_024;

/// A node renews far more often.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Takes connections until the runtime ends.
pub(super) async fn serve(desk: Arc<Desk>, cluster: String, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let cluster: Arc<str> = cluster.into();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let stream = transport::accept(&listener).await;
        let (desk, cluster) = (desk.clone(), cluster.clone());
        tokio::spawn(async move {
            if let Err(why) = converse(&desk, &cluster, stream).await {
                tracing::debug!(%why, "a conversation with the authority ended");
            }
            drop(permit);
        });
    }
}

async fn converse(desk: &Desk, cluster: &str, mut stream: TcpStream) -> Result<(), Broken> {
    let greeting = read::<Greeting>(&mut stream, GREETING_LEN_MAX);
    let greeting = timeout(GREETING_TIMEOUT, greeting).await.map_err(|_| Broken::Silent)??;
    if greeting.version != VERSION || greeting.cluster != cluster {
        return Err(Broken::Refused("another version or another cluster".to_owned()));
    }
    let mut dismissed = desk.dismissed.subscribe();
    dismissed.mark_unchanged();
    let (mut from, mut to) = tokio::io::split(stream);
    let (answers, mut answered) = mpsc::channel(ANSWERS_MAX);
    let listening = async {
        loop {
            let request = read::<Request>(&mut from, RECORD_LEN_MAX);
            let request = timeout(SILENCE_MAX, request).await.map_err(|_| Broken::Silent)??;
            let input = Input::Asked { request, answers: answers.clone() };
            if desk.inputs.send(input).await.is_err() {
                return Ok(());
            }
        }
    };
    let mut news = desk.news.subscribe();
    news.mark_unchanged();
    let telling = async {
        loop {
            let answer = tokio::select! {
                Some(answer) = answered.recv() => answer,
                Ok(()) = news.changed() => {
                    let record = (**news.borrow_and_update()).clone();
                    Answer::News { record }
                }
                else => return Ok(()),
            };
            write(&mut to, &answer).await?;
            if matches!(answer, Answer::Elsewhere { .. }) {
                return Ok(());
            }
        }
    };
    tokio::select! {
        ended = listening => ended,
        ended = telling => ended,
        _ = dismissed.changed() => Ok(()),
    }
}
