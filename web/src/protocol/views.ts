//! The shapes that replies and events carry, as docs/protocol.md names them. Ids are opaque strings, times are milliseconds.

export type RoomId = string;
export type UserId = string;
export type Role = 'owner' | 'moderator' | 'member';
export type Notify = 'all' | 'mentions' | 'none';

export interface UserView {
  id: UserId;
  name: string;
  display_name: string;
}

export interface Attachment {
  id: string;
  name: string;
  media_type: string;
  size: number;
  width?: number;
  height?: number;
  url: string;
  thumbnail_url?: string;
}

export interface ReplyView {
  seq: number;
  user: UserId;
  name: string;
  body: string;
}

export interface ReactionView {
  emoji: string;
  count: number;
  mine: boolean;
}

export interface MessageView {
  room: RoomId;
  seq: number;
  user: UserId;
  name: string;
  body: string;
  at: number;
  edited_at?: number;
  deleted?: boolean;
  key?: string;
  reply_to?: ReplyView;
  mentions: UserId[];
  mention_all?: boolean;
  reactions: ReactionView[];
  attachments?: Attachment[];
}

export interface RoomView {
  id: RoomId;
  name: string;
  topic: string;
  kind: 'room' | 'direct';
  role: Role;
  members: number;
  last_seq: number;
  offset: number;
  epoch: string;
  read_seq: number;
  unread: number;
  mentions: number;
  notify: Notify;
  peer?: UserView;
  last?: MessageView;
  muted_until?: number;
}

export interface MemberView {
  user: UserId;
  name: string;
  display_name: string;
  role: Role;
  online: boolean;
  muted_until?: number;
}

export interface InviteView {
  code: string;
  room: RoomId;
  expires_at?: number;
  uses_max?: number;
}

export interface InviteListed {
  code: string;
  expires_at?: number;
  uses: number;
  uses_max?: number;
  by: UserId;
}

export interface InviteTarget {
  code: string;
  room: { id: RoomId; name: string; topic: string; members: number };
}

export interface DeviceView {
  id: string;
  label: string;
  created_at: number;
  seen_at: number;
  current: boolean;
}

export interface SearchHit {
  room: RoomId;
  seq: number;
  user: UserId;
  name: string;
  excerpt: string;
  at: number;
}
