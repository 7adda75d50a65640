//! The road out: HTTP/1.1 straight on hyper, because `/vehicle` is asked a hundred thousand times a
//! second and needs no framework.
//!
//! `routes` decides, `body` carries, `problem` refuses, `assets` are the page; `patience` ends who
//! says nothing. State lives in actors; nothing is cached here.

mod assets;
mod body;
mod patience;
mod problem;
mod query;
mod routes;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use patience::Patience;
pub(crate) use routes::App;

/// Connections at once; more wait in the listen queue.
const CONNECTIONS_MAX: usize = 10_000;
/// A request's head; ours need a few hundred bytes.
const HEAD_LEN_MAX: usize = 16 * 1_024;
/// A client that has not sent a whole head by then is not going to; nor is one that keeps its
/// connection for later.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Pause after a failed accept, such as no file descriptors left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves until dropped.
pub(crate) async fn serve(listener: TcpListener, app: Arc<App>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        // Answers are small and whole; a failure to say so costs latency only.
        socket.set_nodelay(true).ok();
        let app = app.clone();
        tokio::spawn(async move {
            let patience = Patience::default();
            let service = service_fn(async |request| {
                patience.asked();
                let answer = app.answer(&request).await;
                if !answer.body().is_whole() {
                    patience.listens();
                }
                Ok::<_, Infallible>(answer)
            });
            let connection = http1::Builder::new()
                .pipeline_flush(true)
                .max_buf_size(HEAD_LEN_MAX)
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(socket), service);
            tokio::select! {
                biased;
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended");
                    }
                }
                () = patience.ends(SILENCE_MAX) => tracing::debug!("asked for nothing for too long"),
            }
            drop(permit);
        });
    }
}
