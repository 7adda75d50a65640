//! What publications carry: one union per stream, told apart by `type`. Unknown types are skipped, so that an older
//! client keeps working beside a newer server.

import type { Attachment, Notify, ReplyView, Role, RoomId, RoomView, UserId } from './views';

export type RoomEvent =
  | {
      type: 'message';
      room: RoomId;
      seq: number;
      offset: number;
      user: UserId;
      name: string;
      body: string;
      at: number;
      key: string;
      reply_to?: ReplyView;
      mentions: UserId[];
      mention_all?: boolean;
      attachments?: Attachment[];
    }
  | { type: 'edited'; room: RoomId; seq: number; body: string; edited_at: number; mentions: UserId[] }
  | { type: 'deleted'; room: RoomId; seq: number; by: UserId; at: number }
  | { type: 'reaction'; room: RoomId; seq: number; user: UserId; emoji: string; on: boolean }
  | { type: 'typing'; room: RoomId; user: UserId; name: string; on: boolean }
  | { type: 'joined'; room: RoomId; user: UserId; name: string; role: Role; at: number }
  | { type: 'left'; room: RoomId; user: UserId; by?: UserId; reason?: 'left' | 'kicked' | 'banned'; at: number }
  | { type: 'role'; room: RoomId; user: UserId; role: Role; muted_until?: number; by: UserId; at: number }
  | { type: 'room'; room: RoomId; name: string; topic: string; by: UserId; at: number };

export type UserEvent =
  | { type: 'room_added'; room: RoomView }
  | { type: 'room_removed'; room: RoomId; reason: string }
  | { type: 'mention'; room: RoomId; seq: number; user: UserId; name: string; excerpt: string; at: number }
  | { type: 'read'; room: RoomId; read_seq: number; unread: number; mentions: number }
  | { type: 'profile'; user: UserId; name: string; display_name: string }
  | { type: 'settings'; room: RoomId; notify: Notify };

const ROOM_EVENTS: ReadonlySet<string> = new Set<RoomEvent['type']>([
  'message', 'edited', 'deleted', 'reaction', 'typing', 'joined', 'left', 'role', 'room',
]);
const USER_EVENTS: ReadonlySet<string> = new Set<UserEvent['type']>([
  'room_added', 'room_removed', 'mention', 'read', 'profile', 'settings',
]);

function typeOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined;
  return typeof value.type === 'string' ? value.type : undefined;
}

/** The event of a room's stream, or undefined for a type that this client does not know. */
export function asRoomEvent(value: unknown): RoomEvent | undefined {
  const type = typeOf(value);
  return type !== undefined && ROOM_EVENTS.has(type) ? (value as RoomEvent) : undefined;
}

/** The event of the user's own stream, or undefined for a type that this client does not know. */
export function asUserEvent(value: unknown): UserEvent | undefined {
  const type = typeOf(value);
  return type !== undefined && USER_EVENTS.has(type) ? (value as UserEvent) : undefined;
}
