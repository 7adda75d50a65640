// Generated from crates/folkmoot-protocol by its example generate_types; do not edit.

/** Body of `POST /api/v1/accounts`. */
export type AccountCreate = {
  /** Name for signing in and mentions. */
  name: string,
  /** The password. */
  password: string,
  /** Name to show; absent: the name. */
  display_name?: string,
  /** What to call this device. */
  device?: string,
  /** Invite of a room, of which one use is taken: needed where only the invited may sign up. */
  invite?: string,
};

/** Body of `POST /api/v1/me/deletion`: deletes one's own account. */
export type AccountDelete = {
  /** The password, asked for again. */
  password: string,
  /** What becomes of the messages. */
  messages: MessagesFate,
  /** What becomes of rooms that have no other owner; absent: the deletion is refused. */
  rooms?: OwnedRooms,
};

/** The actors of one type. */
export type ActorCount = {
  /** Its name, such as `folkmoot.room`. */
  name: string,
  /** In memory now. */
  live: number,
  /** Messages that wait in their mailboxes. */
  waiting: number,
  /** Messages handled since the start. */
  handled: number,
};

/** A room as administrators see it: its size, never its content. */
export type AdminRoom = {
  /** The room. */
  id: RoomId,
  /** Its name. */
  name: string,
  /** Its topic. */
  topic: string,
  /** When it was made. */
  created_at: UnixMillis,
  /** How many members it has. */
  members: number,
  /** How many messages were sent in it. */
  messages: number,
  /** Bytes of their texts. */
  bytes: number,
  /** When the last one was sent. */
  last_at?: UnixMillis,
  /** Read-only since then. */
  archived_at?: UnixMillis,
};

/** Body of `PATCH /api/v1/admin/rooms/{id}`. */
export type AdminRoomUpdate = {
  /** Whether the room is read-only. */
  archived: boolean,
};

/** A page of rooms, the newest first. */
export type AdminRooms = {
  /** The rooms. */
  rooms: Array<AdminRoom>,
  /** `after` for the next page; absent: this is the last. */
  next?: RoomId,
};

/** Answer of `GET` and `PATCH /api/v1/admin/settings`, and of `PUT` and `DELETE /api/v1/admin/logo`. */
export type AdminSettings = {
  /** Who may make an account. */
  registration: Registration,
  /** Set by a flag or the settings file, and so not to be changed here. */
  registration_fixed: boolean,
  /** How the server shows itself. */
  branding: Branding,
};

/** Body of `PATCH /api/v1/admin/settings`. What is left out stays as it is. */
export type AdminSettingsUpdate = {
  /** Who may make an account. */
  registration?: Registration,
  /** How the server shows itself. */
  branding?: BrandingUpdate,
};

/** A user as administrators see them. */
export type AdminUser = {
  /** The user. */
  id: UserId,
  /** The unique name. */
  name: string,
  /** The name to show. */
  display_name: string,
  /** Administers the server. */
  administrator?: boolean,
  /** Kept out since then; absent: may sign in. */
  disabled_at?: UnixMillis,
  /** When the account was made. */
  created_at: UnixMillis,
  /** When one of the devices signed in was last connected. */
  seen_at?: UnixMillis,
  /** Devices signed in. */
  devices: number,
  /** Rooms and conversations it is in. */
  rooms: number,
};

/** Body of `POST /api/v1/admin/users/{id}/deletion`. */
export type AdminUserDelete = {
  /** What becomes of the messages. */
  messages: MessagesFate,
  /** What becomes of rooms that have no other owner; absent: the deletion is refused. */
  rooms?: OwnedRooms,
};

/** Body of `PATCH /api/v1/admin/users/{id}`. */
export type AdminUserUpdate = {
  /** Makes the user an administrator, or an ordinary user. */
  administrator?: boolean,
  /** Signs the user out everywhere and keeps them out, or lets them in again. */
  disabled?: boolean,
};

/** A page of users in the order of their names. */
export type AdminUsers = {
  /** The users. */
  users: Array<AdminUser>,
  /** `after` for the next page; absent: this is the last. */
  next?: string,
};

/** A file sent with a message. */
export type Attachment = {
  /** The attachment. */
  id: AttachmentId,
  /** File name. */
  name: string,
  /** Media type. */
  media_type: string,
  /** Bytes. */
  size: number,
  /** Pixels across, of an image. */
  width?: number,
  /** Pixels down, of an image. */
  height?: number,
  /** Where the file is. */
  url: string,
  /** Where a small picture of it is. */
  thumbnail_url?: string,
};

/** Names one uploaded attachment. */
export type AttachmentId = string;

