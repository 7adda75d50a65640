//! The keys of the text field: what formats, and what sends.

import type { Mark } from '../../model/formatting';

/** With Ctrl, or the command key; as other programs have them. */
const FORMATS: Record<string, Mark> = { b: 'bold', i: 'italic', e: 'code' };
const SHIFTED: Record<string, Mark> = { x: 'strike', u: 'link', Digit7: 'numbers', Digit8: 'list', Digit9: 'quote', c: 'block' };

type Pressed = Pick<KeyboardEvent, 'key' | 'code' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>;

export function formatKey({ key, code, ctrlKey, metaKey, altKey, shiftKey }: Pressed): Mark | undefined {
  if (!(ctrlKey || metaKey) || altKey) return undefined;
  return shiftKey ? (SHIFTED[key.toLowerCase()] ?? SHIFTED[code]) : FORMATS[key.toLowerCase()];
}

/** A key that belongs to a word being composed, as of Japanese: Safari says so only by this code when Enter ends it. */
const COMPOSING = 229;

export function isComposing(event: Pick<KeyboardEvent, 'isComposing' | 'keyCode'>): boolean {
  return event.isComposing || event.keyCode === COMPOSING;
}

/** On a keyboard of glass there is no Shift+Enter: Enter starts a line there, and a button sends. */
export function enterSends(): boolean {
  return !matchMedia('(pointer: coarse)').matches;
}
