//! A text that is not sent yet: kept by the browser while it is written, and the same in all tabs of a person, unless one
//! goes on writing in this one.

import type { Keep } from '../net/keep';

const SAVE_MS = 300;

export class KeptDraft {
  body = $state('');
  readonly #keep: Keep;
  readonly #key: string;
  /** As this tab last saved or read it. */
  #kept: string;
  #saving: ReturnType<typeof setTimeout> | undefined;

  constructor(keep: Keep, key: string) {
    this.#keep = keep;
    this.#key = key;
    this.body = this.#kept = keep.draft(key);
  }

  /** To be called from an effect: saves it when its field goes, and when the page does; and follows what another tab did
   * to it, unless one goes on writing in this one. */
  follow(): () => void {
    const stop = new AbortController();
    const { signal } = stop;
    window.addEventListener('pagehide', () => this.save(), { signal });
    window.addEventListener('storage', (event) => {
      if (event.key === this.#key && this.body === this.#kept) this.body = this.#kept = this.#keep.draft(this.#key);
    }, { signal });
    return () => {
      stop.abort();
      this.save();
    };
  }

  /** Saves it by and by. */
  typed(): void {
    clearTimeout(this.#saving);
    this.#saving = setTimeout(() => this.save(), SAVE_MS);
  }

  save(): void {
    clearTimeout(this.#saving);
    if (this.body === this.#kept) return;
    this.#kept = this.body;
    this.#keep.setDraft(this.#key, this.body);
  }
}
