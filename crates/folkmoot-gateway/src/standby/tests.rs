//! Sockets that are written to by several, over TCP: full ones, slow readers, ends in the middle.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::StreamExt;
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::write;
use crate::carrier::{Carrier, Carriers};
use crate::frame::CLOSE;
use crate::outbox::Outbox;

/// Of both ends, so that a socket is full after a few messages. The kernel takes somewhat more.
const BUFFER_BYTES: u32 = 4 * 1024;
/// Of many at once: whose window closes with so little in it may wait minutes for a probe of TCP.
const BUFFER_BYTES_OF_MANY: u32 = 64 * 1024;

/// A connection as a server has it, and its client.
struct Line {
    outbox: Arc<Outbox>,
    writing: JoinHandle<u16>,
    client: WebSocketStream<TcpStream>,
    _read: OwnedReadHalf,
}

impl Line {
    async fn open(format: Format, queue_bytes_max: usize) -> Self {
        let sockets = sockets(BUFFER_BYTES).await;
        Self::over(sockets, format, queue_bytes_max, Carriers::new().for_newcomer()).await
    }

    async fn over(
        (server, client): (TcpStream, TcpStream),
        format: Format,
        queue_bytes_max: usize,
        carrier: Arc<Carrier>,
    ) -> Self {
        let (read, write_half) = server.into_split();
        let write_half = Arc::new(write_half);
        let outbox = Outbox::over(write_half.clone(), format, queue_bytes_max, carrier);
        let writing = tokio::spawn({
            let outbox = outbox.clone();
            async move { write(&write_half, &outbox).await }
        });
        let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
        Self { outbox, writing, client, _read: read }
    }

    /// Lines of text that come, one by one, and the code of the end.
    async fn read_all(&mut self) -> (Vec<String>, u16) {
        let mut lines = Vec::new();
        loop {
            match self.client.next().await.unwrap().unwrap() {
                Message::Text(text) => lines.extend(text.lines().map(str::to_owned)),
                Message::Close(Some(frame)) => return (lines, frame.code.into()),
                other => panic!("{other:?}"),
            }
        }
    }
}

async fn sockets(buffer_bytes: u32) -> (TcpStream, TcpStream) {
    let listening = TcpSocket::new_v4().unwrap();
    listening.set_send_buffer_size(buffer_bytes).unwrap();
    listening.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener: TcpListener = listening.listen(1).unwrap();
    let connecting = TcpSocket::new_v4().unwrap();
    connecting.set_recv_buffer_size(buffer_bytes).unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, client) = tokio::join!(listener.accept(), connecting.connect(address));
    (accepted.unwrap().0, client.unwrap())
}

/// A message that says its number, of so many bytes.
fn numbered(number: usize, len: usize) -> Bytes {
    let mut text = number.to_string();
    text.extend(std::iter::repeat_n('.', len.saturating_sub(text.len())));
    text.into()
}

fn numbers(lines: &[String]) -> Vec<usize> {
    lines.iter().map(|line| line.trim_end_matches('.').parse().unwrap()).collect()
}

/// Until the socket is full and the write half waits for it.
async fn fill(line: &Line, len: usize) -> usize {
    let mut said = 0;
    while !line.outbox.is_stuck() {
        line.outbox.push(numbered(said, len));
        said += 1;
        tokio::task::yield_now().await;
    }
    said
}

#[tokio::test]
async fn what_a_full_socket_did_not_take_comes_whole_and_in_order_later() {
    for len in [10, 500, 40_000] {
        let mut line = Line::open(Format::Json, 1 << 22).await;
        let mut said = fill(&line, len).await;
        // Behind what waits, though the one who says it finds the socket.
        for _ in 0..20 {
            line.outbox.push(numbered(said, len));
            line.outbox.reply(numbered(said + 1, len)).await;
            said += 2;
        }
        line.outbox.close(DisconnectCode::Shutdown);
        let (lines, code) = line.read_all().await;
        assert_eq!(numbers(&lines), (0..said).collect::<Vec<_>>(), "messages of {len}");
        assert_eq!((code, line.writing.await.unwrap()), (3001, 3001));
    }
}

#[tokio::test]
async fn events_are_written_directly_again_once_a_full_socket_is_read() {
    let mut line = Line::open(Format::Json, 1 << 20).await;
    let said = fill(&line, 500).await;
    let mut heard = Vec::new();
    while heard.len() < said {
        let Message::Text(text) = line.client.next().await.unwrap().unwrap() else { panic!() };
        heard.extend(text.lines().map(str::to_owned));
    }
    while line.outbox.is_stuck() {
        tokio::task::yield_now().await;
    }
    line.outbox.push(numbered(said, 0));
    line.outbox.close(DisconnectCode::Shutdown);
    let (lines, _) = line.read_all().await;
    heard.extend(lines);
    assert_eq!(numbers(&heard), (0..=said).collect::<Vec<_>>());
}

