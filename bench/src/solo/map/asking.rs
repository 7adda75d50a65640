//! Asks as wrk does, for machines without it: many connections, each asks again once it is
//! answered.
//!
//! One thread of its own runtime per half of the connections, so that none waits for another core.
//! Latency is closed-loop, as wrk's is: for comparing servers, not for promising anything to users.

use super::{Answered, CONNECTIONS, VEHICLES};
use anyhow::{Context, Result, bail, ensure};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const THREADS: usize = 2;
/// Bytes of the longest answer; ours have about 400.
const ANSWER_LEN_MAX: usize = 16 * 1_024;

/// Asks for so many seconds.
pub(super) fn ask(address: &str, seconds: f64) -> Result<Answered> {
    let address: SocketAddr = address.parse()?;
    let time = Duration::from_secs_f64(seconds);
    let threads: Vec<_> =
        (0..THREADS).map(|number| thread::spawn(move || run(address, number, time))).collect();
    let mut latencies_us = Vec::new();
    for thread in threads {
        latencies_us.extend(thread.join().expect("asking does not panic")?);
    }
    ensure!(!latencies_us.is_empty(), "{address} answered nothing");
    latencies_us.sort_unstable();
    let p99 = latencies_us[(latencies_us.len() - 1) * 99 / 100];
    Ok(Answered {
        per_second: latencies_us.len() as f64 / seconds,
        p99_ms: f64::from(p99) / 1_000.0,
    })
}

fn run(address: SocketAddr, number: usize, time: Duration) -> Result<Vec<u32>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut asking = JoinSet::new();
        for connection in (number..CONNECTIONS).step_by(THREADS) {
            asking.spawn(one(address, connection, time));
        }
        let mut latencies_us = Vec::new();
        while let Some(asked) = asking.join_next().await {
            latencies_us.extend(asked??);
        }
        Ok(latencies_us)
    })
}

/// One connection, which asks for every vehicle in turn.
async fn one(address: SocketAddr, connection: usize, time: Duration) -> Result<Vec<u32>> {
    let mut stream = TcpStream::connect(address).await.context("connecting")?;
    stream.set_nodelay(true)?;
    let (mut latencies_us, mut answer) = (Vec::new(), Vec::new());
    let end = Instant::now() + time;
    let mut vehicle = connection * 7;
    while Instant::now() < end {
        vehicle = (vehicle + 1) % VEHICLES as usize;
        let request =
            format!("GET /vehicle?id=9000/{vehicle:05} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let asked_at = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        answer.clear();
        while !is_whole(&answer)? {
            ensure!(answer.len() < ANSWER_LEN_MAX, "an answer of more than {ANSWER_LEN_MAX} bytes");
            ensure!(stream.read_buf(&mut answer).await? > 0, "the server closed a connection");
        }
        latencies_us.push(u32::try_from(asked_at.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    Ok(latencies_us)
}

/// Whether head and body have come.
fn is_whole(answer: &[u8]) -> Result<bool> {
    let Some(head_len) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(false);
    };
    let head = std::str::from_utf8(&answer[..head_len])?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("not every vehicle was found: {head}");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    Ok(answer.len() >= head_len + 4 + length.context("an answer without a length")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_the_last_byte_of_its_body() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        for len in 0..answer.len() {
            assert!(!is_whole(&answer[..len]).unwrap());
        }
        assert!(is_whole(answer).unwrap());
        assert!(is_whole(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").is_err());
        assert!(is_whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
