//! The topic:
//! `/hfp/v2/<journey>/<temporal>/<event>/<mode>/<operator>/<vehicle>/<route>/<direction>/<headsign>/…`.
//!
//! It decides who a message is about; the payload's own `oper` may name the operator of the journey
//! instead of the owner.

use super::{TOPIC_LEN_MAX, VehicleId};

/// Levels up to the vehicle number; the later ones may be missing or empty.
const LEVELS_MIN: usize = 9;

/// What is used of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Topic {
    /// Who sent it.
    pub(crate) vehicle: VehicleId,
    /// Kind of vehicle.
    pub(crate) mode: Mode,
    /// 1 or 2; 0 when unknown.
    pub(crate) direction: u8,
}

/// Kinds of vehicle.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub(crate) enum Mode {
    /// Bus.
    Bus,
    /// Tram.
    Tram,
    /// Commuter train.
    Train,
    /// Metro.
    Metro,
    /// Ferry.
    Ferry,
    /// Anything else, or not said.
    #[default]
    Other,
}

/// Why a topic is refused.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum TopicError {
    /// Too long.
    #[error("has {0} bytes, more than {TOPIC_LEN_MAX}")]
    TooLong(usize),
    /// Not text.
    #[error("is not UTF-8")]
    NotUtf8,
    /// Too few levels.
    #[error("has {0} levels, fewer than {LEVELS_MIN}")]
    TooShort(usize),
    /// Another prefix or version.
    #[error("does not begin with /hfp/v2/")]
    OtherPrefix,
    /// Another event than `vp`.
    #[error("is not a vehicle position (vp) event")]
    OtherEvent,
    /// Operator or vehicle number.
    #[error("operator or vehicle number is not a number of at most 4 and 5 digits")]
    BadVehicle,
}

impl Topic {
    /// Reads a topic.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(crate) fn parse(topic: &[u8]) -> Result<Self, TopicError> {
        if topic.len() > TOPIC_LEN_MAX {
            return Err(TopicError::TooLong(topic.len()));
        }
        let topic = std::str::from_utf8(topic).map_err(|_| TopicError::NotUtf8)?;
        let mut levels = topic.split('/');
        let mut head = [""; LEVELS_MIN];
        for (count, level) in head.iter_mut().enumerate() {
            *level = levels.next().ok_or(TopicError::TooShort(count))?;
        }
        let ["", "hfp", "v2", _journey, _temporal, event, mode, operator, number] = head else {
            return Err(TopicError::OtherPrefix);
        };
        if event != "vp" {
            return Err(TopicError::OtherEvent);
        }
        let vehicle = vehicle(operator, number).ok_or(TopicError::BadVehicle)?;
        let direction = match levels.nth(1) {
            Some("1") => 1,
            Some("2") => 2,
            _ => 0,
        };
        Ok(Self { vehicle, mode: Mode::from_level(mode), direction })
    }
}

fn vehicle(operator: &str, number: &str) -> Option<VehicleId> {
    let digits = |text: &str, len_max: usize| {
        let is_number = (1..=len_max).contains(&text.len());
        (is_number && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    VehicleId::new(digits(operator, 4)?, digits(number, 5)?).ok()
}

impl Mode {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [Self; 6] =
        [Self::Bus, Self::Tram, Self::Train, Self::Metro, Self::Ferry, Self::Other];

    fn from_level(level: &str) -> Self {
        match level {
            "bus" | "ubus" | "robot" => Self::Bus,
            "tram" => Self::Tram,
            "train" => Self::Train,
            "metro" => Self::Metro,
            "ferry" => Self::Ferry,
            _ => Self::Other,
        }
    }

    /// Takes a stored number back.
    pub(crate) fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// The level's text.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Bus => "bus",
            Self::Tram => "tram",
            Self::Train => "train",
            Self::Metro => "metro",
            Self::Ferry => "ferry",
            Self::Other => "other",
        }
    }
}
