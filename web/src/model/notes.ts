//! What happened in a room besides messages: who came, who went and why. A note stands behind the message that was the last
//! one at that moment; notes of one kind that follow each other become one line.

import type { RoomEvent } from '../protocol/events';
import type { Role, UserId } from '../protocol/generated/chat';

export type NoteKind = 'joined' | 'left' | 'kicked' | 'banned' | 'renamed' | 'pinned' | Role;

export interface Note {
  kind: NoteKind;
  /** The number of the message above it; 0 at the beginning of the room. */
  after: number;
  at: number;
  /** Whom it is about, each once, in the order of the events. */
  users: readonly UserId[];
  /** Who did it, where that was somebody else. */
  by?: UserId;
  /** The room's new name. */
  name?: string;
  /** The message that was pinned. */
  seq?: number;
}

/** Older ones are dropped: a room in which a thousand people come and go is no place to read about each. */
const NOTES_MAX = 200;

export function withNote(notes: readonly Note[], event: RoomEvent, after: number): readonly Note[] {
  const note = noteOf(event, after);
  if (!note) return notes;
  const last = notes.at(-1);
  if (last && last.kind === note.kind && last.after === note.after && last.by === note.by && note.kind !== 'renamed' && note.kind !== 'pinned') {
    const users = [...last.users.filter((user) => !note.users.includes(user)), ...note.users];
    return [...notes.slice(0, -1), { ...last, at: note.at, users }];
  }
  return [...notes.slice(-(NOTES_MAX - 1)), note];
}

function noteOf(event: RoomEvent, after: number): Note | undefined {
  switch (event.type) {
    case 'joined':
      return { kind: 'joined', after, at: event.at, users: [event.user] };
    case 'left':
      return { kind: event.reason === undefined || event.reason === 'deleted' ? 'left' : event.reason, after, at: event.at, users: [event.user], ...(event.by === undefined ? {} : { by: event.by }) };
    case 'room':
      return { kind: 'renamed', after, at: event.at, users: [], by: event.by, name: event.name };
    case 'pinned':
      return event.on ? { kind: 'pinned', after, at: event.at, users: [], by: event.by, seq: event.seq } : undefined;
    default:
      return undefined;
  }
}
