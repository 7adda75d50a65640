//! Spans around handled messages, on request: `NodeBuilder::trace(Tracing::On)`.
//!
//! Each message then runs in a span named `handle` (target `althing::message`, level info) whose
//! parent is the span it was sent from. A queued message carries that span with it, in a box around
//! its envelope; off, this costs a look at one flag per message. What a subscriber's filter
//! disables costs the box only.

use tracing::Span;

use crate::address::place::Header;
use crate::metrics::MessageName;

/// The span of a message of that type that was sent from within `sender`.
pub(crate) fn span(header: &Header, message: MessageName, sender: &Span) -> Span {
    tracing::info_span!(
        target: "althing::message",
        parent: sender,
        "handle",
        actor = %header.id(),
        message = message(),
    )
}

/// The span of a message that runs in place, if the node traces.
#[inline]
pub(crate) fn span_in_place(header: &Header, message: MessageName) -> Option<Span> {
    header.kind.tracing.is_on().then(|| span(header, message, &Span::current()))
}
