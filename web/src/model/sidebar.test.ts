//! Promises of the list of rooms.

import { describe, expect, it } from 'vitest';

import type { RoomView } from '../protocol/generated/chat';
import { arranged, moveTo, NO_LAYOUT, sectionOf, SHOWN, toggleClosed, togglePinned, visible, type Layout } from './sidebar';

const room = (id: string, name: string, more: Partial<RoomView> = {}): RoomView => ({
  id, name, topic: '', kind: 'room', role: 'member', members: 2, last_seq: 0, offset: 0, epoch: 'e', read_seq: 0, unread: 0,
  mentions: 0, notify: 'all', ...more,
});
const ROOMS = new Map([
  room('1', 'Zoo'), room('2', 'Äpfel'), room('3', 'Boats', { unread: 4 }), room('4', 'Noise', { notify: 'none' }),
  room('5', '', { kind: 'direct', peer: { id: 'p', name: 'pia', display_name: 'Pia' } }),
].map((view) => [view.id, view]));
const shown = (layout: Layout) => Object.fromEntries(arranged(ROOMS, layout, []).map(({ id, rooms }) => [id, rooms.map((view) => view.id)]));

describe('the list of rooms', () => {
  it('stands_by_name_whatever_is_going_on', () => {
    expect(shown(NO_LAYOUT)).toEqual({ pinned: [], rooms: ['2', '3', '1'], direct: ['5'], muted: ['4'], archived: [] });
  });

  it('shows_each_room_once_where_it_was_put', () => {
    const layout = moveTo(togglePinned(NO_LAYOUT, '1'), '4', 'Later');
    expect(shown(layout)).toEqual({ pinned: ['1'], 'own:Later': ['4'], rooms: ['2', '3'], direct: ['5'], muted: [], archived: [] });
    expect(sectionOf(layout, '4')).toBe('Later');
    expect(shown(moveTo(togglePinned(layout, '1'), '4', undefined))).toEqual(shown(NO_LAYOUT));
  });

  it('puts_what_is_archived_away_wherever_it_was', () => {
    const layout = togglePinned(NO_LAYOUT, '1');
    const archived = new Map([...ROOMS].map(([id, view]) => [id, id === '1' ? { ...view, archived: true } : view]));
    const sections = arranged(archived, layout, []);
    expect(sections.find(({ id }) => id === 'pinned')?.rooms).toEqual([]);
    const away = sections.find(({ id }) => id === 'archived');
    expect(away?.rooms.map((view) => view.id)).toEqual(['1']);
    expect(away && visible(away, layout, undefined)).toEqual([]);
    expect(away && visible(away, layout, '1').map((view) => view.id)).toEqual(['1']);
  });

  it('keeps_what_is_unread_visible_in_a_folded_section', () => {
    const layout = toggleClosed(NO_LAYOUT, 'rooms');
    const rooms = arranged(ROOMS, layout, []).find(({ id }) => id === 'rooms');
    expect(rooms && visible(rooms, layout, undefined).map((view) => view.id)).toEqual(['3']);
    expect(rooms && visible(rooms, layout, '1').map((view) => view.id)).toEqual(['3', '1']);
  });

  it('shows_the_beginning_of_a_long_section_and_whatever_needs_attention', () => {
    const many = Array.from({ length: 500 }, (_, index) => room(`${index}`, `Room ${index}`, { unread: index === 400 ? 1 : 0 }));
    const rooms = arranged(new Map(many.map((view) => [view.id, view])), NO_LAYOUT, []).find(({ id }) => id === 'rooms');
    if (!rooms) throw new Error('there are rooms');
    const ids = (open: string, limit?: number) => visible(rooms, NO_LAYOUT, open, limit).map((view) => view.id);
    expect(ids('450')).toEqual([...Array.from({ length: SHOWN }, (_, index) => `${index}`), '400', '450']);
    expect(ids('0', 2 * SHOWN)).toHaveLength(2 * SHOWN + 1);
    expect(ids('0', 500)).toHaveLength(500);
  });
});