#[tokio::test]
async fn replies_pings_and_events_keep_one_order() {
    let mut line = Line::open(Format::Json, 1 << 20).await;
    let speaking = tokio::spawn({
        let outbox = line.outbox.clone();
        async move {
            for number in 0..3_000 {
                match number % 3 {
                    0 => outbox.reply(numbered(number, 300)).await,
                    1 => outbox.push(numbered(number, 300)),
                    _ => outbox.reply_now(numbered(number, 300)),
                }
                if number % 50 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            outbox.close(DisconnectCode::Shutdown);
        }
    });
    let (lines, code) = line.read_all().await;
    speaking.await.unwrap();
    assert_eq!(numbers(&lines), (0..3_000).collect::<Vec<_>>());
    assert_eq!(code, 3001);
}

#[tokio::test]
async fn a_pong_stands_between_whole_frames() {
    let mut line = Line::open(Format::Json, 1 << 20).await;
    let said = fill(&line, 500).await;
    line.outbox.give(Bytes::from_static(&[0x8A, 1, b'!']));
    line.outbox.close(DisconnectCode::Shutdown);
    let (mut lines, mut pongs) = (Vec::new(), 0);
    loop {
        match line.client.next().await.unwrap().unwrap() {
            Message::Text(text) => lines.extend(text.lines().map(str::to_owned)),
            Message::Pong(data) => pongs += usize::from(data == b"!"[..]),
            Message::Close(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((numbers(&lines), pongs), ((0..said).collect::<Vec<_>>(), 1));
}

#[tokio::test]
async fn who_does_not_read_gets_a_whole_frame_and_then_the_reason() {
    let mut line = Line::open(Format::Json, 20_000).await;
    fill(&line, 500).await;
    while !line.outbox.is_closing() {
        line.outbox.push(numbered(0, 5_000));
    }
    let (lines, code) = line.read_all().await;
    assert!(lines.iter().all(|line| line.len() == 500), "{lines:?}");
    assert_eq!((code, line.writing.await.unwrap()), (3008, 3008));
}

#[tokio::test]
async fn nothing_but_the_frame_under_way_precedes_the_answer_to_a_close() {
    let mut line = Line::open(Format::Json, 1 << 20).await;
    let said = fill(&line, 500).await;
    line.outbox.push(numbered(said, 500));
    line.outbox.give(Bytes::from_static(&[CLOSE, 2, 3, 232]));
    line.outbox.close(DisconnectCode::ConnectionClosed);
    let (lines, code) = line.read_all().await;
    let heard = numbers(&lines);
    assert!(heard.len() <= said && heard == (0..heard.len()).collect::<Vec<_>>(), "{heard:?}");
    assert_eq!(code, 1_000);
    let mut end = Vec::new();
    line.client.get_mut().read_to_end(&mut end).await.unwrap();
    assert_eq!(end, b"");
}

#[tokio::test]
async fn a_socket_is_closed_though_somebody_keeps_its_outbox() {
    let mut line = Line::open(Format::Json, 1 << 20).await;
    line.outbox.close(DisconnectCode::Shutdown);
    line.writing.await.unwrap();
    let mut end = Vec::new();
    line.client.get_mut().read_to_end(&mut end).await.unwrap();
    assert_eq!(end[0], CLOSE);
    line.outbox.push(numbered(0, 0));
}

#[tokio::test]
async fn a_client_that_is_gone_ends_its_connection() {
    let line = Line::open(Format::Json, 1 << 20).await;
    drop(line.client);
    while !line.outbox.is_closing() {
        line.outbox.push(numbered(0, 500));
        tokio::task::yield_now().await;
    }
    line.writing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_connections_told_from_many_threads_hear_all_in_order() {
    // More than the buffers of both ends take, so that sockets are full meanwhile.
    const SAID: usize = 3_000;
    let carriers = Carriers::new();
    let mut lines = Vec::new();
    for _ in 0..50 {
        let (sockets, carrier) = (sockets(BUFFER_BYTES_OF_MANY).await, carriers.for_newcomer());
        lines.push(Line::over(sockets, Format::Json, 1 << 22, carrier).await);
    }
    let outboxes: Vec<_> = lines.iter().map(|line| line.outbox.clone()).collect();
    let telling = outboxes.chunks(10).map(|outboxes| {
        let outboxes = outboxes.to_vec();
        tokio::spawn(async move {
            let mut were_full = 0;
            for number in 0..SAID {
                outboxes.iter().for_each(|outbox| outbox.push(numbered(number, 100)));
                if number % 7 == 0 {
                    were_full += outboxes.iter().filter(|outbox| outbox.is_stuck()).count();
                    tokio::task::yield_now().await;
                }
            }
            outboxes.iter().for_each(|outbox| outbox.close(DisconnectCode::Shutdown));
            were_full
        })
    });
    let telling: Vec<_> = telling.collect();
    for line in &mut lines {
        let (heard, _) = line.read_all().await;
        assert_eq!(numbers(&heard), (0..SAID).collect::<Vec<_>>());
    }
    let mut were_full = 0;
    for told in telling {
        were_full += told.await.unwrap();
    }
    assert!(were_full > 0, "no socket was full");
}
