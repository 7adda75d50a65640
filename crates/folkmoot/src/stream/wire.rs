//! Publications in messages between the nodes of one server: each node encodes them for its own
//! clients.

use althing::{Wire, WireError};
use bytes::Bytes;
use folkmoot_protocol::frame::{ClientInfo, Join, Leave, PushKind};
use folkmoot_protocol::{Channel, wire_as};

use super::publication::{Coming, Place, Publication, Removed};

#[derive(Wire)]
struct PublicationThere {
    channel: Channel,
    place: Place,
    removes: Option<Removed>,
    by: Option<ClientInfo>,
    data: Bytes,
}

wire_as!(
    Publication as PublicationThere,
    |publication| PublicationThere {
        channel: publication.channel,
        place: publication.place,
        removes: publication.removes,
        by: publication.by.clone(),
        data: publication.data.clone(),
    },
    |there| {
        let PublicationThere { channel, place, removes, by, data } = there;
        let mut publication = Self::new(channel, place, data);
        (publication.removes, publication.by) = (removes, by);
        Ok(publication)
    }
);

#[derive(Wire)]
struct ComingThere {
    channel: Channel,
    info: ClientInfo,
    is_here: bool,
}

wire_as!(
    Coming as ComingThere,
    |coming| {
        let (info, is_here) = match &coming.kind {
            PushKind::Join(Join { info }) => (info.clone(), true),
            PushKind::Leave(Leave { info }) => (info.clone(), false),
            _ => (None, false),
        };
        ComingThere { channel: coming.channel, info: info.unwrap_or_default(), is_here }
    },
    |there| {
        let ComingThere { channel, info, is_here } = there;
        if info.client.is_empty() {
            return Err(WireError::new("somebody without a connection came or went"));
        }
        Ok(if is_here { Self::join(channel, info) } else { Self::leave(channel, info) })
    }
);
