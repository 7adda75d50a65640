//! Sessions that somebody ended here: the server is told, again and again until it has heard, and after the page was closed
//! by the next one. Until then their tokens are kept, and serve for nothing else.

import { Problem, signOut } from '../net/http';
import type { Keep } from '../net/keep';

const PAUSE_MS_MIN = 2_000;
const PAUSE_MS_MAX = 60_000;

export class Endings {
  readonly #keep: Keep;
  #pause = PAUSE_MS_MIN;
  #later: ReturnType<typeof setTimeout> | undefined;

  constructor(keep: Keep) {
    this.#keep = keep;
    window.addEventListener('online', () => this.#tell());
    this.#tell();
  }

  end(token: string): void {
    this.#keep.setEnding(token, true);
    this.#tell();
  }

  #tell(): void {
    for (const token of this.#keep.endings()) void this.#tellOf(token);
  }

  async #tellOf(token: string): Promise<void> {
    try {
      await signOut(token);
    } catch (failure) {
      if (!isKnown(failure)) return this.#again();
    }
    this.#keep.setEnding(token, false);
    this.#pause = PAUSE_MS_MIN;
  }

  #again(): void {
    clearTimeout(this.#later);
    this.#later = setTimeout(() => this.#tell(), this.#pause);
    this.#pause = Math.min(PAUSE_MS_MAX, this.#pause * 2);
  }
}

/** The server answers that there is no such session: it has ended. Busy, or away, it says nothing about it. */
function isKnown(failure: unknown): boolean {
  return failure instanceof Problem && failure.status === 401;
}
