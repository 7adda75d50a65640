//! The payload:
//! `{"VP":{"desi":"550","tst":"2026-01-01T12:00:00.000Z","spd":13.7,"hdg":352,"lat":60.17,"long":24.94,…}}`.
//!
//! Strings are borrowed from the bytes; nothing is allocated for a well-formed message. Fields that
//! the map does not show are passed over, unknown ones too, so that the format may grow.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Line, PAYLOAD_LEN_MAX};
use crate::geo::Place;

/// Faster than any train; beyond it a sensor is broken.
const SPEED_MPS_MAX: f64 = 120.0;

/// What is used of a payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Position {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Where.
    pub(crate) place: Place,
    /// Centimetres per second.
    pub(crate) speed_cm_s: Option<u16>,
    /// Compass degrees.
    pub(crate) heading_deg: Option<u16>,
    /// Seconds ahead of the timetable.
    pub(crate) delay_s: i16,
    /// Line shown to passengers.
    pub(crate) line: Line,
}

/// Why a payload is refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum PayloadError {
    /// Too long.
    #[error("has {0} bytes, more than {PAYLOAD_LEN_MAX}")]
    TooLong(usize),
    /// Not the JSON expected.
    #[error("is not the JSON of a vehicle position: {0}")]
    NotJson(String),
    /// Not a time.
    #[error("tst is not a UTC time such as 2026-01-01T12:00:00.000Z")]
    BadTime,
    /// Not on the globe.
    #[error("lat and long name no place on the globe")]
    OffTheGlobe,
    /// Out of range.
    #[error("{0} is out of range")]
    OutOfRange(&'static str),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "VP", borrow)]
    vp: Fields<'a>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    tst: Cow<'a, str>,
    #[serde(borrow, default)]
    desi: Option<Cow<'a, str>>,
    #[serde(default)]
    spd: Option<f64>,
    #[serde(default)]
    hdg: Option<f64>,
    #[serde(default)]
    lat: Option<f64>,
    #[serde(default)]
    long: Option<f64>,
    #[serde(default)]
    dl: Option<i64>,
}

impl Position {
    /// Reads a payload; `None` if the vehicle does not know where it is.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(crate) fn parse(payload: &[u8]) -> Result<Option<Self>, PayloadError> {
        if payload.len() > PAYLOAD_LEN_MAX {
            return Err(PayloadError::TooLong(payload.len()));
        }
        let Envelope { vp } = serde_json::from_slice(payload)
            .map_err(|error| PayloadError::NotJson(error.to_string()))?;
        let at_ms = parse_timestamp_ms(&vp.tst).ok_or(PayloadError::BadTime)?;
        let (Some(lat), Some(lon)) = (vp.lat, vp.long) else { return Ok(None) };
        let place = Place::from_degrees(lat, lon).ok_or(PayloadError::OffTheGlobe)?;
        let speed_cm_s = match vp.spd {
            Some(speed) if (0.0..=SPEED_MPS_MAX).contains(&speed) => {
                Some((speed * 100.0).round() as u16)
            }
            Some(_) => return Err(PayloadError::OutOfRange("spd")),
            None => None,
        };
        let heading_deg = match vp.hdg {
            Some(heading) if (0.0..=360.0).contains(&heading) => Some(heading as u16 % 360),
            Some(_) => return Err(PayloadError::OutOfRange("hdg")),
            None => None,
        };
        let delay_s = vp.dl.unwrap_or(0).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        let line = Line::new(vp.desi.as_deref().unwrap_or_default());
        Ok(Some(Self { at_ms, place, speed_cm_s, heading_deg, delay_s, line }))
    }
}

/// Reads `YYYY-MM-DDThh:mm:ss[.fraction]Z` as milliseconds since 1970.
pub(crate) fn parse_timestamp_ms(text: &str) -> Option<u64> {
    let bytes = text.strip_suffix('Z')?.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if bytes.len() < 19 || separators.iter().any(|&(at, separator)| bytes[at] != separator) {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_u64, |value, byte| {
            byte.is_ascii_digit().then(|| value * 10 + u64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !in_range {
        return None;
    }
    let days = days_since_1970(year, month, day);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000 + milliseconds(&bytes[19..])?)
}

fn milliseconds(fraction: &[u8]) -> Option<u64> {
    let Some((dot, digits)) = fraction.split_first() else { return Some(0) };
    if *dot != b'.' || digits.is_empty() || digits.len() > 9 {
        return None;
    }
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| digits.get(at).map_or(0, |byte| u64::from(byte - b'0'));
    Some(digit(0) * 100 + digit(1) * 10 + digit(2))
}

/// Days in the proleptic Gregorian calendar, counted in 400-year eras of years that begin in March
/// (H. Hinnant, "chrono-compatible low-level date algorithms").
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
