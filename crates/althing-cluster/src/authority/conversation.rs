//! Connections of members to a candidate: requests go to its task, answers and news come back.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::desk::{ANSWERS_MAX, Asker, Desk, Input};
use crate::protocol::{
    Answer, Broken, GREETING_LEN_MAX, Greeting, No, Refusal, Request, is_spoken, read, write,
};
use crate::record::check_len;
use crate::tls::Guard;
use crate::transport::{self, GREETING_TIMEOUT, Place, Porch, Stream};

/// Connections at one time: each node has one.
const CONNECTIONS_MAX: usize = 1_024;

const TOO_MANY: &str = "there are too many connections";

/// Longest request: a list of all buckets, each with a number, is a quarter of that.
const REQUEST_LEN_MAX: usize = 256 << 10;

/// A node renews far more often.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What all connections share.
pub(super) struct Port {
    pub(super) desk: Arc<Desk>,
    pub(super) guard: Arc<Guard>,
    pub(super) cluster: String,
}

/// Takes connections until the runtime ends.
pub(super) async fn serve(port: Arc<Port>, listener: TcpListener) {
    let (porch, room) = (Porch::default(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let (socket, from) = transport::accept(&listener).await;
        let (port, place, room) = (port.clone(), porch.enter(), room.clone());
        tokio::spawn(async move {
            if let Err(why) = converse(&port, socket, place, &room).await {
                tracing::debug!(%why, "a conversation with the authority ended");
                transport::tell_untrusted(&port.guard, &from.to_string(), &why);
            }
        });
    }
}

/// Has whoever connected show that it is of the cluster.
async fn greet(port: &Port, socket: TcpStream) -> Result<Stream, Broken> {
    let mut stream = transport::admit(&port.guard, socket).await?;
    if !stream.is_of_node() {
        return Err(No::Certificate.of_the_other());
    }
    let greeting = read::<Greeting>(&mut stream, GREETING_LEN_MAX);
    let greeting = timeout(GREETING_TIMEOUT, greeting).await.map_err(|_| Broken::Silent)??;
    if !is_spoken(greeting.version) {
        return Err(No::Version.of_the_other());
    }
    if greeting.cluster != port.cluster {
        return Err(No::Cluster.of_the_other());
    }
    Ok(stream)
}

/// # Errors
/// Says what would be too much for the record.
fn check(request: &Request) -> Result<(), String> {
    match request {
        Request::Join { member, .. } => {
            check_len(&member.name, &member.address)?;
            member.labels.check()
        }
        Request::Renew { labels: Some(labels), .. } => labels.check(),
        _ => Ok(()),
    }
}

async fn converse(
    port: &Port,
    socket: TcpStream,
    place: Place,
    room: &Semaphore,
) -> Result<(), Broken> {
    let stream = place.hold(greet(port, socket)).await?;
    let _permit = room.try_acquire().map_err(|_| Broken::Refused(TOO_MANY.to_owned()))?;
    let desk = &port.desk;
    let nodes = stream.nodes().map(Arc::from);
    let mut dismissed = desk.dismissed.subscribe();
    dismissed.mark_unchanged();
    let (mut from, mut to) = tokio::io::split(stream);
    let (answers, mut answered) = mpsc::channel(ANSWERS_MAX);
    let asker = Asker { answers, nodes };
    let listening = async {
        loop {
            let request = read::<Request>(&mut from, REQUEST_LEN_MAX);
            let request = timeout(SILENCE_MAX, request).await.map_err(|_| Broken::Silent)??;
            check(&request).map_err(Broken::Refused)?;
            let input = Input::Asked { request, from: asker.clone() };
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
            match answer {
                Answer::Elsewhere { .. } => return Ok(()),
                Answer::Refused { why: Refusal::Certificate } => {
                    return Err(No::Certificate.of_the_other());
                }
                _ => {}
            }
        }
    };
    tokio::select! {
        ended = listening => ended,
        ended = telling => ended,
        _ = dismissed.changed() => Ok(()),
    }
}
