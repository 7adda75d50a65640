//! Promises of the small models: headings, addresses, completion, typing, matching, following.

import { describe, expect, it } from 'vitest';

import type { MessageView, RoomView } from '../protocol/generated/chat';
import { complete, findNamed, triggerAt } from './completion';
import { followed } from './follow';
import { matching } from './matching';
import { formatRoute, parseRoute, type Route } from './route';
import { headingOf } from './rows';
import { expired, NOBODY, noticed, TYPING_TTL_MS } from './typing';

const NOON = new Date(2026, 10, 21, 12).getTime();
const message = (seq: number, at: number, user = 'u'): MessageView => ({ room: 'r', seq, user, name: user, body: '', at, mentions: [], reactions: [] });

describe('headings', () => {
  it('group_messages_of_one_author_within_five_minutes', () => {
    const heading = headingOf(message(2, NOON + 60_000), message(1, NOON), undefined);
    expect(heading).toEqual({ day: undefined, isNew: false, author: false });
    expect(headingOf(message(2, NOON + 301_000), message(1, NOON), undefined).author).toBe(true);
    expect(headingOf(message(2, NOON, 'v'), message(1, NOON), undefined).author).toBe(true);
  });

  it('open_a_day_at_local_midnight', () => {
    const midnight = new Date(2026, 10, 22).getTime();
    expect(headingOf(message(2, midnight), message(1, midnight - 1), undefined).day).toBe(midnight);
  });

  it('draw_the_new_messages_line_after_the_last_read_number', () => {
    expect([5, 6, 7].map((seq) => headingOf(message(seq, NOON), message(seq - 1, NOON), 5).isNew)).toEqual([false, true, false]);
  });
});

describe('addresses', () => {
  it.each<Route>([{ name: 'home' }, { name: 'room', room: '0abc' }, { name: 'room', room: '0abc', seq: 7 }, { name: 'invite', code: 'a/b ü' }, { name: 'inbox' }, { name: 'saved' }, { name: 'setup' }, { name: 'reset' }, { name: 'admin', view: 'overview' }, { name: 'admin', view: 'log' }])(
    'come_back_from_what_they_were_written_as %o',
    (route) => expect(parseRoute(formatRoute(route))).toEqual(route),
  );

  it('survive_malformed_escapes', () => {
    expect(parseRoute('/invite/%E0%A4%A')).toEqual({ name: 'invite', code: '%E0%A4%A' });
  });
});

describe('completion', () => {
  it('starts_at_an_at_sign_and_after_two_letters_of_an_emoji_name', () => {
    expect(triggerAt('hi @bo', 6)).toEqual({ kind: 'mention', query: 'bo', start: 3, end: 6 });
    expect(triggerAt('hi :sm', 6)).toEqual({ kind: 'emoji', query: 'sm', start: 3, end: 6 });
    expect(triggerAt('hi :s', 5)).toBeUndefined();
    expect(triggerAt('bo@example.org', 14)).toBeUndefined();
    expect(triggerAt('12:30', 5)).toBeUndefined();
  });

  it('replaces_only_the_trigger_and_leaves_one_space', () => {
    const trigger = { kind: 'mention', query: 'bo', start: 3, end: 6 } as const;
    expect(complete('hi @bo how', trigger, '@bo')).toEqual({ text: 'hi @bo how', cursor: 7 });
  });

  it('finds_people_by_name_and_by_any_word_of_the_display_name', () => {
    const people = [{ name: 'ann', display_name: 'Bella Ann' }, { name: 'bo', display_name: 'Bo' }, { name: 'cy', display_name: 'Cy Lo' }];
    expect(findNamed(people, 'b', 9).map(({ name }) => name)).toEqual(['bo', 'ann']);
  });
});

describe('typing', () => {
  it('ends_by_itself_when_no_notice_follows', () => {
    const typists = noticed(NOBODY, 'u', 'Bo', true, 0);
    expect(expired(typists, TYPING_TTL_MS - 1)).toBe(typists);
    expect(expired(typists, TYPING_TTL_MS).size).toBe(0);
    expect(noticed(typists, 'u', 'Bo', false, 1).size).toBe(0);
  });
});

describe('matching', () => {
  it('prefers_beginnings_to_words_to_places_to_letters_in_order', () => {
    const names = ['xhxaxr', 'sharp', 'old harbour', 'harbour', 'none'];
    expect(matching(names, 'HAR', (name) => name)).toEqual(['harbour', 'old harbour', 'sharp', 'xhxaxr']);
  });
});

describe('following', () => {
  it('keeps_the_open_room_and_the_most_active_within_the_limit', () => {
    const view = (id: string, at: number): RoomView => ({
      id, name: id, topic: '', kind: 'room', role: 'member', members: 1, last_seq: 1, offset: 1, epoch: 'e', read_seq: 0,
      unread: 0, mentions: 0, notify: 'all', last: message(1, at),
    });
    const rooms = new Map(['a', 'b', 'c', 'd'].map((id, index) => [id, view(id, index)]));
    expect([...followed(rooms, 'a', 3)].sort()).toEqual(['a', 'c', 'd']);
  });
});
