//! Promises of the marks on what one has saved.

import { describe, expect, it } from 'vitest';

import { marksAfter, marksOf, withMark } from './marks';

const marks = marksOf({ r: [1, 2, 5], s: [1] });

describe('marks', () => {
  it('are_set_and_taken_away_one_by_one', () => {
    const changed = withMark(withMark(marks, 't', 9, true), 'r', 2, false);
    expect([...changed].map(([room, seqs]) => [room, [...seqs]])).toEqual([['r', [1, 5]], ['s', [1]], ['t', [9]]]);
  });

  it('go_with_messages_that_are_deleted_or_kept_no_longer', () => {
    const deleted = marksAfter(marks, { type: 'deleted', room: 'r', seq: 5, by: 'x', at: 1 });
    const expired = marksAfter(deleted, { type: 'expired', room: 'r', up_to: 1, at: 1 });
    expect([...(expired.get('r') ?? [])]).toEqual([2]);
    expect(expired.get('s')).toBe(marks.get('s'));
  });

  it('stay_the_same_value_where_nothing_changes', () => {
    expect(withMark(marks, 'r', 1, true)).toBe(marks);
    expect(withMark(marks, 't', 1, false)).toBe(marks);
    expect(marksAfter(marks, { type: 'deleted', room: 'r', seq: 4, by: 'x', at: 1 })).toBe(marks);
    expect(marksAfter(marks, { type: 'expired', room: 't', up_to: 4, at: 1 })).toBe(marks);
  });
});
