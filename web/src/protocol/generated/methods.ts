// Generated from crates/folkmoot-protocol by its example generate_types; do not edit.

import type { AttachmentId, DeviceId, DeviceView, InviteView, ListedRoom, MemberView, MessageView, Notify, Offset, Role, RoomAccess, RoomId, RoomView, Seq, UnixMillis, UserId, UserView } from './chat';

/** Asks for the caller's devices. */
export type DevicesList = Record<string, never>;

/** Devices of the caller. */
export type DevicesPage = {
  /** The devices. */
  devices: Array<DeviceView>,
};

/** Signs a device of the caller out; its connections end. */
export type DevicesRevoke = {
  /** The device. */
  id: DeviceId,
};

/** Takes a direct conversation off the caller's list until somebody writes there again. */
export type DirectHide = {
  /** The conversation. */
  room: RoomId,
};

/** Opens the conversation with another user; the same one each time. */
export type DirectOpen = {
  /** The other user. */
  user: UserId,
};

/** The reply of methods that have nothing to say. */
export type Empty = Record<string, never>;

/** Asks for messages: the newest, or those before, after or around one. */
export type HistoryGet = {
  /** The room. */
  room: RoomId,
  /** Only older ones than this. */
  before?: Seq,
  /** Only newer ones than this. */
  after?: Seq,
  /** This one in the middle. */
  around?: Seq,
  /** Length of the page; absent: 50. */
  limit?: number,
};

/** A page of messages. */
export type HistoryPage = {
  /** The messages, oldest first. */
  messages: Array<MessageView>,
  /** The oldest message the room has. */
  first_seq: Seq,
  /** The newest message the room has. */
  last_seq: Seq,
};

/** Makes the caller a member. */
export type InviteAccept = {
  /** The invite's code. */
  code: string,
};

/** Makes an invite. */
export type InviteCreate = {
  /** The room. */
  room: RoomId,
  /** Seconds until it ends; absent: never. */
  expires_in_s?: number,
  /** How often it may be accepted; absent: without limit. */
  uses_max?: number,
};

/** The invite that was made. */
export type InviteCreated = {
  /** What to put into the link. */
  code: string,
  /** The room. */
  room: RoomId,
  /** When it ends. */
  expires_at?: UnixMillis,
  /** How often it may be accepted. */
  uses_max?: number,
};

/** A place among a room's invites. It stays one when the invite it names is revoked. */
export type InviteCursor = {
  /** When the invite was made. */
  created_at: UnixMillis,
  /** Its code. */
  code: string,
};

/** Asks where an invite leads. */
export type InviteGet = {
  /** The invite's code. */
  code: string,
};

/** Asks for a page of a room's invites. */
export type InviteList = {
  /** The room. */
  room: RoomId,
  /** `next` of the page before. */
  after?: InviteCursor,
  /** Length of the page; absent: 100, the most. */
  limit?: number,
};

/** Where an invite leads. */
export type InvitePreview = {
  /** The invite's code. */
  code: string,
  /** The room. */
  room: InvitedRoom,
};

/** Ends an invite. */
export type InviteRevoke = {
  /** The invite's code. */
  code: string,
};

/** A room as someone invited sees it. */
export type InvitedRoom = {
  /** The room. */
  id: RoomId,
  /** Its name. */
  name: string,
  /** Its topic. */
  topic: string,
  /** Number of members. */
  members: number,
};

/** Invites of a room, the newest first. */
export type InvitesPage = {
  /** The invites. */
  invites: Array<InviteView>,
  /** There are more, after this place. */
  next?: InviteCursor,
};

/** A place among the listed rooms. It stays one when the room it names is renamed or deleted. */
export type ListedCursor = {
  /** The room's name. */
  name: string,
  /** The room. */
  id: RoomId,
};

/** Listed rooms, by name. A page of a search may be short, or empty, though there are more. */
export type ListedRooms = {
  /** The rooms. */
  rooms: Array<ListedRoom>,
  /** There may be more, after this place. */
  next?: ListedCursor,
};

/** A page of members. */
export type MembersPage = {
  /** The members. */
  members: Array<MemberView>,
  /** Where the next page continues; absent on the last. */
  next?: UserId,
};

/** Deletes a message. */
export type MessageDelete = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
};

/** Replaces the text of the caller's message. */
export type MessageEdit = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
  /** The new text. */
  body: string,
};

/** When the text was replaced. */
export type MessageEdited = {
  /** The moment. */
  edited_at: UnixMillis,
};

/** Pins a message for everybody in the room, or takes the pin away. */
export type MessagePin = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
  /** Whether it is pinned. */
  on: boolean,
};

/** Gives a reaction or takes it back. */
export type MessageReact = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
  /** The emoji. */
  emoji: string,
  /** Whether it is given. */
  on: boolean,
};

