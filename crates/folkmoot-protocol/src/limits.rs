//! Every limit a client can meet, with its reason. Errors quote these numbers, the web client reads them
//! from the generated TypeScript, and nothing else in the project may repeat them as literals.

/// Largest WebSocket message accepted from a client: twice the largest body, so that escaping fits.
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

/// Commands in one frame: an SDK resubscribes in one batch, and a batch must not hold the session for long.
pub const COMMANDS_PER_FRAME_MAX: usize = 64;

/// Characters of a message body: long enough for a stack trace, short enough for one screen of scrolling.
pub const BODY_CHARS_MAX: usize = 8_000;

/// Bytes of a message body in UTF-8: four for each character allowed, rounded up to a power of two.
pub const BODY_BYTES_MAX: usize = 32 * 1024;

/// Shortest account name: one letter cannot be mentioned without surprise.
pub const NAME_CHARS_MIN: usize = 2;

/// Longest account name.
pub const NAME_CHARS_MAX: usize = 32;

/// Longest display name of a user.
pub const DISPLAY_NAME_CHARS_MAX: usize = 64;

/// Longest name of a room.
pub const ROOM_NAME_CHARS_MAX: usize = 64;

/// Longest topic of a room: it stands in one line above the messages.
pub const TOPIC_CHARS_MAX: usize = 512;

/// Shortest password accepted.
pub const PASSWORD_CHARS_MIN: usize = 8;

/// Longest password: the cost of hashing must not follow the length a stranger chooses.
pub const PASSWORD_CHARS_MAX: usize = 256;

/// Longest label of a device.
pub const DEVICE_LABEL_CHARS_MAX: usize = 64;

/// Longest idempotency key: a UUID or a hash in hexadecimal fits.
pub const KEY_CHARS_MAX: usize = 64;

/// Longest reaction in bytes: a family emoji with skin tones takes 41.
pub const EMOJI_BYTES_MAX: usize = 64;

/// Longest invite code we would look up.
pub const INVITE_CODE_CHARS_MAX: usize = 64;

/// Longest search query.
pub const QUERY_CHARS_MAX: usize = 256;

/// Attachments of one message.
pub const ATTACHMENTS_MAX: usize = 10;

/// Messages or search hits in one page.
pub const HISTORY_PAGE_MAX: u32 = 100;

/// Messages in one page when the client names no limit.
pub const HISTORY_PAGE_DEFAULT: u32 = 50;

/// Members in one page.
pub const MEMBERS_PAGE_MAX: u32 = 200;

/// Users in one answer of `users.find`.
pub const USERS_FOUND_MAX: u32 = 50;

/// Channels of one connection.
pub const CHANNELS_PER_CONNECTION_MAX: usize = 2_000;

/// Rooms named in one `sync`: as many as a connection may subscribe to.
pub const SYNC_ROOMS_MAX: usize = CHANNELS_PER_CONNECTION_MAX;

/// Bytes waiting for one connection's socket; a consumer further behind is disconnected as slow.
pub const OUTGOING_QUEUE_BYTES_MAX: usize = 1024 * 1024;

/// Events recovered by one subscribe; a client further behind fetches history.
pub const RECOVERED_EVENTS_MAX: usize = 1_000;

/// Longest life of an invite: one year.
pub const INVITE_EXPIRES_IN_S_MAX: u32 = 365 * 24 * 60 * 60;

/// Messages a user may send per second, by default.
pub const MESSAGES_PER_SECOND_DEFAULT: u32 = 10;

/// Messages a user may send in one burst, by default.
pub const MESSAGE_BURST_DEFAULT: u32 = 30;
