//! The rpc methods: what each takes and what it answers.

import type {
  DeviceView, InviteListed, InviteTarget, InviteView, MemberView, MessageView, Notify, Role, RoomId, RoomView,
  SearchHit, UserId, UserView,
} from './views';

type Nothing = Record<string, never>;

export interface Methods {
  'rooms.list': { request: Nothing; reply: { rooms: RoomView[] } };
  'room.create': { request: { name: string; topic?: string }; reply: RoomView };
  'room.get': { request: { room: RoomId }; reply: RoomView };
  'room.update': { request: { room: RoomId; name?: string; topic?: string }; reply: RoomView };
  'room.leave': { request: { room: RoomId }; reply: Nothing };
  'room.members': {
    request: { room: RoomId; after?: UserId; limit?: number };
    reply: { members: MemberView[]; next?: UserId };
  };
  'room.set_role': { request: { room: RoomId; user: UserId; role: Role }; reply: Nothing };
  'room.kick': { request: { room: RoomId; user: UserId }; reply: Nothing };
  'room.ban': { request: { room: RoomId; user: UserId; on: boolean }; reply: Nothing };
  'room.mute': { request: { room: RoomId; user: UserId; until?: number }; reply: Nothing };
  'room.notify': { request: { room: RoomId; notify: Notify }; reply: Nothing };
  'direct.open': { request: { user: UserId }; reply: RoomView };
  'invite.create': { request: { room: RoomId; expires_in_s?: number; uses_max?: number }; reply: InviteView };
  'invite.list': { request: { room: RoomId }; reply: { invites: InviteListed[] } };
  'invite.revoke': { request: { code: string }; reply: Nothing };
  'invite.get': { request: { code: string }; reply: InviteTarget };
  'invite.accept': { request: { code: string }; reply: RoomView };
  'message.send': {
    request: { room: RoomId; key: string; body: string; reply_to?: number; attachments?: string[] };
    reply: { seq: number; offset: number; at: number; duplicate?: boolean };
  };
  'message.edit': { request: { room: RoomId; seq: number; body: string }; reply: { edited_at: number } };
  'message.delete': { request: { room: RoomId; seq: number }; reply: Nothing };
  'message.react': { request: { room: RoomId; seq: number; emoji: string; on: boolean }; reply: Nothing };
  'history.get': {
    request: { room: RoomId; before?: number; after?: number; around?: number; limit?: number };
    reply: { messages: MessageView[]; first_seq: number; last_seq: number };
  };
  'read.set': {
    request: { room: RoomId; seq: number };
    reply: { read_seq: number; unread: number; mentions: number };
  };
  'typing.set': { request: { room: RoomId; on: boolean }; reply: Nothing };
  'users.find': { request: { prefix: string; limit?: number }; reply: { users: UserView[] } };
  'user.get': { request: { user: UserId }; reply: UserView };
  'profile.update': { request: { display_name: string }; reply: UserView };
  'devices.list': { request: Nothing; reply: { devices: DeviceView[] } };
  'devices.revoke': { request: { id: string }; reply: Nothing };
  'search': {
    request: { query: string; room?: RoomId; before?: number; limit?: number };
    reply: { hits: SearchHit[] };
  };
  'sync': { request: { rooms: Record<RoomId, number> }; reply: { rooms: RoomView[] } };
}

export type Method = keyof Methods;
export type Request<M extends Method> = Methods[M]['request'];
export type Reply<M extends Method> = Methods[M]['reply'];
