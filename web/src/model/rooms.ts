//! The list of rooms as a value: what each room's and the user's own events do to names, counts and order.
//! Unread is the room's last number minus the read cursor: it costs the same for any number of messages.

import type { RoomEvent, UserEvent } from '../protocol/events';
import type { RoomId, RoomView, UserId } from '../protocol/generated/chat';
import { messageOf } from './timeline';

export type Rooms = ReadonlyMap<RoomId, RoomView>;

/** A listing from the server. A room whose events we have followed further than the listing keeps what it has. */
export function listed(rooms: Rooms, views: readonly RoomView[]): Rooms {
  const next = new Map<RoomId, RoomView>();
  for (const view of views) {
    const known = rooms.get(view.id);
    next.set(view.id, known ? newer(known, view) : view);
  }
  return next;
}

/** One room as the server told it just now. */
export function refreshed(rooms: Rooms, view: RoomView): Rooms {
  const known = rooms.get(view.id);
  return withRoom(rooms, known && known.offset <= view.offset ? newer(known, view) : view);
}

/** What was read here while the server's answer was on its way stays read: the cursor never moves back. */
function newer(known: RoomView, view: RoomView): RoomView {
  if (known.epoch !== view.epoch) return view;
  if (known.offset > view.offset || isSame(known, view)) return known;
  if (known.read_seq <= view.read_seq) return view;
  const unread = Math.max(0, view.last_seq - known.read_seq);
  return { ...view, read_seq: known.read_seq, unread, mentions: unread === 0 ? 0 : view.mentions };
}

/** Both come from the same server, so that what says the same is written the same. */
function isSame(known: RoomView, view: RoomView): boolean {
  return known.offset === view.offset && JSON.stringify(known) === JSON.stringify(view);
}

export function withRoom(rooms: Rooms, view: RoomView): Rooms {
  return new Map(rooms).set(view.id, view);
}

export function without(rooms: Rooms, room: RoomId): Rooms {
  const next = new Map(rooms);
  next.delete(room);
  return next;
}

/** Applies an event of a room's stream; one at or before the view's offset is already part of it. */
export function applyRoomEvent(rooms: Rooms, event: RoomEvent, offset: number | undefined, me: UserId): Rooms {
  const view = rooms.get(event.room);
  if (!view || event.type === 'typing' || event.type === 'presence') return rooms;
  if (offset !== undefined && offset <= view.offset) return rooms;
  const moved = offset === undefined ? view : { ...view, offset };
  return withRoom(rooms, changed(moved, event, me));
}

function changed(view: RoomView, event: RoomEvent, me: UserId): RoomView {
  switch (event.type) {
    case 'message':
      return withMessage(view, event, me);
    case 'edited':
      return view.last?.seq === event.seq
        ? { ...view, last: { ...view.last, body: event.body, edited_at: event.edited_at } }
        : view;
    case 'deleted':
      return view.last?.seq === event.seq ? { ...view, last: { ...view.last, body: '', deleted: true } } : view;
    case 'expired':
      return withoutOld(view, event.up_to);
    case 'joined':
      return { ...view, members: view.members + 1 };
    case 'left':
      return { ...view, members: Math.max(0, view.members - 1) };
    case 'role':
      return event.user === me ? withRole(view, event) : view;
    case 'room':
      return { ...view, name: event.name, topic: event.topic };
    case 'profile':
      return view.peer?.id === event.user ? { ...view, peer: { ...view.peer, display_name: event.display_name } } : view;
    case 'archived':
      return withArchived(view, event.on);
    case 'pinned':
    case 'reaction':
    case 'room_deleted':
    case 'typing':
    case 'presence':
      return view;
  }
}

/** Nobody has to read what is gone. */
function withoutOld(view: RoomView, upTo: number): RoomView {
  const { last, ...rest } = view;
  const unread = Math.min(view.unread, Math.max(0, view.last_seq - upTo));
  return last && last.seq > upTo ? { ...rest, last, unread } : { ...rest, unread };
}

