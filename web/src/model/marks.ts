//! Which messages of which rooms carry a mark, as a value. What changes nothing gives the same value back.

import type { RoomEvent } from '../protocol/events';
import type { RoomId } from '../protocol/generated/chat';

export type Marks = ReadonlyMap<RoomId, ReadonlySet<number>>;

export function marksOf(rooms: Readonly<Record<RoomId, readonly number[]>>): Marks {
  return new Map(Object.entries(rooms).map(([room, seqs]) => [room, new Set(seqs)]));
}

export function withMark(marks: Marks, room: RoomId, seq: number, on: boolean): Marks {
  const known = marks.get(room) ?? new Set();
  if (known.has(seq) === on) return marks;
  const seqs = new Set(known);
  if (on) seqs.add(seq);
  else seqs.delete(seq);
  return new Map(marks).set(room, seqs);
}

/** Marks go with messages that are deleted or kept no longer. */
export function marksAfter(marks: Marks, event: RoomEvent): Marks {
  if (event.type === 'deleted') return withMark(marks, event.room, event.seq, false);
  const known = marks.get(event.room);
  if (event.type !== 'expired' || !known) return marks;
  const seqs = new Set([...known].filter((seq) => seq > event.up_to));
  return seqs.size === known.size ? marks : new Map(marks).set(event.room, seqs);
}
