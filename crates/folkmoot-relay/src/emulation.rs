//! `/emulation`: commands of clients whose messages come over HTTP, each by a request of its own. With
//! several nodes it may come to another one than its session is on.
//!
//! Anybody can write such a request. So its session is looked for on one node at most, the one that
//! it names, and an address that names sessions that are not there is not asked for for long.

use std::net::SocketAddr;
use std::sync::Arc;

use althing::Incarnation;
use axum::extract::{ConnectInfo, Extension, State};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use folkmoot_gateway::{Delivered, Emulated, Emulation, Guest, Network, client_address};
use folkmoot_protocol::Format;

use crate::nodes::Nodes;
use crate::server::Server;
use crate::strays::Strays;

/// Between the life of a node and the rest of what its clients call it.
const SEPARATOR: char = '-';

/// Sessions that began on this node, and how much is asked for those of others.
#[derive(Debug)]
pub(crate) struct Sessions {
    here: Arc<Emulation>,
    strays: Strays,
    /// Who is believed about whom they speak for.
    proxies: [Network; 2],
}

impl Sessions {
    pub(crate) fn on(node: Incarnation) -> Self {
        let here = Emulation::on(&format!("{:x}{SEPARATOR}", node.0));
        let this_machine = ["127.0.0.0/8", "::1"];
        let proxies = this_machine.map(|network| network.parse().expect("a network"));
        Self { here, strays: Strays::default(), proxies }
    }

    pub(crate) fn here(&self) -> &Arc<Emulation> {
        &self.here
    }
}

/// The life of the node that a request names.
fn node(request: &Emulated) -> Option<u64> {
    let (node, _) = request.node().split_once(SEPARATOR)?;
    u64::from_str_radix(node, 16).ok()
}

/// Takes a request with a command: 204; 404, if no node of now has the session; 400, if it is none.
pub(crate) async fn emulation(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let format = folkmoot_gateway::format(&headers);
    let Some(request) = Emulated::read(format, body.clone()) else {
        return StatusCode::BAD_REQUEST;
    };
    let Sessions { here, strays, proxies } = &server.emulation;
    let delivered = if here.is_meant(&request) {
        here.deliver(request).await
    } else {
        let there = server.hub.nodes().zip(node(&request)).filter(|(nodes, node)| nodes.has(*node));
        let Some((nodes, node)) = there else { return StatusCode::NOT_FOUND };
        let address = client_address(peer.ip(), &headers, proxies);
        let Some(asked) = strays.ask(address) else { return StatusCode::TOO_MANY_REQUESTS };
        match forward(nodes, node, format, body).await {
            Ok(Delivered::There) => {
                strays.found(&asked);
                Delivered::There
            }
            Ok(Delivered::Nowhere) => Delivered::Nowhere,
            Err(status) => return status,
        }
    };
    if delivered == Delivered::There {
        visit.has_spoken();
    }
    StatusCode::NO_CONTENT
}

/// Has another node take a command for a session of its own.
async fn forward(
    nodes: &Nodes,
    node: u64,
    format: Format,
    body: Bytes,
) -> Result<Delivered, StatusCode> {
    let is_protobuf = format == Format::Protobuf;
    match nodes.emulate(node, is_protobuf, body).await {
        Some(Ok(true)) => Ok(Delivered::There),
        Some(Ok(false)) => Ok(Delivered::Nowhere),
        // Its session may be there, and may have got it: the client's next word tells.
        Some(Err(_)) | None => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}
