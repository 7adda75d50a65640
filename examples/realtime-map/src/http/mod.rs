//! The road out: HTTP/1.1 straight on hyper, because `/vehicle` is asked a hundred thousand times a second and needs no framework.
//!
//! `routes` decides, `body` carries, `problem` refuses, `assets` are the page. State lives in actors; nothing is cached here.

mod assets;
mod body;
mod problem;
mod query;
mod routes;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub(crate) use routes::App;

/// Connections at once; more wait in the listen queue.
const CONNECTIONS_MAX: usize = 10_000;
/// A request's head; ours need a few hundred bytes.
const HEAD_LEN_MAX: usize = 16 * 1_024;
/// A client that has not sent a whole head by then is not going to.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
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
            let service = service_fn(|request| {
                let app = app.clone();
                async move { Ok::<_, Infallible>(app.answer(&request).await) }
            });
            let connection = http1::Builder::new()
                .pipeline_flush(true)
                .max_buf_size(HEAD_LEN_MAX)
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME_MAX)
                .serve_connection(TokioIo::new(socket), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
            drop(permit);
        });
    }
}
