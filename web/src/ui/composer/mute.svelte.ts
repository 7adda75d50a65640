//! Whether one may not write in a room for a while, and the moment at which one may again.

/** Timers of browsers go no further. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class Mute {
  #now = $state(Date.now());
  readonly #end: () => number | undefined;

  /** `end` is read again whenever it changes. */
  constructor(end: () => number | undefined) {
    this.#end = end;
  }

  /** The moment at which it ends; undefined: one may write. */
  get until(): number | undefined {
    const end = this.#end();
    return end !== undefined && end > this.#now ? end : undefined;
  }

  /** To be called from an effect: looks again when it ends. */
  watch(): () => void {
    const wait = (this.#end() ?? 0) - Date.now();
    const timer = wait > 0 ? setTimeout(() => (this.#now = Date.now()), Math.min(wait + 1, TIMER_MS_MAX)) : undefined;
    return () => clearTimeout(timer);
  }
}