/** Asks who reacted to a message. */
export type MessageReactions = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
};

/** Saves a message for later, or takes it off the list. */
export type MessageSave = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
  /** Whether it is saved. */
  on: boolean,
};

/** Sends a message. */
export type MessageSend = {
  /** The room. */
  room: RoomId,
  /** The sender's idempotency key; a retry carries the same. */
  key: string,
  /** The text. */
  body: string,
  /** The message it answers. */
  reply_to?: Seq,
  /** Files uploaded before. */
  attachments?: Array<AttachmentId>,
};

/** Where a message went; sent only once it is durable. */
export type MessageSent = {
  /** Its number in the room. */
  seq: Seq,
  /** Its place in the room's stream. */
  offset: Offset,
  /** When it was sent. */
  at: UnixMillis,
  /** Whether an earlier command with the same key sent it. */
  duplicate?: boolean,
};

/** Asks for a message and all that answers it, directly or by way of other answers. */
export type MessageThread = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
  /** Only newer ones than this. */
  after?: Seq,
  /** Length of the page; absent: 50. */
  limit?: number,
};

/** A pinned message as it is now. */
export type PinnedMessage = {
  /** The message. */
  message: MessageView,
  /** Who pinned it. */
  by: UserView,
  /** When it was pinned. */
  at: UnixMillis,
};

/** A page of pinned messages. */
export type PinsPage = {
  /** The messages, the one pinned last first. */
  pins: Array<PinnedMessage>,
  /** `after` of the next page, if there is one. */
  next?: Offset,
};

/** Names those whom the caller has on screen in a room that the connection is subscribed to. It is
 * told at once who of them is there, in an event, and whenever one of them comes or goes. Replaces
 * what it named before. */
export type PresenceWatch = {
  /** The room. */
  room: RoomId,
  /** Those on screen; none: nothing is told any more. */
  users: Array<UserId>,
};

/** Changes the caller's profile. */
export type ProfileUpdate = {
  /** The new name to show. */
  display_name: string,
};

/** The users who gave one emoji. */
export type ReactionUsers = {
  /** The emoji. */
  emoji: string,
  /** Who gave it first comes first; at most [`crate::limits::REACTION_USERS_MAX`]. */
  users: Array<UserView>,
};

/** Who reacted to a message. */
export type ReactionsPage = {
  /** The emoji, in order of first use. */
  reactions: Array<ReactionUsers>,
};

/** Moves the caller's read cursor; it never moves back. */
export type ReadSet = {
  /** The room. */
  room: RoomId,
  /** The last message read. */
  seq: Seq,
};

/** The caller's read cursor and what lies after it. */
export type ReadState = {
  /** The last message read. */
  read_seq: Seq,
  /** Messages of others after it. */
  unread: number,
  /** Those among them that mention the caller. */
  mentions: number,
};

/** Asks who may find a room and come in. */
export type RoomAccessGet = {
  /** The room. */
  room: RoomId,
};

/** Says who may find a room and come in. */
export type RoomAccessSet = {
  /** The room. */
  room: RoomId,
  /** From now on. */
  access: RoomAccess,
};

/** Who may find a room and come in, as it is now. */
export type RoomAccessView = {
  /** How it is. */
  access: RoomAccess,
};

/** Makes another user a member, without an invite. */
export type RoomAdd = {
  /** The room. */
  room: RoomId,
  /** The user. */
  user: UserId,
};

/** Makes a room read-only and takes it off the lists, or opens it again. */
export type RoomArchive = {
  /** The room. */
  room: RoomId,
  /** Whether it is read-only. */
  on: boolean,
};

/** Bars a user from a room, or lets the user return. */
export type RoomBan = {
  /** The room. */
  room: RoomId,
  /** The user. */
  user: UserId,
  /** Whether the user is barred. */
  on: boolean,
};

/** Makes a room; the caller owns it. */
export type RoomCreate = {
  /** Its name. */
  name: string,
  /** Its topic. */
  topic?: string,
};

/** Deletes a room with everything that was said in it, for good. */
export type RoomDelete = {
  /** The room. */
  room: RoomId,
};

/** Asks for one room. */
export type RoomGet = {
  /** The room. */
  room: RoomId,
};

/** Makes the caller a member of an open room. */
export type RoomJoin = {
  /** The room. */
  room: RoomId,
};

/** Ends another's membership. */
export type RoomKick = {
  /** The room. */
  room: RoomId,
  /** The member. */
  user: UserId,
};

/** Ends the caller's membership. */
export type RoomLeave = {
  /** The room. */
  room: RoomId,
};