/** Limits of files in messages. */
export type AttachmentLimits = {
  /** Bytes of one file. */
  file_bytes_max: number,
  /** Files of one message. */
  files_per_message_max: number,
  /** Bytes of all files of the caller. */
  user_bytes_max: number,
  /** Bytes that the caller's files take now. */
  user_bytes: number,
  /** Pixels of one image: width times height. */
  image_pixels_max: number,
  /** Media types that are taken, `*` at the end stands for any rest. */
  types: Array<string>,
  /** Seconds after which an uploaded file is removed that no message names. */
  unsent_s: number,
};

/** How a server shows itself. What is left out is Folkmoot's own. */
export type Branding = {
  /** Its name. */
  name?: string,
  /** Hue of its accent colour, in degrees of OKLCH; lightness and chroma are the client's, so that
   * every hue can be read. */
  accent?: number,
  /** Its logo, which `GET /api/v1/logo/{id}` answers; another logo has another id. */
  logo?: PictureId,
};

/** A new name and colour; the logo is sent by `PUT /api/v1/admin/logo`. What is left out becomes
 * Folkmoot's own again. */
export type BrandingUpdate = {
  /** The server's name. */
  name?: string,
  /** Hue of its accent colour, in degrees of OKLCH. */
  accent?: number,
};

/** What presence tells of a connection (`conn_info`). */
export type ConnInfo = {
  /** The user's name to show. */
  name: string,
};

/** What the connect reply tells of its user, as its `data`. */
export type ConnectData = {
  /** Whether the user administers the server. */
  administrator: boolean,
  /** What the server's clock shows, by which a client knows how far its own is off. */
  now: UnixMillis,
};

/** Names one signed-in device of a user. */
export type DeviceId = string;

/** A signed-in device of the viewer. */
export type DeviceView = {
  /** The device. */
  id: DeviceId,
  /** What the user calls it. */
  label: string,
  /** When it signed in. */
  created_at: UnixMillis,
  /** When it was last connected. */
  seen_at: UnixMillis,
  /** Whether it is the one asking. */
  current: boolean,
};

/** A message pointed at from elsewhere. */
export type Excerpt = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
  /** Its author. */
  user: UserId,
  /** The author's name to show. */
  name: string,
  /** A part of its text. */
  excerpt: string,
  /** When it was sent. */
  at: UnixMillis,
};

/** An invite of a room. */
export type InviteView = {
  /** What to put into the link. */
  code: string,
  /** When it ends. */
  expires_at?: UnixMillis,
  /** How often it was accepted. */
  uses: number,
  /** How often it may be accepted. */
  uses_max?: number,
  /** Who made it. */
  by: UserId,
};

/** How a membership ended. */
export type LeaveReason = "left" | "kicked" | "banned" | "deleted";

/** A room in the directory, as somebody sees it who need not be a member. */
export type ListedRoom = {
  /** The room. */
  id: RoomId,
  /** Its name. */
  name: string,
  /** Its topic. */
  topic: string,
  /** Number of members. */
  members: number,
  /** Open or by invitation. */
  access: RoomAccess,
  /** The viewer is a member. */
  joined?: boolean,
};

/** One second of the server's life. */
export type LiveSecond = {
  /** When it ended. */
  at: UnixMillis,
  /** Open sockets at its end. */
  connections: number,
  /** Messages sent in it. */
  messages: number,
  /** Records made durable in it. */
  appends: number,
  /** Half of them took less; absent without appends. */
  append_p50_us?: number,
  /** All but one in a hundred took less. */
  append_p99_us?: number,
};

/** What goes on at the moment. */
export type LiveView = {
  /** Now. */
  at: UnixMillis,
  /** When the server was started. */
  started_at: UnixMillis,
  /** Its version. */
  version: string,
  /** Open sockets. */
  connections: number,
  /** Messages sent since the start. */
  messages_total: number,
  /** Records made durable since the start. */
  appends_total: number,
  /** Half of the last minute's records took less; absent without records. */
  append_p50_us?: number,
  /** All but one in a hundred of the last minute's records took less. */
  append_p99_us?: number,
  /** The last minute, oldest first. */
  seconds: Array<LiveSecond>,
  /** Actors by type, the most first. */
  actors: Array<ActorCount>,
};

/** A member of a room. */
export type MemberView = {
  /** The user. */
  user: UserId,
  /** Name for mentions. */
  name: string,
  /** Name to show. */
  display_name: string,
  /** What the member may do. */
  role: Role,
  /** Whether a device of the member is connected. */
  online: boolean,
  /** Until when the member may not write. */
  muted_until?: UnixMillis,
  /** The picture, at `/api/v1/pictures/<id>`; absent: one is drawn from the id. */
  picture?: PictureId,
  /** What the user is up to. */
  status?: Status,
};

