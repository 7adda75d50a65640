//! Error and disconnect codes with their texts. The numbers are Centrifugo's where it has one,
//! because the SDKs act on them: a temporary error is retried, a code from 3500 or from 4500 ends
//! the reconnecting.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $text:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $code,)*
        }

        impl $name {
            /// Every code, in rising order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The number on the wire.
            pub const fn code(self) -> u32 {
                self as u32
            }

            /// The text on the wire.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The name in the source, for generated constants.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }

            /// The code with this number, if we know it.
            pub const fn from_code(code: u32) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

codes! {
    /// Why a command failed.
    ErrorCode {
        /// Our fault; the outcome is unknown, a retry with the same key is safe.
        Internal = 100, "internal server error";
        /// The token is missing, wrong or revoked.
        Unauthorized = 101, "unauthorized";
        /// The channel does not exist, or its name is not one.
        UnknownChannel = 102, "unknown channel";
        /// The caller may not do this; nothing changed.
        PermissionDenied = 103, "permission denied";
        /// There is no rpc method of this name.
        MethodNotFound = 104, "method not found";
        /// The connection is already subscribed to the channel.
        AlreadySubscribed = 105, "already subscribed";
        /// A count is over its limit, which the message names.
        LimitExceeded = 106, "limit exceeded";
        /// The command makes no sense where it came.
        BadRequest = 107, "bad request";
        /// The channel does not offer this.
        NotAvailable = 108, "not available";
        /// The token's time is over; a new one may help.
        TokenExpired = 109, "token expired";
        /// The connection's or subscription's time is over.
        Expired = 110, "expired";
        /// Too many commands; try again later.
        TooManyRequests = 111, "too many requests";
        /// The position asked for is gone; fetch history instead.
        UnrecoverablePosition = 112, "unrecoverable position";
        /// A field breaks its rule; the message names both.
        InvalidField = 400, "invalid field";
        /// No such room, user, message or invite.
        NotFound = 404, "not found";
        /// The idempotency key was used for other content; nothing changed.
        KeyReused = 409, "idempotency key reused with other content";
        /// A field is over its size limit; the message names both.
        TooLarge = 413, "too large";
        /// Too many messages; the message names when to retry.
        RateLimited = 429, "rate limited";
        /// The store cannot take writes; nothing was acknowledged.
        StoreUnavailable = 503, "the store cannot take writes";
    }
}

impl ErrorCode {
    /// Whether the same command may succeed later; SDKs retry subscriptions by it.
    pub const fn is_temporary(self) -> bool {
        matches!(
            self,
            Self::Internal | Self::TooManyRequests | Self::RateLimited | Self::StoreUnavailable
        )
    }
}

codes! {
    /// Why the server closed a connection.
    DisconnectCode {
        /// A frame is over its size limit; do not reconnect. WebSocket's own number, which the SDKs
        /// know as final.
        FrameTooLarge = 1009, "frame over 65536 bytes";
        /// The connection ended without a reason from us.
        ConnectionClosed = 3000, "connection closed";
        /// The node stops; reconnect.
        Shutdown = 3001, "shutdown";
        /// Our fault; reconnect.
        ServerError = 3004, "internal server error";
        /// The session's time is over; reconnect with a new token.
        Expired = 3005, "connection expired";
        /// The client reads too slowly; its queue is full. Reconnect and recover.
        Slow = 3008, "slow";
        /// Writing to the socket failed.
        WriteError = 3009, "write error";
        /// The server lost track of the stream's position; reconnect and recover.
        InsufficientState = 3010, "insufficient state";
        /// The server asks for a new connection.
        ForceReconnect = 3011, "force reconnect";
        /// No answer to a ping in time.
        NoPong = 3012, "no pong";
        /// Too many commands; reconnect later.
        TooManyRequests = 3013, "too many requests";
        /// The token is wrong or revoked; do not reconnect.
        InvalidToken = 3500, "invalid token";
        /// The frame cannot be understood; do not reconnect.
        BadRequest = 3501, "bad request";
        /// No connect command came in time.
        Stale = 3502, "stale";
        /// The server wants this connection gone; do not reconnect.
        ForceDisconnect = 3503, "force disconnect";
        /// Too many connections of this user.
        ConnectionLimit = 3504, "connection limit";
        /// The connection would have more channels than it may.
        ChannelLimit = 3505, "channel limit";
        /// The frame type does not fit the format: binary in JSON, or text in protobuf.
        InappropriateProtocol = 3506, "inappropriate protocol";
        /// The caller may not connect here.
        PermissionDenied = 3507, "permission denied";
    }
}

impl DisconnectCode {
    /// Whether a client may connect again by itself after this code.
    pub const fn allows_reconnect(self) -> bool {
        let code = self.code();
        !(code == 1009 || code >= 3500 && code < 4000 || code >= 4500 && code < 5000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_number() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_code(code.code()), Some(*code));
        }
        for code in DisconnectCode::ALL {
            assert_eq!(DisconnectCode::from_code(code.code()), Some(*code));
        }
        assert_eq!(ErrorCode::from_code(999), None);
    }

    #[test]
    fn close_reasons_fit_a_websocket_close_frame() {
        // RFC 6455, 5.5: a control frame carries 125 bytes, two of them the code.
        assert!(DisconnectCode::ALL.iter().all(|code| code.text().len() <= 123));
    }

    #[test]
    fn the_frame_limit_is_quoted_truly() {
        let limit = crate::limits::FRAME_BYTES_MAX.to_string();
        assert!(DisconnectCode::FrameTooLarge.text().contains(&limit));
    }
}
