//! The keys that work everywhere, and what each does. Single letters count only where nothing is being typed.

import type { RoomId } from '../protocol/generated/chat';
import type { Chat } from './chat.svelte';
import type { Folkmoot, Panel } from './folkmoot.svelte';

/** For the shortcut sheet: the keys as printed and the sentence that explains them. */
export const SHEET = [
  { keys: ['Ctrl', 'K'], text: 'shortcut_switcher' },
  { keys: ['Alt', 'H'], text: 'shortcut_sheet' },
  { keys: ['Alt', '↓'], text: 'shortcut_next' },
  { keys: ['Alt', '↑'], text: 'shortcut_previous' },
  { keys: ['Alt', 'Shift', '↓'], text: 'shortcut_next_unread' },
  { keys: ['Alt', 'I'], text: 'shortcut_inbox' },
  { keys: ['A–Z'], text: 'shortcut_compose' },
  { keys: ['Alt', 'M'], text: 'shortcut_members' },
  { keys: ['Alt', 'P'], text: 'shortcut_pins' },
  { keys: ['/'], text: 'shortcut_search' },
  { keys: ['↑', '↓'], text: 'shortcut_messages' },
  { keys: ['End'], text: 'shortcut_latest' },
  { keys: ['R'], text: 'shortcut_reply' },
  { keys: ['T'], text: 'shortcut_thread' },
  { keys: ['E'], text: 'shortcut_edit' },
  { keys: ['+'], text: 'shortcut_react' },
  { keys: ['P'], text: 'shortcut_pin' },
  { keys: ['S'], text: 'shortcut_save' },
  { keys: ['Del'], text: 'shortcut_delete' },
  { keys: ['↑'], text: 'shortcut_edit_last' },
  { keys: ['Esc'], text: 'shortcut_close' },
] as const;

/** The keys that do what a sentence of the sheet says. */
export function keysOf(sentence: (typeof SHEET)[number]['text']): readonly string[] {
  return SHEET.find(({ text }) => text === sentence)?.keys ?? [];
}

type Action = () => void;

export function shortcutOf(event: KeyboardEvent, folkmoot: Folkmoot, chat: Chat): Action | undefined {
  const control = event.ctrlKey || event.metaKey;
  if (control && !event.altKey && event.key.toLowerCase() === 'k') return () => (folkmoot.overlay = { name: 'switcher' });
  // A dialog keeps its keys to itself.
  if (folkmoot.overlay) return undefined;
  if (event.altKey && !control && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
    const step = event.key === 'ArrowDown' ? 1 : -1;
    return () => goToNeighbour(folkmoot, chat, step, event.shiftKey ? 'unread' : 'any');
  }
  // By its place on the keyboard: with Alt it types another letter on some.
  if (event.altKey && !control && event.code === 'KeyH') return () => (folkmoot.overlay = { name: 'shortcuts' });
  if (event.altKey && !control && event.code === 'KeyI') return () => folkmoot.router.go({ name: 'inbox' });
  if (event.altKey && !control && event.code === 'KeyM') return () => toggle(folkmoot, 'members');
  if (event.altKey && !control && event.code === 'KeyP') return () => toggle(folkmoot, 'pins');
  if (control || event.altKey || isTyping(event.target)) return undefined;
  return letter(event.key, folkmoot);
}

function toggle(folkmoot: Folkmoot, panel: Panel): void {
  const closes = folkmoot.panel === panel;
  folkmoot.panel = closes ? 'none' : panel;
  if (closes) document.getElementById('composer')?.focus();
}

/** What is typed before the search is there waits for it. */
export function toggleSearch(folkmoot: Folkmoot): void {
  toggle(folkmoot, 'search');
  folkmoot.heldKeys.awaited = folkmoot.panel === 'search' && folkmoot.router.route.name === 'room';
}

function letter(key: string, folkmoot: Folkmoot): Action | undefined {
  switch (key) {
    // As in other programs. Whoever has just come in is in the text field, where it is a question mark.
    case '?':
      return () => (folkmoot.overlay = { name: 'shortcuts' });
    case '/':
      return () => toggleSearch(folkmoot);
    default:
      return undefined;
  }
}

/** A letter typed anywhere is meant for the text field, unless a message is selected: its letters do something to it. */
export function isForComposer(event: KeyboardEvent, folkmoot: Folkmoot): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || folkmoot.overlay) return false;
  if (event.key.length !== 1 || event.key === ' ' || isTyping(event.target)) return false;
  return !(event.target instanceof HTMLElement && event.target.closest('article, [popover], [role=option], select'));
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The order that the list of rooms shows. */
export function listOrder(chat: Chat): RoomId[] {
  return chat.arrangement.sections(chat.rooms).flatMap(({ rooms }) => rooms.map((view) => view.id));
}

function goToNeighbour(folkmoot: Folkmoot, chat: Chat, step: 1 | -1, which: 'any' | 'unread'): void {
  const order = listOrder(chat);
  const route = folkmoot.router.route;
  const start = route.name === 'room' ? order.indexOf(route.room) : step === 1 ? -1 : 0;
  for (let distance = 1; distance <= order.length; distance += 1) {
    const room = order[(start + step * distance + order.length * 2) % order.length];
    if (room === undefined) return;
    if (which === 'any' || (chat.rooms.get(room)?.unread ?? 0) > 0) {
      folkmoot.router.go({ name: 'room', room });
      return;
    }
  }
}