/** Asks for the members of a room, in pages. */
export type RoomMembers = {
  /** The room. */
  room: RoomId,
  /** Continues after this member. */
  after?: UserId,
  /** Only those whose name, or a word of whose name to show, begins so. */
  prefix?: string,
  /** Length of the page; absent: the largest. */
  limit?: number,
};

/** Silences a member for a time. */
export type RoomMute = {
  /** The room. */
  room: RoomId,
  /** The member. */
  user: UserId,
  /** Until when; absent: the member may write again. */
  until?: UnixMillis,
};

/** Sets what the caller wants to hear about. */
export type RoomNotify = {
  /** The room. */
  room: RoomId,
  /** The wish. */
  notify: Notify,
};

/** Asks for the pinned messages of a room, those pinned last first. */
export type RoomPins = {
  /** The room. */
  room: RoomId,
  /** Only those pinned before this event of the room. */
  after?: Offset,
  /** Length of the page; absent: all of them. */
  limit?: number,
};

/** Data of a `publish` to `room:<id>`: a [`MessageSend`] whose channel names the room. */
export type RoomPublish = {
  /** The sender's idempotency key; absent: a retry may double the message. */
  key?: string,
  /** The text. */
  body: string,
  /** The message it answers. */
  reply_to?: Seq,
  /** Files uploaded before. */
  attachments?: Array<AttachmentId>,
};

/** Gives a member a role. */
export type RoomSetRole = {
  /** The room. */
  room: RoomId,
  /** The member. */
  user: UserId,
  /** The new role. */
  role: Role,
};

/** Changes a room's name or topic. */
export type RoomUpdate = {
  /** The room. */
  room: RoomId,
  /** Its new name. */
  name?: string,
  /** Its new topic. */
  topic?: string,
};

/** A page of the caller's rooms, in the order of their ids. */
export type Rooms = {
  /** The rooms. */
  rooms: Array<RoomView>,
  /** There are more, after this one. */
  next?: RoomId,
};

/** Asks for a page of the rooms that are listed for everybody. */
export type RoomsBrowse = {
  /** Only those that have all these words in name or topic, without case and accents. */
  search?: string,
  /** `next` of the page before. */
  after?: ListedCursor,
  /** Length of the page; absent: 100, the most. */
  limit?: number,
};

/** Asks for a page of the caller's rooms. */
export type RoomsList = {
  /** After this room: `next` of the page before. */
  after?: RoomId,
  /** Length of the page; absent: 100, the most. */
  limit?: number,
  /** Archived rooms instead of the others. */
  archived?: boolean,
};

/** Asks for the caller's saved messages, those saved last first. */
export type SavedList = {
  /** Only those behind this place of the list. */
  after?: number,
  /** Length of the page; absent: 50. */
  limit?: number,
};

/** Asks which messages the caller has saved, without what they say. */
export type SavedMarks = Record<symbol, never>;

/** A saved message as it is now. */
export type SavedMessage = {
  /** The message. */
  message: MessageView,
  /** When it was saved. */
  at: UnixMillis,
};

/** The numbers of the caller's saved messages. */
export type SavedNumbers = {
  /** By room. */
  rooms: { [key in RoomId]: Array<Seq> },
};

/** A page of saved messages. */
export type SavedPage = {
  /** The messages, the one saved last first. */
  saved: Array<SavedMessage>,
  /** `after` of the next page, if there is one. */
  next?: number,
};

/** Searches the messages of the caller's rooms. */
export type Search = {
  /** Words to find, and filters. */
  query: string,
  /** Only in this room. */
  room?: RoomId,
  /** Where the page before ended: its `next`. */
  cursor?: string,
  /** Length of the page; absent: 50. */
  limit?: number,
};

/** A message that was found. */
export type SearchHit = {
  /** The room. */
  room: RoomId,
  /** The message. */
  seq: Seq,
  /** Its author. */
  user: UserId,
  /** The author's name to show. */
  name: string,
  /** The part of its text around the first match. */
  excerpt: string,
  /** What matched: from and to (not included), in characters (Unicode code points) of `excerpt`,
   * rising. */
  highlights: Array<[number, number]>,
  /** When it was sent. */
  at: UnixMillis,
};

/** A page of what was found, newest first. */
export type SearchHits = {
  /** The hits. */
  hits: Array<SearchHit>,
  /** The cursor of the next page; absent: this is the last one. */
  next?: string,
  /** How many of the newest changes the index has not looked at yet, so that hits may be missing;
   * absent: none. */
  behind?: number,
};

/** Says what the caller is up to; without emoji and text nothing is said any more. */
export type StatusSet = {
  /** An emoji that stands beside the name; may be empty. */
  emoji: string,
  /** A few words; may be empty. */
  text: string,
  /** From then on it is not shown any more; absent: until it is changed. */
  until?: UnixMillis,
};

