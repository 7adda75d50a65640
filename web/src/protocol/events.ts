//! What publications carry: one union per stream, told apart by `type`. Unknown types are skipped, so that an older
//! client keeps working beside a newer server.

import type { RoomEvent, UserEvent } from './generated/chat';

export type { RoomEvent, UserEvent };

const ROOM_EVENTS: ReadonlySet<string> = new Set<RoomEvent['type']>([
  'message', 'edited', 'deleted', 'reaction', 'typing', 'presence', 'joined', 'left', 'role', 'room', 'archived',
  'room_deleted', 'profile', 'expired', 'pinned',
]);
const USER_EVENTS: ReadonlySet<string> = new Set<UserEvent['type']>([
  'room_added', 'room_removed', 'mention', 'read', 'profile', 'settings', 'saved',
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
