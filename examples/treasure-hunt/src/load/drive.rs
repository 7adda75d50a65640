//! Plays the bots of one socket: sends what is due in one message, takes answers as they come.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::{Barrier, Semaphore};
use tokio::time::Sleep;

use super::Options;
use super::bot::{Bot, Tally, micros};
use super::client::Client;
use crate::place::{PlayerId, REGIONS, RegionId};
use crate::wire::{Command, Notice};

/// How long answers may take after the last act.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// How far a bot may be behind before it leaves turns out: catching up forever would be another
/// load than asked for.
const BEHIND_MAX: Duration = Duration::from_millis(500);
/// Joins sent in one message.
const JOINS_AT_ONCE: usize = 10;

/// Where all sockets wait for each other.
#[derive(Clone)]
pub(super) struct Gates {
    /// Who is connecting and joining; the others wait, because a storm of them is not what is
    /// measured.
    pub(super) door: Arc<Semaphore>,
    pub(super) start: Arc<Barrier>,
    pub(super) finish: Arc<Barrier>,
}

struct Drive {
    client: Client,
    bots: HashMap<PlayerId, Bot>,
    /// Bots that do not wait for an answer, by when their next act is due.
    ready: BinaryHeap<Reverse<(Instant, PlayerId)>>,
    waiting: usize,
    interval: Duration,
    tally: Tally,
}

pub(super) async fn socket(
    options: Options,
    number: u32,
    count: u32,
    gates: Gates,
) -> Result<(Vec<Bot>, Tally)> {
    let entering = gates.door.acquire().await?;
    let mut client = Client::connect(options.address).await?;
    let joined = join(&mut client, number, count).await?;
    drop(entering);
    client.reads_views = false;
    gates.start.wait().await;
    let interval = Duration::from_secs_f64(1.0 / options.rate);
    let start = Instant::now();
    let mut drive = Drive {
        client,
        bots: HashMap::new(),
        ready: BinaryHeap::new(),
        waiting: 0,
        interval,
        tally: Tally::default(),
    };
    let all = f64::from(options.players);
    for (index, joined) in joined.iter().enumerate() {
        // Spread over the interval, across all sockets.
        let place = f64::from(number) * f64::from(options.players_per_socket) + index as f64;
        let due = start + interval.mul_f64(place * 0.618_033_988 % 1.0 * (all - 1.0) / all);
        drive.ready.push(Reverse((due, joined.state.player)));
        drive.bots.insert(joined.state.player, Bot::new(joined, due));
    }
    let played = drive.play(start + options.duration).await;
    if let Err(why) = played {
        drive.tally.broken += 1;
        drive.tally.errors.push(format!("{why:#}"));
    }
    drive.tally.views = drive.client.views;
    gates.finish.wait().await;
    Ok((drive.bots.into_values().collect(), drive.tally))
}

async fn join(client: &mut Client, number: u32, count: u32) -> Result<Vec<crate::wire::Joined>> {
    // Players of one socket start near each other, so that it watches few regions; sockets spread
    // over the world.
    let near = u16::try_from((number.wrapping_mul(97)) % u32::from(REGIONS)).ok();
    let near = near.and_then(RegionId::new);
    let mut joined = Vec::new();
    let tags: Vec<u32> = (0..count).collect();
    for tags in tags.chunks(JOINS_AT_ONCE) {
        let name = |tag: u32| format!("bot {number}.{tag}").into();
        let joins: Vec<_> =
            tags.iter().map(|tag| Command::Join { tag: *tag, near, name: name(*tag) }).collect();
        client.send(&joins).await?;
        for _ in tags {
            match client.answer().await.context("waiting for a join")? {
                Notice::Joined(player) => joined.push(player),
                other => bail!("a join is answered with {other:?}"),
            }
        }
    }
    Ok(joined)
}

impl Drive {
    async fn play(&mut self, end: Instant) -> Result<()> {
        let mut alarm = pin!(tokio::time::sleep_until(Instant::now().into()));
        loop {
            let now = Instant::now();
            if now >= end {
                break;
            }
            self.send_due(now).await?;
            // While all wait for answers: when the next act could be due at the earliest.
            let next = self.ready.peek().map_or(now + self.interval, |Reverse((due, _))| *due);
            self.take_until(next.min(end), alarm.as_mut()).await?;
        }
        let last = Instant::now() + ANSWERS_WITHIN;
        while self.waiting > 0 && Instant::now() < last {
            self.take_until(last, alarm.as_mut()).await?;
        }
        Ok(())
    }

    async fn send_due(&mut self, now: Instant) -> Result<()> {
        let mut acts = Vec::new();
        while let Some(Reverse((due, player))) = self.ready.peek().copied() {
            if due > now {
                break;
            }
            self.ready.pop();
            let Some(bot) = self.bots.get_mut(&player) else { continue };
            while now.saturating_duration_since(bot.due) > BEHIND_MAX {
                // It counts with the time it has waited at least, or a stall would hide what it
                // kept from being sent.
                self.tally.latencies_us.push(micros(now.saturating_duration_since(bot.due)));
                bot.due += self.interval;
                self.tally.skipped += 1;
            }
            acts.push(Command::Act(bot.act(self.interval)));
        }
        if acts.is_empty() {
            return Ok(());
        }
        self.waiting += acts.len();
        self.client.send(&acts).await
    }

    /// Takes what comes; returns after a message, or at `until`.
    async fn take_until(&mut self, until: Instant, mut alarm: Pin<&mut Sleep>) -> Result<()> {
        // Setting an alarm costs more than one that rings too early.
        if alarm.is_elapsed() || until < alarm.deadline().into_std() {
            alarm.as_mut().reset(until.into());
        }
        poll_fn(|cx| match self.client.poll_read(cx) {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => alarm.as_mut().poll(cx).map(Ok),
        })
        .await?;
        while let Some(notice) = self.client.take_ready() {
            self.take(notice);
        }
        Ok(())
    }

    fn take(&mut self, notice: Notice) {
        let now = Instant::now();
        match notice {
            Notice::Done(outcome) => {
                let Some(bot) = self.bots.get_mut(&outcome.player) else { return };
                self.tally.latencies_us.push(bot.done(&outcome, now));
                self.tally.done += 1;
                self.ready.push(Reverse((bot.due, outcome.player)));
                self.waiting -= 1;
            }
            Notice::Refused { player, code, text, .. } => {
                let player = PlayerId(player);
                let Some(bot) = self.bots.get_mut(&player) else { return };
                if bot.refused(code, now) {
                    self.tally.refused += 1;
                } else {
                    self.tally.errors.push(text.into());
                }
                self.ready.push(Reverse((bot.due, player)));
                self.waiting -= 1;
            }
            Notice::View(..) | Notice::Snapshot { .. } | Notice::Joined(_) => {}
            Notice::Fault(text) => self.tally.errors.push(text.into()),
        }
    }
}
