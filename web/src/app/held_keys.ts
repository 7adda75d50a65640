//! Keys pressed between asking for a dialog or the search and its being there, while its code is fetched and drawn. They are
//! held, and then given to its text field in their order: nobody's first letters may end in the room behind it.
//!
//! Only text fields get them. A button must not be pressed by a key that was typed before anybody could see it.

import { flushSync } from 'svelte';

/** Whoever types more than this is not waiting for the dialog any more. */
const HELD_MAX = 200;
const EDITING = new Set(['Enter', 'Backspace', 'ArrowDown', 'ArrowUp']);

export class HeldKeys {
  #keys: string[] = [];
  /** Something that takes keys was asked for and is not there yet; dialogs are known without this. */
  awaited = false;

  /** Holds a key that somebody pressed while a dialog is awaited; false when it is none that is held. */
  hold(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
    if (event.key.length !== 1 && !EDITING.has(event.key)) return false;
    if (this.#keys.length < HELD_MAX) this.#keys.push(event.key);
    return true;
  }

  /** It is there, with the focus on this. */
  release(field: Element | null): void {
    const keys = this.forget();
    if (keys.length === 0 || !(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement)) return;
    // After the effects that are running now; no key can come in between.
    queueMicrotask(() => {
      for (const key of keys) type(field, key);
    });
  }

  /** It does not come. */
  forget(): string[] {
    this.awaited = false;
    const keys = this.#keys;
    this.#keys = [];
    return keys;
  }
}

function type(field: HTMLInputElement | HTMLTextAreaElement, key: string): void {
  if (!field.isConnected) return;
  const end = field.value.length;
  if (key.length === 1) field.setRangeText(key, field.selectionStart ?? end, field.selectionEnd ?? end, 'end');
  else if (key === 'Backspace') field.setRangeText('', Math.max(0, end - 1), end, 'end');
  else {
    const unhandled = field.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    if (unhandled && key === 'Enter') field.form?.requestSubmit();
    return;
  }
  field.dispatchEvent(new InputEvent('input', { bubbles: true }));
  flushSync();
}
