//! What makes Markdown readable. It is as large as all the rest of a room, and most messages are words alone: so it comes
//! behind the first of them. Where it cannot be fetched, messages are shown as they were typed, and it is asked for again.

import { isOnlyWords } from '../text/only_words';

type Render = typeof import('../text/markdown').render;

const PAUSE_MS_MIN = 2_000;
const PAUSE_MS_MAX = 60_000;

export class Formatter {
  #render = $state.raw<Render>();
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
    if (this.#render || this.#isLoading) return;
    this.#isLoading = true;
    import('../text/markdown').then(({ render }) => this.#arrived(render), () => this.#missing()).finally(() => (this.#isLoading = false));
  }

  /** Whether a text will look otherwise in a moment. */
  awaits(body: string): boolean {
    if (this.#render || this.#failed || body === '' || isOnlyWords(body)) return false;
    this.load();
    return true;
  }

  /** As HTML that is safe to show; undefined as long as that is not known. */
  html(body: string, myName: string): string | undefined {
    if (body === '') return '';
    if (!this.#render && !this.#failed) this.load();
    return this.#render?.(body, myName);
  }

  #arrived(render: Render): void {
    this.#render = render;
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
