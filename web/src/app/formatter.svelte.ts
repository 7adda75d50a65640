//! What makes Markdown readable. It is as large as all the rest of a room, and most messages are words alone: so it comes
//! behind the first of them. Where it cannot be fetched, messages are shown as they were typed, and it is asked for again.

import { isOnlyWords } from '../text/only_words';

type Format = typeof import('../text/markdown').format;

const PAUSE_MS_MIN = 2_000;
const PAUSE_MS_MAX = 60_000;

export class Formatter {
  #format = $state.raw<Format>();
  /** It did not come; that may change. */
  #failed = $state(false);
  #isLoading = false;
  #pause = PAUSE_MS_MIN;
  readonly #told: (failed: boolean) => void;

  constructor(told: (failed: boolean) => void) {
    this.#told = told;
    window.addEventListener('online', () => this.#failed && this.load());
  }

  load(): void {
    if (this.#format || this.#isLoading) return;
    this.#isLoading = true;
    import('../text/markdown').then(({ format }) => this.#arrived(format), () => this.#missing()).finally(() => (this.#isLoading = false));
  }

  /** Whether a text will look otherwise in a moment. */
  awaits(body: string): boolean {
    if (this.#format || this.#failed || body === '' || isOnlyWords(body)) return false;
    this.load();
    return true;
  }

  /** As elements that are safe to show; undefined as long as that is not known. */
  elements(body: string, myName: string): DocumentFragment | undefined {
    if (body === '') return document.createDocumentFragment();
    if (!this.#format && !this.#failed) this.load();
    return this.#format?.(body, myName);
  }

  #arrived(format: Format): void {
    this.#format = format;
    if (this.#failed) this.#told(false);
    this.#failed = false;
  }

  #missing(): void {
    if (!this.#failed) this.#told(true);
    this.#failed = true;
    setTimeout(() => this.load(), this.#pause);
    this.#pause = Math.min(PAUSE_MS_MAX, this.#pause * 2);
  }
}
