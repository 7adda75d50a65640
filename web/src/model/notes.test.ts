//! Promises of the lines about coming and going.

import { describe, expect, it } from 'vitest';

import type { RoomEvent } from '../protocol/events';
import { withNote, type Note } from './notes';

const joined = (user: string): RoomEvent => ({ type: 'joined', room: 'r', user, name: user, role: 'member', at: 1 });
const kicked = (user: string, by: string): RoomEvent => ({ type: 'left', room: 'r', user, by, reason: 'kicked', at: 2 });
const run = (events: [RoomEvent, number][]) => events.reduce<readonly Note[]>((notes, [event, after]) => withNote(notes, event, after), []);

describe('notes', () => {
  it('of_one_kind_in_a_row_are_one_line', () => {
    expect(run([[joined('a'), 3], [joined('b'), 3], [joined('a'), 3]])).toMatchObject([{ kind: 'joined', after: 3, users: ['b', 'a'] }]);
  });

  it('stay_apart_when_something_was_said_between_or_somebody_else_did_it', () => {
    expect(run([[joined('a'), 3], [joined('b'), 4]])).toHaveLength(2);
    expect(run([[kicked('a', 'x'), 3], [kicked('b', 'y'), 3]])).toHaveLength(2);
  });

  it('say_who_did_it', () => {
    expect(run([[kicked('a', 'x'), 3]])).toMatchObject([{ kind: 'kicked', users: ['a'], by: 'x' }]);
  });

  it('name_each_pinned_message_and_say_nothing_of_one_that_is_so_no_more', () => {
    const pinned = (seq: number, on: boolean): RoomEvent => ({ type: 'pinned', room: 'r', seq, by: 'x', on, at: 3 });
    const notes = run([[pinned(1, true), 3], [pinned(2, true), 3], [pinned(1, false), 3]]);
    expect(notes).toMatchObject([{ kind: 'pinned', by: 'x', seq: 1 }, { kind: 'pinned', by: 'x', seq: 2 }]);
  });

  it('do_not_grow_without_end', () => {
    expect(run(Array.from({ length: 500 }, (_, at) => [joined(`u${at}`), at]))).toHaveLength(200);
  });
});
