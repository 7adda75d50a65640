//! Promises of rows: what has changed is a new value, and what has not is the old one, so that it is not drawn again.

import { describe, expect, it } from 'vitest';

import type { MessageView } from '../protocol/generated/chat';
import { rowsOf } from './rows';
import { Timeline } from './timeline';

const NOON = new Date(2026, 10, 21, 12).getTime();
const message = (seq: number, changes: Partial<MessageView> = {}): MessageView => ({
  room: 'r', seq, user: 'u', name: 'u', body: `m${seq}`, at: NOON + seq, mentions: [], reactions: [], ...changes,
});
const answerTo = (seq: number, answered: number) =>
  message(seq, { reply_to: { seq: answered, user: 'u', name: 'u', body: '' } });

function filled(): Timeline {
  const timeline = new Timeline('r', 4);
  timeline.addPage([1, 2, 3].map((seq) => message(seq)));
  return timeline;
}

describe('rows', () => {
  it('stay_the_same_values_when_another_message_arrives', () => {
    const timeline = filled();
    const before = rowsOf(timeline, { from: 1, to: 3 }, undefined, []);
    timeline.addPage([message(4)]);
    const after = rowsOf(timeline, { from: 2, to: 4 }, undefined, before);
    expect(after.map(({ seq }) => seq)).toEqual([2, 3, 4]);
    expect(after[0]).toBe(before[1]);
    expect(after[1]).toBe(before[2]);
  });

  it('are_new_where_a_message_came_changed_was_answered_or_has_the_line_above_it', () => {
    const timeline = filled();
    const range = { from: 1, to: 4 };
    const before = rowsOf(timeline, range, undefined, []);
    expect(before[3]).toEqual({ seq: 4, message: undefined, grown: undefined, lastAnswer: undefined });
    timeline.addPage([message(2, { body: 'new', edited_at: NOON }), answerTo(4, 1)]);
    const after = rowsOf(timeline, range, 2, before);
    expect(after.map((row, index) => row === before[index])).toEqual([false, false, false, false]);
    expect(after[0]).toMatchObject({ grown: { count: 1, last: 4 }, lastAnswer: { seq: 4 } });
    expect(after[1]?.message?.body).toBe('new');
    expect(after[2]?.isNew).toBe(true);
    expect(after[3]?.author).toBe(true);
  });

  it('tell_of_no_thread_where_a_single_answer_stands_right_below', () => {
    const timeline = filled();
    timeline.addPage([answerTo(4, 3)]);
    const range = { from: 1, to: 6 };
    expect(rowsOf(timeline, range, undefined, [])[2]?.grown).toBeUndefined();
    timeline.addPage([message(5), answerTo(6, 3)]);
    expect(rowsOf(timeline, range, undefined, [])[2]?.grown).toEqual({ count: 2, last: 6 });
  });

  it('begin_with_the_first_message_that_the_room_keeps', () => {
    const timeline = filled();
    timeline.keepFrom(3);
    expect(rowsOf(timeline, { from: 1, to: 4 }, undefined, []).map(({ seq }) => seq)).toEqual([3, 4]);
  });
});