/** Asks which rooms have changed since the offsets the caller knows. */
export type Sync = {
  /** The last offset known of each room. */
  rooms: Record<RoomId, Offset>,
  /** Only rooms after this one: `next` of the page before. */
  after?: RoomId,
};

/** A page of a thread. */
export type ThreadPage = {
  /** The messages, oldest first; the first of the first page is the one that was asked for. */
  messages: Array<MessageView>,
  /** `after` of the next page, if there is one. */
  next?: Seq,
};

/** Tells the room that the caller writes or has stopped. */
export type TypingSet = {
  /** The room. */
  room: RoomId,
  /** Whether the caller writes. */
  on: boolean,
};

/** Keeps another user from writing to the caller alone and from mentioning them, or allows it
 * again. */
export type UserBlock = {
  /** The other user. */
  user: UserId,
  /** Whether they are kept away. */
  on: boolean,
};

/** Asks for one user. */
export type UserGet = {
  /** The user. */
  user: UserId,
};

/** Asks whom the caller has blocked. */
export type UsersBlocked = Record<string, never>;

/** Finds users whose name or display name begins so. */
export type UsersFind = {
  /** The beginning. */
  prefix: string,
  /** How many at most; absent: the largest number. */
  limit?: number,
};

/** Users found. */
export type UsersFound = {
  /** The users. */
  users: Array<UserView>,
};

/** Request and reply of every rpc method. */
export interface Methods {
  'rooms.list': { request: RoomsList; reply: Rooms };
  'room.create': { request: RoomCreate; reply: RoomView };
  'room.get': { request: RoomGet; reply: RoomView };
  'room.update': { request: RoomUpdate; reply: RoomView };
  'room.archive': { request: RoomArchive; reply: RoomView };
  'room.delete': { request: RoomDelete; reply: Empty };
  'room.leave': { request: RoomLeave; reply: Empty };
  'room.members': { request: RoomMembers; reply: MembersPage };
  'room.add': { request: RoomAdd; reply: Empty };
  'room.set_role': { request: RoomSetRole; reply: Empty };
  'room.kick': { request: RoomKick; reply: Empty };
  'room.ban': { request: RoomBan; reply: Empty };
  'room.mute': { request: RoomMute; reply: Empty };
  'room.notify': { request: RoomNotify; reply: Empty };
  'direct.open': { request: DirectOpen; reply: RoomView };
  'direct.hide': { request: DirectHide; reply: Empty };
  'rooms.browse': { request: RoomsBrowse; reply: ListedRooms };
  'room.join': { request: RoomJoin; reply: RoomView };
  'room.access': { request: RoomAccessGet; reply: RoomAccessView };
  'room.set_access': { request: RoomAccessSet; reply: Empty };
  'invite.create': { request: InviteCreate; reply: InviteCreated };
  'invite.list': { request: InviteList; reply: InvitesPage };
  'invite.revoke': { request: InviteRevoke; reply: Empty };
  'invite.get': { request: InviteGet; reply: InvitePreview };
  'invite.accept': { request: InviteAccept; reply: RoomView };
  'message.send': { request: MessageSend; reply: MessageSent };
  'message.edit': { request: MessageEdit; reply: MessageEdited };
  'message.delete': { request: MessageDelete; reply: Empty };
  'message.react': { request: MessageReact; reply: Empty };
  'message.reactions': { request: MessageReactions; reply: ReactionsPage };
  'message.thread': { request: MessageThread; reply: ThreadPage };
  'message.pin': { request: MessagePin; reply: Empty };
  'room.pins': { request: RoomPins; reply: PinsPage };
  'message.save': { request: MessageSave; reply: Empty };
  'saved.list': { request: SavedList; reply: SavedPage };
  'saved.marks': { request: SavedMarks; reply: SavedNumbers };
  'history.get': { request: HistoryGet; reply: HistoryPage };
  'read.set': { request: ReadSet; reply: ReadState };
  'typing.set': { request: TypingSet; reply: Empty };
  'presence.watch': { request: PresenceWatch; reply: Empty };
  'users.find': { request: UsersFind; reply: UsersFound };
  'user.get': { request: UserGet; reply: UserView };
  'user.block': { request: UserBlock; reply: Empty };
  'users.blocked': { request: UsersBlocked; reply: UsersFound };
  'profile.update': { request: ProfileUpdate; reply: UserView };
  'status.set': { request: StatusSet; reply: UserView };
  'devices.list': { request: DevicesList; reply: DevicesPage };
  'devices.revoke': { request: DevicesRevoke; reply: Empty };
  'search': { request: Search; reply: SearchHits };
  'sync': { request: Sync; reply: Rooms };
}

export type Method = keyof Methods;
export type Request<M extends Method> = Methods[M]['request'];
export type Reply<M extends Method> = Methods[M]['reply'];
