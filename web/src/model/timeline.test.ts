//! Promises of the timeline: whatever arrives, in whatever order and how often, a message stands once and in its place.

import { describe, expect, it } from 'vitest';

import type { RoomEvent } from '../protocol/events';
import type { MessageView } from '../protocol/generated/chat';
import { Timeline } from './timeline';

const ME = 'me';
const message = (seq: number, changes: Partial<MessageView> = {}): MessageView => ({
  room: 'r', seq, user: 'u', name: 'u', body: `m${seq}`, at: seq, key: `k${seq}`, mentions: [], reactions: [], ...changes,
});
const arrives = (seq: number): RoomEvent => ({
  type: 'message', room: 'r', seq, offset: seq, user: 'u', name: 'u', body: `m${seq}`, at: seq, key: `k${seq}`, mentions: [],
});
const reaction = (user: string, on: boolean): RoomEvent => ({ type: 'reaction', room: 'r', seq: 1, user, emoji: '👍', on });

describe('timeline', () => {
  it('takes_the_same_message_once', () => {
    const timeline = new Timeline('r', 0);
    expect([timeline.apply(arrives(1), ME), timeline.apply(arrives(1), ME)]).toEqual([true, false]);
    timeline.addPage([message(1)]);
    expect(timeline.heldCount).toBe(1);
  });

  it('knows_what_is_missing_from_numbers_alone', () => {
    const timeline = new Timeline('r', 100);
    timeline.addPage([message(40), message(41), message(45)]);
    expect(timeline.missing({ from: 38, to: 60 }, 100)).toEqual({ from: 38, to: 39 });
    expect(timeline.missing({ from: 40, to: 60 }, 100)).toEqual({ from: 42, to: 44 });
    expect(timeline.missing({ from: 46, to: 200 }, 10)).toEqual({ from: 46, to: 55 });
    expect(timeline.missing({ from: 40, to: 41 }, 10)).toBeUndefined();
  });

  it('marks_what_is_pinned_until_it_is_unpinned_or_deleted', () => {
    const timeline = new Timeline('r', 2);
    const pinned = (seq: number, on: boolean): RoomEvent => ({ type: 'pinned', room: 'r', seq, by: 'x', on, at: 3 });
    timeline.addPage([message(1), message(2)]);
    for (const seq of [1, 2]) expect(timeline.apply(pinned(seq, true), ME)).toBe(true);
    expect([timeline.at(1)?.pinned, timeline.at(2)?.pinned]).toEqual([true, true]);
    timeline.apply(pinned(1, false), ME);
    timeline.apply({ type: 'deleted', room: 'r', seq: 2, by: 'x', at: 4 }, ME);
    expect([timeline.at(1), timeline.at(2)].map((held) => held && 'pinned' in held)).toEqual([false, false]);
  });

  it('shows_archived_messages_but_fetches_them_again', () => {
    const timeline = new Timeline('r', 2);
    timeline.addArchived([message(1), message(2)]);
    expect(timeline.at(2)?.body).toBe('m2');
    expect(timeline.missing({ from: 1, to: 2 }, 100)).toEqual({ from: 1, to: 2 });
    timeline.addPage([message(1), message(2, { body: 'changed while away' })]);
    expect(timeline.at(2)?.body).toBe('changed while away');
  });

  it('keeps_everything_readable_after_a_gap_and_counts_it_as_missing', () => {
    const timeline = new Timeline('r', 1);
    timeline.addPage([message(1)]);
    timeline.invalidate();
    expect(timeline.at(1)).toBeDefined();
    expect(timeline.missing({ from: 1, to: 1 }, 10)).toEqual({ from: 1, to: 1 });
  });

  it('lets_an_edit_win_over_a_page_read_before_it', () => {
    const timeline = new Timeline('r', 1);
    timeline.addPage([message(1)]);
    timeline.apply({ type: 'edited', room: 'r', seq: 1, body: 'new', edited_at: 9, mentions: [] }, ME);
    timeline.addPage([message(1)]);
    expect(timeline.at(1)?.body).toBe('new');
  });

  it('never_brings_a_deleted_message_back', () => {
    const timeline = new Timeline('r', 1);
    timeline.addPage([message(1)]);
    timeline.apply({ type: 'deleted', room: 'r', seq: 1, by: 'u', at: 9 }, ME);
    timeline.addPage([message(1)]);
    expect(timeline.at(1)).toMatchObject({ deleted: true, body: '' });
  });

  it('never_brings_a_deleted_message_back_by_the_late_answer_to_an_edit', () => {
    const timeline = new Timeline('r', 1);
    timeline.addPage([message(1)]);
    timeline.apply({ type: 'deleted', room: 'r', seq: 1, by: 'u', at: 9 }, ME);
    timeline.apply({ type: 'edited', room: 'r', seq: 1, body: 'new', edited_at: 8, mentions: ['v'] }, ME);
    expect(timeline.at(1)).toMatchObject({ deleted: true, body: '', mentions: [] });
  });

  it('holds_what_is_near_and_what_is_new_of_a_long_room_and_asks_for_the_rest_again', () => {
    const timeline = new Timeline('r', 0);
    const counts: number[] = [];
    for (let seq = 1; seq <= 5_000; seq += 1) {
      timeline.apply({ ...arrives(seq), ...(seq === 900 ? { reply_to: { seq: 10, user: 'u', name: 'u', body: 'm10' } } : {}) }, ME);
      timeline.letGo({ from: 100, to: 130 }, 1_000);
      counts.push(timeline.heldCount);
    }
    expect(Math.max(...counts)).toBeLessThanOrEqual(1_000);
    expect([timeline.at(100)?.seq, timeline.at(130)?.seq, timeline.at(5_000)?.seq, timeline.at(2_500)]).toEqual([100, 130, 5_000, undefined]);
    expect(timeline.newest(200)).toHaveLength(200);
    expect(timeline.missing({ from: 2_500, to: 2_520 }, 100)).toEqual({ from: 2_500, to: 2_520 });
    // An answer that is not held counts until it is deleted.
    expect([timeline.at(900), timeline.grownFrom(10)?.count, timeline.isWholeAfter(10)]).toEqual([undefined, 1, false]);
    timeline.apply({ type: 'deleted', room: 'r', seq: 900, by: 'u', at: 9 }, ME);
    expect(timeline.grownFrom(10)).toBeUndefined();
  });

  it('forgets_what_the_room_keeps_no_longer_and_never_asks_for_it', () => {
    const timeline = new Timeline('r', 5);
    timeline.addPage([message(1), message(2), message(3)]);
    expect(timeline.apply({ type: 'expired', room: 'r', up_to: 2, at: 9 }, ME)).toBe(true);
    expect(timeline.apply({ type: 'expired', room: 'r', up_to: 1, at: 9 }, ME)).toBe(false);
    timeline.addPage([message(2)]);
    expect([timeline.firstSeq, timeline.at(2), timeline.at(3)?.seq]).toEqual([3, undefined, 3]);
    expect(timeline.missing({ from: 1, to: 5 }, 100)).toEqual({ from: 4, to: 5 });
    expect(timeline.missing({ from: 1, to: 3 }, 100)).toBeUndefined();
  });

  it('forgets_what_a_server_has_lost_and_keeps_what_came_since', () => {
    const timeline = new Timeline('r', 5);
    timeline.addPage([1, 2, 3, 4, 5].map((seq) => message(seq)));
    timeline.invalidate();
    timeline.apply(arrives(4), ME);
    expect(timeline.cutTo(3)).toBe(true);
    expect([timeline.lastSeq, timeline.at(5), timeline.at(4)?.seq, timeline.at(3)?.seq]).toEqual([4, undefined, 4, 3]);
    expect(timeline.missing({ from: 1, to: 9 }, 9)).toEqual({ from: 1, to: 3 });
    expect(timeline.cutTo(9)).toBe(false);
  });

  it('counts_reactions_of_others_and_takes_ones_own_only_once', () => {
    const timeline = new Timeline('r', 1);
    timeline.addPage([message(1)]);
    timeline.apply(reaction('u', true), ME);
    timeline.apply(reaction(ME, true), ME);
    timeline.apply(reaction(ME, true), ME);
    expect(timeline.at(1)?.reactions).toEqual([{ emoji: '👍', count: 2, mine: true }]);
    timeline.apply(reaction(ME, false), ME);
    timeline.apply(reaction('u', false), ME);
    expect(timeline.at(1)?.reactions).toEqual([]);
  });

  it('hands_out_the_newest_in_order_and_stops_at_a_hole', () => {
    const timeline = new Timeline('r', 5);
    timeline.addPage([message(2), message(4), message(5)]);
    expect(timeline.newest(10).map(({ seq }) => seq)).toEqual([4, 5]);
  });

  it('knows_which_messages_are_answered_and_where_a_thread_begins', () => {
    const answer = (seq: number, to: number) => message(seq, { reply_to: { seq: to, user: 'u', name: 'u', body: '' } });
    const timeline = new Timeline('r', 9);
    timeline.addPage([message(1), answer(3, 1), answer(5, 3), answer(8, 2), answer(9, 5)]);
    expect(timeline.grownFrom(1)).toEqual({ count: 3, last: 9 });
    expect([2, 3, 4, 5, 9].map((seq) => timeline.grownFrom(seq)?.count)).toEqual([1, 2, undefined, 1, undefined]);
    expect([1, 5, 9, 4].map((seq) => timeline.rootOf(seq))).toEqual([1, 1, 1, 4]);
    // Not held: it may have been an answer itself.
    expect(timeline.rootOf(8)).toBe(2);
    timeline.apply({ type: 'deleted', room: 'r', seq: 3, by: 'u', at: 1 }, ME);
    expect(timeline.rootOf(9)).toBe(5);
    // Its answers left the thread with it.
    expect(timeline.grownFrom(1)).toBeUndefined();
  });

  it('knows_from_where_on_nothing_is_missing', () => {
    const timeline = new Timeline('r', 6);
    timeline.addPage([message(2), message(5), message(6)]);
    expect([1, 3, 4, 5, 6].map((seq) => timeline.isWholeAfter(seq))).toEqual([false, false, true, true, true]);
    timeline.apply(arrives(7), ME);
    expect([3, 4].map((seq) => timeline.isWholeAfter(seq))).toEqual([false, true]);
    timeline.addPage([message(3), message(4)]);
    expect([0, 1].map((seq) => timeline.isWholeAfter(seq))).toEqual([false, true]);
    timeline.extendTo(9);
    expect([7, 8, 9].map((seq) => timeline.isWholeAfter(seq))).toEqual([false, false, true]);
    timeline.addPage([message(8), message(9)]);
    expect(timeline.isWholeAfter(1)).toBe(true);
    timeline.invalidate();
    expect(timeline.isWholeAfter(8)).toBe(false);
  });
});
