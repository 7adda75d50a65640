//! What the store's values are in messages between the nodes of one server.

use althing::{Wire, WireError};
use folkmoot_protocol::wire::{from_json, to_json};
use folkmoot_protocol::wire_as;

use super::Upload;
use super::error::{ControlError, ReadError};
use super::record::{Attachment, LeaveReason, Notify, Role};

macro_rules! by_number {
    ($($type:ty),+) => {
        $(wire_as!($type as u32, |value| value.number().into(), |number| {
            Self::from_number(number).map_err(|error| WireError::new(error.to_string()))
        });)+
    };
}

by_number!(Role, LeaveReason, Notify);
wire_as!(Attachment as String, |file| to_json(file), |text| from_json(&text));
wire_as!(Upload as String, |upload| to_json(upload), |text| from_json(&text));

/// Why another node could not read. What is a bug stands in that node's log.
#[derive(Wire)]
enum ReadErrorThere {
    ShuttingDown,
    Stalled(String),
    Away(String),
    Failed,
}

wire_as!(
    ReadError as ReadErrorThere,
    |error| match error {
        ReadError::ShuttingDown => ReadErrorThere::ShuttingDown,
        ReadError::Stalled(reason) => ReadErrorThere::Stalled(reason.clone()),
        ReadError::Away(reason) => ReadErrorThere::Away(reason.clone()),
        ReadError::Panicked | ReadError::Database(_) | ReadError::Undecodable(_) => {
            tracing::error!(%error, "a read for another node failed");
            ReadErrorThere::Failed
        }
    },
    |error| Ok(match error {
        ReadErrorThere::ShuttingDown => Self::ShuttingDown,
        ReadErrorThere::Stalled(reason) => Self::Stalled(reason),
        ReadErrorThere::Away(reason) => Self::Away(reason),
        ReadErrorThere::Failed => Self::Panicked,
    })
);

/// Why another node did not commit a control transaction; actors run bans only.
#[derive(Wire)]
enum ControlErrorThere {
    NameTaken(String),
    NotFound,
    NotAllowed,
    DiskFull,
    ShuttingDown,
    Away(String),
    TakenOver,
    Failed,
}

wire_as!(
    ControlError as ControlErrorThere,
    |error| match error {
        ControlError::NameTaken(name) => ControlErrorThere::NameTaken(name.clone()),
        ControlError::NotFound(_) => ControlErrorThere::NotFound,
        ControlError::NotAllowed(_) => ControlErrorThere::NotAllowed,
        ControlError::DiskFull => ControlErrorThere::DiskFull,
        ControlError::ShuttingDown => ControlErrorThere::ShuttingDown,
        ControlError::Away(reason) => ControlErrorThere::Away(reason.clone()),
        ControlError::TakenOver => ControlErrorThere::TakenOver,
        ControlError::Panicked | ControlError::Database(_) => {
            tracing::error!(%error, "a change for another node failed");
            ControlErrorThere::Failed
        }
    },
    |error| Ok(match error {
        ControlErrorThere::NameTaken(name) => Self::NameTaken(name),
        ControlErrorThere::NotFound => Self::NotFound("user or room"),
        ControlErrorThere::NotAllowed => Self::NotAllowed("a rule of the server forbids it"),
        ControlErrorThere::DiskFull => Self::DiskFull,
        ControlErrorThere::ShuttingDown => Self::ShuttingDown,
        ControlErrorThere::Away(reason) => Self::Away(reason),
        ControlErrorThere::TakenOver => Self::TakenOver,
        ControlErrorThere::Failed => Self::Panicked,
    })
);
