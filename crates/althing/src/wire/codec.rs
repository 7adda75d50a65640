//! How messages of one type travel, and what a kind of actors takes from other nodes, whatever the
//! actor's type.

use std::any::{Any, TypeId};

use crate::error::AskError;
use crate::mail::envelope::Envelope;
use crate::shield::shielded;
use crate::wire::{Wire, WireError};

/// How messages of type `M` and their replies become bytes.
pub(crate) struct Codec<M, R> {
    pub(crate) name: &'static str,
    pub(crate) encode: fn(&M, &mut Vec<u8>),
    pub(crate) decode_reply: fn(&[u8]) -> Result<R, WireError>,
}

/// Takes the encoded reply of a message from elsewhere, or why there is none; `None` if the handler
/// dropped its slot.
pub(crate) type WireReply = Box<dyn FnOnce(Result<Vec<u8>, Option<AskError>>) + Send>;

/// Makes an envelope of the bytes of one message.
pub(crate) type Incoming = fn(&[u8], &mut Option<WireReply>) -> Result<Envelope, WireError>;

/// What a kind takes from other nodes; a `Codecs` whose actor's type is forgotten.
pub(crate) trait AnyCodecs: Send + Sync {
    /// Makes an envelope of a message that came as bytes; `None` if no message has this name.
    /// Without `reply` it is a tell. `reply` is taken only if the bytes are such a message, so that
    /// their sender can be told otherwise.
    fn decode(
        &self,
        name: &str,
        bytes: &[u8],
        reply: &mut Option<WireReply>,
    ) -> Option<Result<Envelope, WireError>>;

    /// What makes an envelope of a message of that name.
    fn incoming(&self, name: &str) -> Option<Incoming>;

    /// The `Codec` of a message type; `None` if it does not travel.
    fn codec(&self, message: TypeId) -> Option<&(dyn Any + Send + Sync)>;
}

/// Reads a value of a type of the program's. A panic of its `Wire` is an error like any other: who
/// reads it has what others have sent in the same hand.
pub(crate) fn decoded<T: Wire>(bytes: &[u8]) -> Result<T, WireError> {
    let read = shielded("decoding", || T::decode(bytes));
    read.unwrap_or_else(|| Err(WireError::new("its own decoding panicked")))
}

/// The bytes that `encode` writes for a value of a type of the program's; `None` if that panics.
pub(crate) fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
    shielded("encoding", || {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        bytes
    })
}

impl dyn AnyCodecs + '_ {
    /// How messages of type `M` travel; `None` if they do not.
    pub(crate) fn of<M: 'static, R: 'static>(&self) -> Option<&Codec<M, R>> {
        self.codec(TypeId::of::<M>())?.downcast_ref()
    }
}