/** A message was sent. */
export type MessageEvent = {
  /** The room. */
  room: RoomId,
  /** Its number in the room. */
  seq: Seq,
  /** Its place in the room's stream. */
  offset: Offset,
  /** The author. */
  user: UserId,
  /** The author's name to show. */
  name: string,
  /** The text. */
  body: string,
  /** When it was sent. */
  at: UnixMillis,
  /** The sender's idempotency key, by which the sender finds its own unacknowledged message. */
  key: string,
  /** The message it answers. */
  reply_to?: ReplyRef,
  /** Members it mentions by name. */
  mentions: Array<UserId>,
  /** Whether it mentions everyone. */
  mention_all?: boolean,
  /** Files sent with it. */
  attachments?: Array<Attachment>,
};

/** A message as one member sees it. */
export type MessageView = {
  /** The room. */
  room: RoomId,
  /** Its number in the room. */
  seq: Seq,
  /** The author. */
  user: UserId,
  /** The author's name to show; empty once the account is deleted. */
  name: string,
  /** The text; empty once deleted. */
  body: string,
  /** When it was sent. */
  at: UnixMillis,
  /** When it was last edited. */
  edited_at?: UnixMillis,
  /** Whether it was deleted. */
  deleted?: boolean,
  /** Whether it is pinned for everybody in the room. */
  pinned?: boolean,
  /** The sender's idempotency key; only its author sees it. */
  key?: string,
  /** The message it answers. */
  reply_to?: ReplyRef,
  /** Members it mentions by name. */
  mentions: Array<UserId>,
  /** Whether it mentions everyone. */
  mention_all?: boolean,
  /** Reactions, in order of first use. */
  reactions: Array<Reaction>,
  /** Files sent with it. */
  attachments?: Array<Attachment>,
};

/** What becomes of the messages of a deleted account. */
export type MessagesFate = "keep" | "erase";

/** What was done, in the log of moderation. */
export type ModerationAction = "kicked" | "banned" | "unbanned" | "muted" | "unmuted" | "role_set" | "message_deleted" | "invite_made" | "invite_revoked" | "room_archived" | "room_opened" | "room_deleted" | "room_made_open" | "room_made_listed" | "room_made_hidden" | "set_up" | "administrator_made" | "administrator_unmade" | "user_disabled" | "user_enabled" | "devices_signed_out" | "reset_link_made" | "password_reset" | "account_deleted";

/** An entry of the log of moderation. */
export type ModerationEntry = {
  /** Its number; later entries have higher ones. */
  id: number,
  /** When. */
  at: UnixMillis,
  /** Who did it. */
  by?: UserView,
  /** What. */
  action: ModerationAction,
  /** To whom. */
  user?: UserView,
  /** Where. */
  room?: NamedRoom,
  /** The role that was given. */
  role?: Role,
  /** The end of a mute or an invite. */
  until?: UnixMillis,
};

/** A page of the log, the latest first. */
export type ModerationPage = {
  /** The entries. */
  entries: Array<ModerationEntry>,
  /** `before` for the next page; absent: this is the last. */
  next?: number,
};

/** A room that an entry names. */
export type NamedRoom = {
  /** The room. */
  id: RoomId,
  /** Its present name; empty for a direct conversation and for a room that was deleted. */
  name: string,
};

/** Which messages of a room a user wants to hear about. */
export type Notify = "all" | "mentions" | "none";

/** Counts the events of a stream: from 1, without gaps; 0 stands before the first. */
export type Offset = number;

/** What becomes of rooms that have no other owner. */
export type OwnedRooms = "refuse" | "hand_over";

/** Body of `POST /api/v1/me/password`. */
export type PasswordChange = {
  /** The password until now. */
  old: string,
  /** The one from now on. */
  new: string,
  /** Whether all other devices are signed out. */
  sign_out_others: boolean,
};

/** Body of `POST /api/v1/password-resets`: chooses a new password by the token of a link. */
export type PasswordReset = {
  /** The token of the link. */
  token: string,
  /** The new password. */
  password: string,
  /** What to call this device. */
  device?: string,
};

/** Names one picture that a user shows. */
export type PictureId = string;

