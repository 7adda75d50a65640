//! Promises of the room list: badges are right whatever arrives twice, late or from two streams.

import { describe, expect, it } from 'vitest';

import type { RoomEvent } from '../protocol/events';
import type { RoomView } from '../protocol/generated/chat';
import { applyRoomEvent, applyUserEvent, byActivity, listed, read, refreshed, titleOf, unreadTotal, type Rooms } from './rooms';

const ME = 'me';
const view = (changes: Partial<RoomView> = {}): RoomView => ({
  id: 'r', name: 'Room', topic: '', kind: 'room', role: 'member', members: 2, last_seq: 0, offset: 0, epoch: 'e',
  read_seq: 0, unread: 0, mentions: 0, notify: 'all', ...changes,
});
const rooms = (...views: RoomView[]): Rooms => new Map(views.map((each) => [each.id, each]));
const arrives = (seq: number, user = 'u', mentions: string[] = []): RoomEvent => ({
  type: 'message', room: 'r', seq, offset: seq, user, name: user, body: '', at: seq, key: `k${seq}`, mentions,
});

describe('rooms', () => {
  it('counts_unread_as_the_last_number_minus_the_read_cursor', () => {
    let state = rooms(view({ last_seq: 4, read_seq: 2, unread: 2, offset: 4 }));
    state = applyRoomEvent(state, arrives(5), 5, ME);
    expect(state.get('r')).toMatchObject({ last_seq: 5, unread: 3, mentions: 0 });
    expect(read(state, 'r', 5, 0).get('r')).toMatchObject({ unread: 0 });
  });

  it('counts_no_unread_messages_that_the_room_keeps_no_longer', () => {
    let state = rooms(view({ last_seq: 9, read_seq: 2, unread: 7, offset: 9 }));
    state = applyRoomEvent(state, { type: 'expired', room: 'r', up_to: 6, at: 1 }, 10, ME);
    expect(state.get('r')).toMatchObject({ last_seq: 9, unread: 3 });
  });

  it('skips_events_that_the_view_already_holds', () => {
    const state = rooms(view({ last_seq: 4, unread: 4, offset: 9 }));
    expect(applyRoomEvent(state, arrives(4), 9, ME)).toBe(state);
  });

  it('counts_a_mention_once_though_both_streams_tell_of_it', () => {
    let state = rooms(view());
    state = applyUserEvent(state, { type: 'mention', room: 'r', seq: 1, user: 'u', name: 'u', excerpt: '', at: 1 }, () => true);
    state = applyRoomEvent(state, arrives(1, 'u', [ME]), 1, ME);
    expect(state.get('r')).toMatchObject({ unread: 1, mentions: 1 });
  });

  it('counts_a_mention_in_a_room_that_is_not_followed', () => {
    const state = applyUserEvent(rooms(view()), { type: 'mention', room: 'r', seq: 7, user: 'u', name: 'u', excerpt: '', at: 1 }, () => false);
    expect(state.get('r')).toMatchObject({ unread: 7, mentions: 1 });
  });

  it('takes_what_stands_above_ones_own_message_as_read', () => {
    const state = applyRoomEvent(rooms(view({ last_seq: 3, unread: 3, mentions: 1, offset: 3 })), arrives(4, ME, [ME]), 4, ME);
    expect(state.get('r')).toMatchObject({ last_seq: 4, read_seq: 4, unread: 0, mentions: 0 });
  });

  it('never_moves_the_read_cursor_back', () => {
    const state = rooms(view({ last_seq: 9, read_seq: 9 }));
    expect(read(state, 'r', 5, 0)).toBe(state);
  });

  it('are_the_same_values_where_a_listing_says_nothing_new', () => {
    const state = rooms(view({ last_seq: 3, offset: 3 }), view({ id: 's' }));
    const next = listed(state, [view({ last_seq: 3, offset: 3 }), view({ id: 's', topic: 'new' })]);
    expect([next.get('r') === state.get('r'), next.get('s')?.topic]).toEqual([true, 'new']);
  });

  it('keeps_as_read_what_was_read_while_an_answer_was_on_its_way', () => {
    const state = read(rooms(view({ last_seq: 4, unread: 4, mentions: 1, offset: 4 })), 'r', 4, 0);
    const stale = view({ last_seq: 5, unread: 5, mentions: 1, offset: 5 });
    expect(listed(state, [stale]).get('r')).toMatchObject({ last_seq: 5, read_seq: 4, unread: 1 });
    expect(refreshed(state, { ...stale, last_seq: 4, offset: 4 }).get('r')).toMatchObject({ read_seq: 4, unread: 0, mentions: 0 });
    expect(listed(state, [{ ...stale, epoch: 'another' }]).get('r')).toMatchObject({ read_seq: 0, unread: 5 });
  });

  it('keeps_what_it_followed_further_than_a_listing_and_drops_what_the_listing_lacks', () => {
    const state = rooms(view({ offset: 9, last_seq: 9 }), view({ id: 'gone' }));
    const next = listed(state, [view({ offset: 7, last_seq: 7 })]);
    expect(next.get('r')?.last_seq).toBe(9);
    expect(next.has('gone')).toBe(false);
  });

  it('takes_the_listing_of_another_epoch_whatever_its_offset', () => {
    expect(listed(rooms(view({ offset: 9 })), [view({ offset: 1, epoch: 'f' })]).get('r')?.offset).toBe(1);
  });

  it('adds_up_badges_without_silenced_rooms', () => {
    expect(unreadTotal(rooms(view({ unread: 2, mentions: 1 }), view({ id: 's', unread: 5, notify: 'none' })))).toEqual({ unread: 2, mentions: 1 });
  });

  it('names_a_direct_conversation_after_the_other_person', () => {
    expect(titleOf(view({ kind: 'direct', name: '', peer: { id: 'u', name: 'bo', display_name: 'Bo Lind' } }))).toBe('Bo Lind');
  });

  it('orders_by_newest_message_then_by_name', () => {
    const newest = view({ id: 'b', name: 'B', last: { room: 'b', seq: 1, user: 'u', name: 'u', body: '', at: 9, mentions: [], reactions: [] } });
    expect([view({ id: 'z', name: 'Z' }), view({ id: 'a', name: 'A' }), newest].sort(byActivity).map((each) => each.id)).toEqual(['b', 'a', 'z']);
  });
});
