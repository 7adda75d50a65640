//! What came of a run, as it is printed.

use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::histogram::Histogram;

/// A run's times and counts; as JSON, times are in milliseconds.
#[derive(Debug, Default, Serialize)]
pub struct LoadReport {
    /// Connections, and how long it took until all had subscribed.
    pub(super) sockets: usize,
    #[serde(serialize_with = "milliseconds")]
    pub(super) entered_after: Duration,
    /// Memory of the server for each connection.
    pub(super) bytes_per_socket: Option<u64>,
    /// Nothing was said without it.
    pub(super) said: Option<Said>,
    pub(super) storm: Option<Storm>,
    /// Only where connections may go on elsewhere.
    pub(super) resumed: Option<Resumed>,
    pub(super) troubles: Troubles,
}

#[derive(Debug, Serialize)]
pub(super) struct Said {
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) delivered: u64,
    /// Until the last delivery.
    #[serde(serialize_with = "milliseconds")]
    pub(super) took: Duration,
    pub(super) to_acknowledgement: Times,
    pub(super) to_delivery: Times,
    pub(super) to_last: Times,
}

#[derive(Debug, Serialize)]
pub(super) struct Storm {
    pub(super) missed: u64,
    pub(super) retried: u64,
    #[serde(serialize_with = "milliseconds")]
    pub(super) took: Duration,
    pub(super) to_return: Times,
}

/// Connections that ended and went on at another node.
#[derive(Debug, Serialize)]
pub(super) struct Resumed {
    pub(super) connections: u64,
    pub(super) retried: u64,
    /// From the end of one until the next has all that was said meanwhile.
    pub(super) pause: Times,
}

/// What must not happen.
#[derive(Debug, Default, Serialize)]
pub(super) struct Troubles {
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) skipped: u64,
    pub(super) unanswered: u64,
    pub(super) broken: u64,
    pub(super) unrecovered: u64,
    pub(super) first: Option<String>,
}

/// What half of all, 99 %, 99.9 % and all took at most.
#[derive(Debug)]
pub(super) struct Times([Option<Duration>; 4]);

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.map(|time| time.map(in_milliseconds)).serialize(serializer)
    }
}

fn in_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn milliseconds<S: Serializer>(
    time: &Duration,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    in_milliseconds(*time).serialize(serializer)
}

impl From<&Histogram> for Times {
    fn from(histogram: &Histogram) -> Self {
        Self([50.0, 99.0, 99.9, 100.0].map(|percent| histogram.percentile(percent)))
    }
}

impl LoadReport {
    /// Whether nothing was lost, doubled or out of order, and every connection stayed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let Troubles { lost, doubled, skipped, unanswered, broken, unrecovered, .. } =
            &self.troubles;
        [lost, doubled, skipped, unanswered, broken, unrecovered].into_iter().all(|n| *n == 0)
    }
}

impl Display for LoadReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let Self { sockets, entered_after, .. } = self;
        writeln!(out, "connections      {sockets} in {:.1} s", entered_after.as_secs_f64())?;
        if let Some(bytes) = self.bytes_per_socket {
            writeln!(out, "memory           {:.1} KiB each", bytes as f64 / 1024.0)?;
        }
        if let Some(said) = &self.said {
            said.fmt(out)?;
        }
        if let Some(storm) = &self.storm {
            storm.fmt(out)?;
        }
        if let Some(Resumed { connections, retried, pause }) = &self.resumed {
            writeln!(out, "resumed          {connections}, tried again {retried} times")?;
            writeln!(out, "pause            {pause}")?;
        }
        self.troubles.fmt(out)
    }
}

impl Display for Said {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let Self { sent, acknowledged, refused, delivered, .. } = self;
        let seconds = self.took.as_secs_f64().max(f64::MIN_POSITIVE);
        let each_second = |count: &u64| *count as f64 / seconds;
        let rate = each_second(acknowledged);
        writeln!(
            out,
            "messages         {sent} sent, {acknowledged} acknowledged ({rate:.0}/s), \
             {refused} refused"
        )?;
        writeln!(out, "deliveries       {delivered} ({:.0}/s)", each_second(delivered))?;
        writeln!(out, "acknowledgement  {}", self.to_acknowledgement)?;
        writeln!(out, "delivery         {}", self.to_delivery)?;
        writeln!(out, "last receiver    {}", self.to_last)
    }
}

impl Display for Storm {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let Self { missed, retried, took, to_return } = self;
        let took = took.as_secs_f64();
        writeln!(out, "reconnection     all back after {took:.2} s with {missed} missed events")?;
        writeln!(out, "return           {to_return}")?;
        if *retried > 0 {
            writeln!(out, "tried again      {retried} connections that broke on their way in")?;
        }
        Ok(())
    }
}

impl Display for Troubles {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let Self { lost, doubled, skipped, unanswered, broken, unrecovered, first } = self;
        write!(
            out,
            "lost {lost} · doubled {doubled} · gaps {skipped} · unanswered {unanswered} · \
             broken {broken} · not recovered {unrecovered}"
        )?;
        match first {
            Some(first) => write!(out, "\nfirst trouble: {first}"),
            None => Ok(()),
        }
    }
}

impl Display for Times {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for (name, time) in ["p50", "p99", "p99.9", "max"].into_iter().zip(self.0) {
            match time {
                Some(time) => write!(out, "{name} {:.2} ms  ", in_milliseconds(time))?,
                None => write!(out, "{name} –  ")?,
            }
        }
        Ok(())
    }
}