function withArchived(view: RoomView, on: boolean): RoomView {
  const { archived: _archived, ...rest } = view;
  return on ? { ...rest, archived: true } : rest;
}

function withMessage(view: RoomView, event: Extract<RoomEvent, { type: 'message' }>, me: UserId): RoomView {
  if (event.seq <= view.last_seq) return view;
  const last = messageOf(event);
  // Whoever writes has read what stands above: the server moves the author's cursor along.
  if (event.user === me) return { ...view, last_seq: event.seq, read_seq: event.seq, unread: 0, mentions: 0, last };
  const mentioned = event.mentions.includes(me) || event.mention_all === true;
  const unread = event.seq - view.read_seq;
  return { ...view, last_seq: event.seq, unread, mentions: view.mentions + (mentioned ? 1 : 0), last };
}

function withRole(view: RoomView, event: Extract<RoomEvent, { type: 'role' }>): RoomView {
  const { muted_until: _until, ...rest } = view;
  return event.muted_until === undefined
    ? { ...rest, role: event.role }
    : { ...rest, role: event.role, muted_until: event.muted_until };
}

/** Applies an event of the user's own stream. `followed` tells whether the room's stream is followed as well. */
export function applyUserEvent(rooms: Rooms, event: UserEvent, followed: (room: RoomId) => boolean): Rooms {
  switch (event.type) {
    case 'room_added':
      return withRoom(rooms, event.room);
    case 'room_removed':
      return without(rooms, event.room);
    case 'mention': {
      const view = rooms.get(event.room);
      // A followed room counts the mention when its message arrives; counting here too would double it.
      if (!view || followed(event.room) || event.seq <= view.last_seq) return rooms;
      const unread = event.seq - view.read_seq;
      return withRoom(rooms, { ...view, last_seq: event.seq, unread, mentions: view.mentions + 1 });
    }
    case 'read':
      return read(rooms, event.room, event.read_seq, event.mentions);
    case 'settings': {
      const view = rooms.get(event.room);
      return view ? withRoom(rooms, { ...view, notify: event.notify }) : rooms;
    }
    case 'profile':
      return withProfile(rooms, event);
    case 'saved':
      return rooms;
  }
}

/** Moves the read cursor; it never moves back. */
export function read(rooms: Rooms, room: RoomId, readSeq: number, mentions: number): Rooms {
  const view = rooms.get(room);
  if (!view || readSeq < view.read_seq) return rooms;
  const unread = Math.max(0, view.last_seq - readSeq);
  return withRoom(rooms, { ...view, read_seq: readSeq, unread, mentions: unread === 0 ? 0 : mentions });
}

function withProfile(rooms: Rooms, event: Extract<UserEvent, { type: 'profile' }>): Rooms {
  const next = new Map(rooms);
  for (const view of rooms.values()) {
    if (view.peer?.id !== event.user) continue;
    const peer = { id: event.user, name: event.name, display_name: event.display_name };
    next.set(view.id, { ...view, peer });
  }
  return next;
}

/** What a person calls the room: its name, or the other person of a direct conversation. */
export function titleOf(view: RoomView): string {
  return view.kind === 'direct' && view.peer ? view.peer.display_name || view.peer.name : view.name;
}

/** Newest activity first; rooms without messages come last, by name. */
export function byActivity(a: RoomView, b: RoomView): number {
  return (b.last?.at ?? 0) - (a.last?.at ?? 0) || titleOf(a).localeCompare(titleOf(b));
}

export function unreadTotal(rooms: Rooms): { unread: number; mentions: number } {
  let unread = 0;
  let mentions = 0;
  for (const view of rooms.values()) {
    if (view.notify === 'none') continue;
    unread += view.unread;
    mentions += view.mentions;
  }
  return { unread, mentions };
}
