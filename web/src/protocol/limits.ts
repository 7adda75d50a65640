//! The limits of docs/protocol.md, so that a field can say so before the server has to.

export const BODY_CHARS_MAX = 8_000;
export const BODY_BYTES_MAX = 32 * 1024;
export const NAME_CHARS_MIN = 2;
export const NAME_CHARS_MAX = 32;
export const DISPLAY_NAME_CHARS_MAX = 64;
export const TOPIC_CHARS_MAX = 512;
export const PASSWORD_CHARS_MIN = 8;
export const PASSWORD_CHARS_MAX = 256;
export const HISTORY_PAGE_MAX = 100;
export const MEMBERS_PAGE_MAX = 200;
export const ATTACHMENTS_MAX = 10;
/** Subscribes of one reconnect travel in one frame with the connect command, and a frame holds 64 commands. */
export const SUBSCRIPTIONS_MAX = 60;
