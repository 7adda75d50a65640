//! Plays the bots of one socket: sends what is due in one message, takes answers as they come.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::Barrier;

use super::Options;
use super::bot::{Bot, Tally};
use super::client::Client;
use crate::place::{PlayerId, REGIONS, RegionId};
use crate::wire::{Command, Notice};

/// How long answers may take after the last act.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// How far a bot may be behind before it leaves turns out: catching up forever would be another load than asked for.
const BEHIND_MAX: Duration = Duration::from_millis(500);
/// Joins sent in one message.
const JOINS_AT_ONCE: usize = 10;

/// Where all sockets wait for each other.
pub(super) struct Gates {
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
    let mut client = Client::connect(options.address).await?;
    let joined = join(&mut client, number, count).await?;
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
    gates.finish.wait().await;
    Ok((drive.bots.into_values().collect(), drive.tally))
}

async fn join(client: &mut Client, number: u32, count: u32) -> Result<Vec<crate::wire::Joined>> {
    // Players of one socket start near each other, so that it watches few regions; sockets spread over the world.
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
        while Instant::now() < end {
            self.send_due().await?;
            let next = self.ready.peek().map_or(end, |Reverse((due, _))| (*due).min(end));
            self.take_until(next).await?;
        }
        let last = Instant::now() + ANSWERS_WITHIN;
        while self.waiting > 0 && Instant::now() < last {
            self.take_until(last).await?;
        }
        Ok(())
    }

    async fn send_due(&mut self) -> Result<()> {
        let now = Instant::now();
        let mut acts = Vec::new();
        while let Some(Reverse((due, player))) = self.ready.peek().copied() {
            if due > now {
                break;
            }
            self.ready.pop();
            let Some(bot) = self.bots.get_mut(&player) else { continue };
            while now.saturating_duration_since(bot.due) > BEHIND_MAX {
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

    /// Takes one message if one comes before `until`.
    async fn take_until(&mut self, until: Instant) -> Result<()> {
        match tokio::time::timeout_at(until.into(), self.client.next()).await {
            Err(_) => return Ok(()),
            Ok(notice) => self.take(notice?),
        }
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
            Notice::View(..) | Notice::Snapshot { .. } => self.tally.views += 1,
            Notice::Fault(text) => self.tally.errors.push(text.into()),
            Notice::Joined(_) => {}
        }
    }
}