/** An error of the HTTP interface, `application/problem+json` (RFC 9457). */
export type Problem = {
  /** Kind of problem, a URI reference. */
  type: string,
  /** The kind in words. */
  title: string,
  /** HTTP status. */
  status: number,
  /** What happened this time. */
  detail: string,
  /** The field that broke its rule. */
  field?: string,
  /** The limit that was exceeded. */
  limit?: number,
  /** When to try again, in milliseconds; the header `Retry-After` says it in seconds. */
  retry_after_ms?: number,
};

/** One emoji under a message. */
export type Reaction = {
  /** The emoji. */
  emoji: string,
  /** How many members gave it. */
  count: number,
  /** Whether the viewer is one of them. */
  mine: boolean,
};

/** Who may make an account. */
export type Registration = "open" | "invite" | "closed";

/** The message that another one answers, as it was then. */
export type ReplyRef = {
  /** Its number in the room. */
  seq: Seq,
  /** Its author. */
  user: UserId,
  /** The author's name to show. */
  name: string,
  /** The beginning of its text. */
  body: string,
};

/** A link by which a user may choose a new password; the token is shown this once. */
export type ResetLink = {
  /** What to put behind `/reset#`. */
  token: string,
  /** Until when it works. */
  expires_at: UnixMillis,
};

/** How long messages are kept, without a limit for ever: what is beyond either limit is deleted for
 * good. Body of `PUT /api/v1/admin/retention` and of `PUT /api/v1/admin/rooms/{id}/retention`. */
export type RetentionRule = {
  /** Days after which a message goes. */
  days?: number,
  /** How many of the newest messages of a room stay. */
  messages?: number,
};

/** Answer of `GET /api/v1/admin/retention`. */
export type RetentionRules = {
  /** What holds in every room that has no rule of its own. */
  server: RetentionRule,
  /** Those that have one. */
  rooms: Array<RoomRetentionRule>,
};

/** What a member may do; each role may do what those before it may. */
export type Role = "member" | "moderator" | "owner";

/** Who may find a room, and come in. */
export type RoomAccess = "open" | "invite" | "hidden";

/** An event of `room:<id>`. */
export type RoomEvent = { "type": "message" } & MessageEvent
  | { "type": "edited", room: RoomId, seq: Seq, body: string, edited_at: UnixMillis, mentions: Array<UserId> }
  | { "type": "deleted", room: RoomId, seq: Seq, by: UserId, at: UnixMillis }
  | { "type": "reaction", room: RoomId, seq: Seq, user: UserId, emoji: string, on: boolean }
  | { "type": "typing", room: RoomId, user: UserId, name: string, on: boolean }
  | { "type": "profile", room: RoomId, user: UserId, display_name: string, picture?: PictureId, status?: Status }
  | { "type": "presence", room: RoomId, online: Array<UserId>, away: Array<UserId>, users: number }
  | { "type": "joined", room: RoomId, user: UserId, name: string, role: Role, at: UnixMillis }
  | { "type": "left", room: RoomId, user: UserId, by?: UserId, reason?: LeaveReason, at: UnixMillis }
  | { "type": "role", room: RoomId, user: UserId, role: Role, muted_until?: UnixMillis, by: UserId, at: UnixMillis }
  | { "type": "pinned", room: RoomId, seq: Seq, by: UserId, on: boolean, at: UnixMillis }
  | { "type": "room", room: RoomId, name: string, topic: string, by: UserId, at: UnixMillis }
  | { "type": "archived", room: RoomId, on: boolean, by: UserId, at: UnixMillis }
  | { "type": "expired", room: RoomId, up_to: Seq, at: UnixMillis }
  | { "type": "room_deleted", room: RoomId };

/** Names a room, a direct conversation included. */
export type RoomId = string;

/** Whether a room has a name and roles or connects two people. */
export type RoomKind = "room" | "direct";

/** A room with a rule of its own. */
export type RoomRetentionRule = {
  /** Which. */
  room: RoomId,
  /** Its name; empty for a direct conversation. */
  name: string,
  /** What holds there. */
  rule: RetentionRule,
};

/** A room as one of its members sees it. */
export type RoomView = {
  /** The room. */
  id: RoomId,
  /** Its name; empty in a direct conversation. */
  name: string,
  /** Its topic. */
  topic: string,
  /** Named or direct. */
  kind: RoomKind,
  /** What the viewer may do. */
  role: Role,
  /** Number of members. */
  members: number,
  /** The newest message. */
  last_seq: Seq,
  /** The newest event. */
  offset: Offset,
  /** Epoch in which `offset` counts. */
  epoch: string,
  /** The last message the viewer has read. */
  read_seq: Seq,
  /** Messages of others after `read_seq`. */
  unread: number,
  /** Those among them that mention the viewer. */
  mentions: number,
  /** What the viewer wants to hear about. */
  notify: Notify,
  /** The other one in a direct conversation. */
  peer?: UserView,
  /** The newest message itself. */
  last?: MessageView,
  /** Until when the viewer may not write. */
  muted_until?: UnixMillis,
  /** Nobody may write in it, until an owner opens it again. */
  archived?: boolean,
};

