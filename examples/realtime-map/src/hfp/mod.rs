//! The HSL high-frequency positioning format: a topic that says who and where to, and a JSON
//! payload that says where.
//!
//! Source: "High-frequency positioning", digitransit.fi developer documentation. Only vehicle
//! position events (`vp`) are read. Bytes come from strangers: nothing here panics, allocates
//! without bound or keeps what it refuses.

mod payload;
mod topic;
mod vehicle_id;

#[cfg(test)]
pub(crate) use payload::parse_timestamp_ms;
pub(crate) use payload::{PayloadError, Position};
pub(crate) use topic::{Mode, Topic, TopicError};
pub(crate) use vehicle_id::VehicleId;

use crate::geo::Place;

/// Bytes in the longest topic read; the longest real ones have about 130.
pub(crate) const TOPIC_LEN_MAX: usize = 512;
/// Bytes in the longest payload read; real ones have about 330.
pub(crate) const PAYLOAD_LEN_MAX: usize = 4_096;
/// Bytes of a line's name that are kept.
pub(crate) const LINE_LEN_MAX: usize = 8;

/// One position of one vehicle, as its twin gets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report {
    /// When the vehicle measured it, milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Where.
    pub(crate) place: Place,
    /// Centimetres per second, if the vehicle says.
    pub(crate) speed_cm_s: Option<u16>,
    /// Compass degrees, if the vehicle says.
    pub(crate) heading_deg: Option<u16>,
    /// Seconds ahead of the timetable; negative when late.
    pub(crate) delay_s: i16,
    /// Kind of vehicle.
    pub(crate) mode: Mode,
    /// 1 or 2; 0 when unknown.
    pub(crate) direction: u8,
    /// Line shown to passengers.
    pub(crate) line: Line,
}

/// The line number shown to passengers, such as `550` or `M1`; kept in place.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Line {
    bytes: [u8; LINE_LEN_MAX],
    len: u8,
}

/// Why a message is not a report.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum MessageError {
    /// The topic.
    #[error("topic: {0}")]
    Topic(#[from] TopicError),
    /// The payload.
    #[error("payload: {0}")]
    Payload(#[from] PayloadError),
}

/// Reads one MQTT message; `None` if the vehicle sent an event without a position.
///
/// # Errors
/// What is wrong, and with which part.
pub(crate) fn read_message(
    topic: &[u8],
    payload: &[u8],
) -> Result<Option<(VehicleId, Report)>, MessageError> {
    let topic = Topic::parse(topic)?;
    let Some(position) = Position::parse(payload)? else { return Ok(None) };
    let report = Report {
        at_ms: position.at_ms,
        place: position.place,
        speed_cm_s: position.speed_cm_s,
        heading_deg: position.heading_deg,
        delay_s: position.delay_s,
        mode: topic.mode,
        direction: topic.direction,
        line: position.line,
    };
    Ok(Some((topic.vehicle, report)))
}

impl Line {
    /// Keeps as many whole characters as fit.
    pub(crate) fn new(text: &str) -> Self {
        let mut line = Self::default();
        for c in text.chars().filter(|c| !c.is_control()) {
            let end = usize::from(line.len) + c.len_utf8();
            if end > LINE_LEN_MAX {
                break;
            }
            c.encode_utf8(&mut line.bytes[usize::from(line.len)..end]);
            line.len = end as u8;
        }
        line
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests;
