//! Every limit a client can meet, with its reason. Errors quote these numbers, the web client reads
//! them from the generated TypeScript, and nothing else in the project may repeat them as literals.

macro_rules! limits {
    ($($(#[doc = $doc:literal])* $name:ident: $number:ty = $value:expr;)*) => {
        $($(#[doc = $doc])* pub const $name: $number = $value;)*

        /// Every limit with its name and reason, for generated constants.
        pub const ALL: &[(&str, u64, &str)] =
            &[$((stringify!($name), $name as u64, concat!($($doc),*)),)*];
    };
}

limits! {
    /// Largest WebSocket message accepted from a client: twice the largest body, so that escaping
    /// fits.
    FRAME_BYTES_MAX: usize = 64 * 1024;

    /// Characters of a message body: long enough for a stack trace, short enough for one screen of
    /// scrolling.
    BODY_CHARS_MAX: usize = 8_000;

    /// Bytes of a message body in UTF-8: four for each character allowed, rounded up to a power of
    /// two.
    BODY_BYTES_MAX: usize = 32 * 1024;

    /// Shortest account name: one letter cannot be mentioned without surprise.
    NAME_CHARS_MIN: usize = 2;

    /// Longest account name.
    NAME_CHARS_MAX: usize = 32;

    /// Longest display name of a user.
    DISPLAY_NAME_CHARS_MAX: usize = 64;

    /// Longest text of a user's status: it stands beside the name.
    STATUS_CHARS_MAX: usize = 80;

    /// Bytes of a picture that a user sends; what others get is far smaller.
    PICTURE_BYTES_MAX: usize = 4 * 1024 * 1024;

    /// Longest name of a server: it stands above the rooms, in one line.
    SERVER_NAME_CHARS_MAX: usize = 32;

    /// Largest hue of a colour, in degrees: 360 is 0 again.
    HUE_MAX: u32 = 359;

    /// Longest name of a room.
    ROOM_NAME_CHARS_MAX: usize = 64;

    /// Longest topic of a room: it stands in one line above the messages.
    TOPIC_CHARS_MAX: usize = 512;

    /// Shortest password accepted.
    PASSWORD_CHARS_MIN: usize = 8;

    /// Longest password: the cost of hashing must not follow the length a stranger chooses.
    PASSWORD_CHARS_MAX: usize = 256;

    /// Longest label of a device.
    DEVICE_LABEL_CHARS_MAX: usize = 64;

    /// Longest idempotency key: a UUID or a hash in hexadecimal fits.
    KEY_CHARS_MAX: usize = 64;

    /// Longest reaction in bytes: a family emoji with skin tones takes 41.
    EMOJI_BYTES_MAX: usize = 64;

    /// Latest moment that a client may name, in milliseconds since 1970: the end of time in
    /// JavaScript.
    MOMENT_MS_MAX: u64 = 8_640_000_000_000_000;

    /// Longest invite code we would look up.
    INVITE_CODE_CHARS_MAX: usize = 64;

    /// Longest search query.
    QUERY_CHARS_MAX: usize = 256;

    /// Longest cursor of a search: ours have about half of it.
    SEARCH_CURSOR_CHARS_MAX: usize = 64;

    /// Attachments of one message; a server may allow fewer.
    ATTACHMENTS_MAX: usize = 10;

    /// Longest name of a file: what other systems accept is 255 bytes, which these fit in most
    /// scripts.
    FILE_NAME_CHARS_MAX: usize = 128;

    /// Uploaded files of one user that no message names yet: a few messages being written at once.
    UNSENT_FILES_MAX: usize = 50;

    /// Bytes of one piece of a file that comes in pieces: what fast lines carry in a fraction of a
    /// second, and little enough to be held in memory.
    UPLOAD_PIECE_BYTES_MAX: usize = 1024 * 1024;

    /// Messages or search hits in one page.
    HISTORY_PAGE_MAX: u32 = 100;

    /// Messages in one page when the client names no limit.
    HISTORY_PAGE_DEFAULT: u32 = 50;

    /// Members in one page.
    MEMBERS_PAGE_MAX: u32 = 200;

    /// Rooms in one page of `rooms.list` or `sync`: about 300 KiB of the largest ones.
    ROOMS_PAGE_MAX: u32 = 100;

    /// Invites in one page.
    INVITES_PAGE_MAX: u32 = 100;

    /// Connections in one answer of `presence`, which has no pages; `room.members` has, and says
    /// who is online.
    PRESENCE_CLIENTS_MAX: usize = 2_000;

    /// Users whom one connection watches in one room: a page of members, which is more than a screen
    /// shows.
    WATCHED_USERS_MAX: usize = 200;

    /// Users whom one connection watches in all of its rooms: one in each direct conversation, and a
    /// few pages of members.
    WATCHED_USERS_PER_CONNECTION_MAX: usize = 1_000;

    /// Characters of a room's newest message in a `RoomView`, and of a message that another one
    /// quotes.
    EXCERPT_CHARS_MAX: usize = 140;

    /// Different reactions to one message: more would not be read, and each makes a page of history
    /// longer.
    REACTIONS_PER_MESSAGE_MAX: usize = 20;

    /// Users named for one emoji in an answer of `message.reactions`: all of them fit into one
    /// reply.
    REACTION_USERS_MAX: u32 = 50;

    /// Messages of one thread: a long talk, and each is looked up when somebody asks for it.
    THREAD_LEN_MAX: u32 = 1_000;

    /// Pinned messages of a room: what is worth being looked at by everybody, and a list that can
    /// be read.
    PINS_PER_ROOM_MAX: u32 = 50;

    /// Saved messages of one user: their numbers fit into one small answer.
    SAVED_MAX: u32 = 500;

    /// Users in one answer of `users.find`.
    USERS_FOUND_MAX: u32 = 50;

    /// Users whom one user may have blocked: their views fit into one reply.
    BLOCKED_USERS_MAX: u32 = 1_000;

    /// Devices signed in to one account; a further one signs out that which was unseen for longest.
    DEVICES_MAX: u32 = 200;

    /// Users, rooms or entries in one page of the administration.
    ADMIN_PAGE_MAX: u32 = 100;

    /// Life of a link by which a user chooses a new password: one day, to be handed over by
    /// whatever means.
    PASSWORD_RESET_EXPIRES_IN_S: u32 = 24 * 60 * 60;

    /// Channels that one connection is subscribed to, its user's own stream aside.
    CHANNELS_PER_CONNECTION_MAX: usize = 2_000;

    /// Rooms named in one `sync`: as many as a connection may subscribe to.
    SYNC_ROOMS_MAX: usize = CHANNELS_PER_CONNECTION_MAX;

    /// Bytes waiting for one connection's socket; a consumer further behind is disconnected as
    /// slow.
    OUTGOING_QUEUE_BYTES_MAX: usize = 1024 * 1024;

    /// Events recovered by one subscribe; a client further behind fetches history.
    RECOVERED_EVENTS_MAX: usize = 1_000;

    /// Bytes of publications or messages in one reply. A page or recovery that would exceed it ends
    /// early or is refused: half the outgoing queue, and below the 1 MiB at which the Python SDK's
    /// WebSocket library gives up.
    REPLY_BYTES_MAX: usize = OUTGOING_QUEUE_BYTES_MAX / 2;

    /// Longest life of an invite: one year.
    INVITE_EXPIRES_IN_S_MAX: u32 = 365 * 24 * 60 * 60;

    /// Messages a user may send per second, by default.
    MESSAGES_PER_SECOND_DEFAULT: u32 = 10;

    /// Messages a user may send in one burst, by default.
    MESSAGE_BURST_DEFAULT: u32 = 30;
}
