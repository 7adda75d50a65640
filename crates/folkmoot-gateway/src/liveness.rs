//! When to ping a connection and when to give it up, as a value: times come in, actions go out.
//!
//! The server pings, the client answers with an empty command. A connection that has not said who
//! it is within the connect timeout holds a socket for nobody and is closed as stale.

use std::time::Duration;

use folkmoot_protocol::DisconnectCode;

use crate::upgrade::Settings;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    Ping,
    Close(DisconnectCode),
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Waits for the connect command.
    Opening { close_at: Duration },
    /// Connected; the last ping was answered.
    Quiet { ping_at: Duration },
    /// A ping is out.
    Pinged { close_at: Duration },
}

/// All times are since the socket was opened.
#[derive(Debug)]
pub(crate) struct Liveness {
    ping: Duration,
    /// `None`: there is no answer to a ping.
    pong_timeout: Option<Duration>,
    phase: Phase,
}

impl Liveness {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            ping: settings.ping,
            pong_timeout: Some(settings.pong_timeout),
            phase: Phase::Opening { close_at: settings.connect_timeout },
        }
    }

    /// For a client that cannot answer.
    pub(crate) fn unanswered(self) -> Self {
        Self { pong_timeout: None, ..self }
    }

    /// When [`Self::due`] has something to say.
    pub(crate) fn deadline(&self) -> Duration {
        match self.phase {
            Phase::Opening { close_at } | Phase::Pinged { close_at } => close_at,
            Phase::Quiet { ping_at } => ping_at,
        }
    }

    /// The client has said who it is. The first ping comes at a random moment of the first
    /// interval, of which `part` (0 to 1) is passed: after a restart all connect at once, and
    /// would be pinged at once for as long as they stay.
    pub(crate) fn connected(&mut self, now: Duration, part: f64) {
        self.phase = Phase::Quiet { ping_at: now + self.ping.mul_f64(part) };
    }

    /// Any frame proves life; a pong is one.
    pub(crate) fn heard(&mut self, now: Duration) {
        if let Phase::Pinged { .. } = self.phase {
            self.phase = Phase::Quiet { ping_at: now + self.ping };
        }
    }

    pub(crate) fn due(&mut self, now: Duration) -> Due {
        if now < self.deadline() {
            return Due::Nothing;
        }
        match self.phase {
            Phase::Opening { .. } => Due::Close(DisconnectCode::Stale),
            Phase::Pinged { .. } => Due::Close(DisconnectCode::NoPong),
            Phase::Quiet { .. } => {
                self.phase = match self.pong_timeout {
                    Some(timeout) => Phase::Pinged { close_at: now + timeout },
                    None => Phase::Quiet { ping_at: now + self.ping },
                };
                Due::Ping
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn liveness() -> Liveness {
        Liveness::new(&Settings {
            ping: 25 * SECOND,
            pong_timeout: 8 * SECOND,
            connect_timeout: 10 * SECOND,
            outgoing_queue_bytes_max: 1,
        })
    }

    #[test]
    fn who_never_connects_is_closed_as_stale() {
        let mut liveness = liveness();
        liveness.heard(9 * SECOND);
        assert_eq!(liveness.due(9 * SECOND), Due::Nothing);
        assert_eq!(liveness.due(10 * SECOND), Due::Close(DisconnectCode::Stale));
    }

    #[test]
    fn pings_go_on_while_they_are_answered() {
        let mut liveness = liveness();
        liveness.connected(SECOND, 1.0);
        assert_eq!(liveness.due(25 * SECOND), Due::Nothing);
        assert_eq!(liveness.due(26 * SECOND), Due::Ping);
        assert_eq!(liveness.due(26 * SECOND), Due::Nothing);
        liveness.heard(27 * SECOND);
        assert_eq!(liveness.deadline(), 52 * SECOND);
        assert_eq!(liveness.due(52 * SECOND), Due::Ping);
    }

    #[test]
    fn first_pings_are_spread_over_the_interval() {
        for (part, at) in [(0.0, 1_000), (0.5, 13_500), (1.0, 26_000)] {
            let mut liveness = liveness();
            liveness.connected(SECOND, part);
            assert_eq!(liveness.deadline(), Duration::from_millis(at));
        }
    }

    #[test]
    fn who_cannot_answer_is_pinged_for_ever() {
        let mut liveness = liveness().unanswered();
        liveness.connected(SECOND, 1.0);
        assert_eq!(liveness.due(26 * SECOND), Due::Ping);
        assert_eq!(liveness.due(50 * SECOND), Due::Nothing);
        assert_eq!(liveness.due(51 * SECOND), Due::Ping);
    }

    #[test]
    fn an_unanswered_ping_ends_the_connection() {
        let mut liveness = liveness();
        liveness.connected(SECOND, 1.0);
        assert_eq!(liveness.due(26 * SECOND), Due::Ping);
        assert_eq!(liveness.due(34 * SECOND), Due::Close(DisconnectCode::NoPong));
    }
}
