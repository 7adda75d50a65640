// Generated from crates/folkmoot-protocol by its example generate_types; do not edit.

/** Largest WebSocket message accepted from a client: twice the largest body, so that escaping fits. */
export const FRAME_BYTES_MAX = 65536;

/** Characters of a message body: long enough for a stack trace, short enough for one screen of scrolling. */
export const BODY_CHARS_MAX = 8000;

/** Bytes of a message body in UTF-8: four for each character allowed, rounded up to a power of two. */
export const BODY_BYTES_MAX = 32768;

/** Shortest account name: one letter cannot be mentioned without surprise. */
export const NAME_CHARS_MIN = 2;

/** Longest account name. */
export const NAME_CHARS_MAX = 32;

/** Longest display name of a user. */
export const DISPLAY_NAME_CHARS_MAX = 64;

/** Longest text of a user's status: it stands beside the name. */
export const STATUS_CHARS_MAX = 80;

/** Bytes of a picture that a user sends; what others get is far smaller. */
export const PICTURE_BYTES_MAX = 4194304;

/** Longest name of a server: it stands above the rooms, in one line. */
export const SERVER_NAME_CHARS_MAX = 32;

/** Largest hue of a colour, in degrees: 360 is 0 again. */
export const HUE_MAX = 359;

/** Longest name of a room. */
export const ROOM_NAME_CHARS_MAX = 64;

/** Longest topic of a room: it stands in one line above the messages. */
export const TOPIC_CHARS_MAX = 512;

/** Shortest password accepted. */
export const PASSWORD_CHARS_MIN = 8;

/** Longest password: the cost of hashing must not follow the length a stranger chooses. */
export const PASSWORD_CHARS_MAX = 256;

/** Longest label of a device. */
export const DEVICE_LABEL_CHARS_MAX = 64;

/** Longest idempotency key: a UUID or a hash in hexadecimal fits. */
export const KEY_CHARS_MAX = 64;

/** Longest reaction in bytes: a family emoji with skin tones takes 41. */
export const EMOJI_BYTES_MAX = 64;

/** Latest moment that a client may name, in milliseconds since 1970: the end of time in JavaScript. */
export const MOMENT_MS_MAX = 8640000000000000;

/** Longest invite code we would look up. */
export const INVITE_CODE_CHARS_MAX = 64;

/** Longest search query. */
export const QUERY_CHARS_MAX = 256;

/** Longest cursor of a search: ours have about half of it. */
export const SEARCH_CURSOR_CHARS_MAX = 64;

/** Attachments of one message; a server may allow fewer. */
export const ATTACHMENTS_MAX = 10;

/** Longest name of a file: what other systems accept is 255 bytes, which these fit in most scripts. */
export const FILE_NAME_CHARS_MAX = 128;

/** Uploaded files of one user that no message names yet: a few messages being written at once. */
export const UNSENT_FILES_MAX = 50;

/** Bytes of one piece of a file that comes in pieces: what fast lines carry in a fraction of a second, and little enough to be held in memory. */
export const UPLOAD_PIECE_BYTES_MAX = 1048576;

/** Messages or search hits in one page. */
export const HISTORY_PAGE_MAX = 100;

/** Messages in one page when the client names no limit. */
export const HISTORY_PAGE_DEFAULT = 50;

/** Members in one page. */
export const MEMBERS_PAGE_MAX = 200;

/** Rooms in one page of `rooms.list` or `sync`: about 300 KiB of the largest ones. */
export const ROOMS_PAGE_MAX = 100;

/** Invites in one page. */
export const INVITES_PAGE_MAX = 100;

/** Connections in one answer of `presence`, which has no pages; `room.members` has, and says who is online. */
export const PRESENCE_CLIENTS_MAX = 2000;

/** Users whom one connection watches in one room: a page of members, which is more than a screen shows. */
export const WATCHED_USERS_MAX = 200;

/** Users whom one connection watches in all of its rooms: one in each direct conversation, and a few pages of members. */
export const WATCHED_USERS_PER_CONNECTION_MAX = 1000;

/** Characters of a room's newest message in a `RoomView`, and of a message that another one quotes. */
export const EXCERPT_CHARS_MAX = 140;

/** Different reactions to one message: more would not be read, and each makes a page of history longer. */
export const REACTIONS_PER_MESSAGE_MAX = 20;

/** Users named for one emoji in an answer of `message.reactions`: all of them fit into one reply. */
export const REACTION_USERS_MAX = 50;

/** Messages of one thread: a long talk, and each is looked up when somebody asks for it. */
export const THREAD_LEN_MAX = 1000;

/** Pinned messages of a room: what is worth being looked at by everybody, and a list that can be read. */
export const PINS_PER_ROOM_MAX = 50;

/** Saved messages of one user: their numbers fit into one small answer. */
export const SAVED_MAX = 500;

/** Users in one answer of `users.find`. */
export const USERS_FOUND_MAX = 50;

/** Users whom one user may have blocked: their views fit into one reply. */
export const BLOCKED_USERS_MAX = 1000;

/** Devices signed in to one account; a further one signs out that which was unseen for longest. */
export const DEVICES_MAX = 200;

/** Users, rooms or entries in one page of the administration. */
export const ADMIN_PAGE_MAX = 100;

/** Life of a link by which a user chooses a new password: one day, to be handed over by whatever means. */
export const PASSWORD_RESET_EXPIRES_IN_S = 86400;

/** Channels that one connection is subscribed to, its user's own stream aside. */
export const CHANNELS_PER_CONNECTION_MAX = 2000;

/** Rooms named in one `sync`: as many as a connection may subscribe to. */
export const SYNC_ROOMS_MAX = 2000;

/** Bytes waiting for one connection's socket; a consumer further behind is disconnected as slow. */
export const OUTGOING_QUEUE_BYTES_MAX = 1048576;

/** Events recovered by one subscribe; a client further behind fetches history. */
export const RECOVERED_EVENTS_MAX = 1000;

/** Bytes of publications or messages in one reply. A page or recovery that would exceed it ends early or is refused: half the outgoing queue, and below the 1 MiB at which the Python SDK's WebSocket library gives up. */
export const REPLY_BYTES_MAX = 524288;

/** Longest life of an invite: one year. */
export const INVITE_EXPIRES_IN_S_MAX = 31536000;

/** Messages a user may send per second, by default. */
export const MESSAGES_PER_SECOND_DEFAULT = 10;

/** Messages a user may send in one burst, by default. */
export const MESSAGE_BURST_DEFAULT = 30;