/** Counts the messages of a room: from 1, without gaps; 0 stands before the first. */
export type Seq = number;

/** Answer of `GET /api/v1/limits`: what a client can say before somebody runs into it. */
export type ServerLimits = {
  /** Files in messages. */
  attachments: AttachmentLimits,
};

/** Body of `POST /api/v1/sessions`. */
export type SessionCreate = {
  /** Name of the account. */
  name: string,
  /** The password. */
  password: string,
  /** What to call this device. */
  device?: string,
};

/** Body of `POST /api/v1/setup`: makes the first administrator. */
export type SetupCreate = {
  /** The token of the link that the server printed when it started. */
  token: string,
  /** Name for signing in and mentions. */
  name: string,
  /** The password. */
  password: string,
  /** Name to show; absent: the name. */
  display_name?: string,
  /** What to call this device. */
  device?: string,
  /** Invite of a room, of which one use is taken: needed where only the invited may sign up. */
  invite?: string,
};

/** Answer of `GET /api/v1/setup`. */
export type SetupState = {
  /** Nobody administers the server yet. */
  needed: boolean,
  /** Everybody who is here already is a bot: a server with `--demo`. */
  demo?: boolean,
  /** Who may make an account. */
  registration: Registration,
  /** How the server shows itself. */
  branding: Branding,
};

/** Answer of both: the session's token is shown this once. */
export type SignedIn = {
  /** The account. */
  user: UserView,
  /** The device's session token, `fm_` and 43 characters of base64url. */
  token: string,
  /** The device. */
  device: DeviceId,
  /** The room in which a new account begins; only a server that lets newcomers into rooms names one. */
  begins_in?: RoomId,
};

/** What a user is up to. Emoji or text may be empty, and not both. */
export type Status = {
  /** An emoji that stands beside the name. */
  emoji: string,
  /** A few words. */
  text: string,
  /** From then on it is not shown any more; absent: until it is changed. */
  until?: UnixMillis,
};

/** A part of the data directory. */
export type StoragePart = {
  /** `log`, `database`, or the directory's name. */
  name: string,
  /** What its files hold. */
  bytes: number,
};

/** What the server keeps, and how much room is left. */
export type StorageView = {
  /** Parts of the data directory, the largest first. */
  parts: Array<StoragePart>,
  /** What may still be written to its disk. */
  free_bytes: number,
  /** The size of its disk. */
  disk_bytes: number,
  /** Segments of the log. */
  segments: number,
  /** Bytes of the log that are not in the database yet. */
  lag_bytes: number,
  /** Accounts. */
  users: number,
  /** Rooms. */
  rooms: number,
  /** Direct conversations. */
  directs: number,
  /** Messages ever sent. */
  messages: number,
  /** Bytes of their texts. */
  body_bytes: number,
};

/** A moment: milliseconds since 1970 in UTC. */
export type UnixMillis = number;

/** How far a file has come that comes in pieces. */
export type UploadProgress = {
  /** The upload, and later the attachment. */
  id: AttachmentId,
  /** Bytes that have come: where the next piece begins. */
  offset: number,
  /** The file, once all of it is on disk and a message may name it. */
  attachment?: Attachment,
};

/** An event of `user:<id>`. */
export type UserEvent = { "type": "room_added", room: RoomView }
  | { "type": "room_removed", room: RoomId, reason: LeaveReason }
  | { "type": "mention" } & Excerpt
  | { "type": "read", room: RoomId, read_seq: Seq, unread: number, mentions: number }
  | { "type": "profile", user: UserId, name: string, display_name: string, picture?: PictureId, status?: Status }
  | { "type": "settings", room: RoomId, notify: Notify }
  | { "type": "saved", room: RoomId, seq: Seq, on: boolean };

/** Names a user account. */
export type UserId = string;

/** A user as others see it. */
export type UserView = {
  /** The user. */
  id: UserId,
  /** Name for signing in and mentions; unique. */
  name: string,
  /** Name to show. */
  display_name: string,
  /** The account was deleted: both names are empty. */
  deleted?: boolean,
  /** The picture, at `/api/v1/pictures/<id>`; absent: one is drawn from the id. */
  picture?: PictureId,
  /** What the user is up to. */
  status?: Status,
};
