//! How the list of rooms is arranged: pinned ones first, sections made by hand, all other rooms by name, direct conversations,
//! and what is muted or archived at the end. Names do not change with every message, so nothing moves while one aims at it; only direct
//! conversations follow what is going on, in an order that the caller holds still while somebody points at it.

import { fold } from '../text/fold';
import type { RoomId, RoomView } from '../protocol/generated/chat';
import { titleOf, type Rooms } from './rooms';

export interface OwnSection {
  name: string;
  rooms: readonly RoomId[];
}

/** What a person arranged by hand, kept on this device. */
export interface Layout {
  pinned: readonly RoomId[];
  sections: readonly OwnSection[];
  /** Sections that are folded up; what is unread in them stays visible. */
  closed: readonly string[];
}

export interface Section {
  /** `pinned`, `rooms`, `direct`, `muted`, `archived`, or `own:` with its name. */
  id: string;
  rooms: readonly RoomView[];
}

/** What was put away stays folded up until somebody looks for it. */
export const NO_LAYOUT: Layout = { pinned: [], sections: [], closed: ['archived'] };
export const OWN = 'own:';

export function arranged(rooms: Rooms, layout: Layout, directOrder: readonly RoomId[]): Section[] {
  const archived = [...rooms.values()].filter((view) => view.archived === true);
  const left = new Map([...rooms].filter(([, view]) => view.archived !== true));
  const take = (ids: readonly RoomId[]) => ids.flatMap((id) => {
    const view = left.get(id);
    left.delete(id);
    return view ?? [];
  });
  const pinned = take(layout.pinned);
  const own = layout.sections.map(({ name, rooms: ids }) => ({ id: OWN + name, rooms: take(ids).sort(byName) }));
  const place = new Map(directOrder.map((id, index) => [id, index]));
  const placeOf = (view: RoomView) => place.get(view.id) ?? directOrder.length;
  const rest = [...left.values()];
  const muted = rest.filter((view) => view.notify === 'none').sort(byName);
  const heard = rest.filter((view) => view.notify !== 'none');
  return [
    { id: 'pinned', rooms: pinned },
    ...own,
    { id: 'rooms', rooms: heard.filter((view) => view.kind === 'room').sort(byName) },
    { id: 'direct', rooms: heard.filter((view) => view.kind === 'direct').sort((a, b) => placeOf(a) - placeOf(b) || byName(a, b)) },
    { id: 'muted', rooms: muted },
    { id: 'archived', rooms: archived.sort(byName) },
  ];
}

/** So many rooms of a section are shown, and again so many each time that somebody asks for more: a page of thousands
 * would be slow, and nobody reads it. */
export const SHOWN = 200;

/** What a section shows: its first `limit` rooms, or none when folded up; and what needs attention, and the open room. */
export function visible(section: Section, layout: Layout, open: RoomId | undefined, limit = SHOWN): readonly RoomView[] {
  const first = layout.closed.includes(section.id) ? 0 : limit;
  if (section.rooms.length <= first) return section.rooms;
  const isWanted = (view: RoomView) => view.id === open || (view.notify === 'none' ? view.mentions > 0 : view.unread > 0);
  return section.rooms.filter((view, index) => index < first || isWanted(view));
}

/** Built once: with thousands of rooms a list is compared tens of thousands of times. */
const NAMES = new Intl.Collator(undefined, { numeric: true });
const folded = new WeakMap<RoomView, string>();

export function byName(a: RoomView, b: RoomView): number {
  return NAMES.compare(nameOf(a), nameOf(b));
}

function nameOf(view: RoomView): string {
  let name = folded.get(view);
  if (name === undefined) folded.set(view, (name = fold(titleOf(view))));
  return name;
}

export function togglePinned(layout: Layout, room: RoomId): Layout {
  const pinned = layout.pinned.includes(room) ? layout.pinned.filter((id) => id !== room) : [...layout.pinned, room];
  return { ...layout, pinned };
}

export function toggleClosed(layout: Layout, section: string): Layout {
  const closed = layout.closed.includes(section) ? layout.closed.filter((id) => id !== section) : [...layout.closed, section];
  return { ...layout, closed };
}

/** Puts a room into a section, which is made if there is none of the name; without a name the room leaves its section. */
export function moveTo(layout: Layout, room: RoomId, name: string | undefined): Layout {
  const without = layout.sections.map((section) => ({ ...section, rooms: section.rooms.filter((id) => id !== room) }));
  const known = name === undefined || without.some((section) => section.name === name);
  const all = known ? without : [...without, { name, rooms: [] }];
  const filled = all.map((section) => (section.name === name ? { ...section, rooms: [...section.rooms, room] } : section));
  return { ...layout, sections: filled.filter((section) => section.rooms.length > 0) };
}

export function sectionOf(layout: Layout, room: RoomId): string | undefined {
  return layout.sections.find((section) => section.rooms.includes(room))?.name;
}
