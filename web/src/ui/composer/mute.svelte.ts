//! Whether one may not write in a room for a while, and the moment at which one may again.

/** Timers of browsers go no further. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class Mute {
  /** Moves when it is time to look again. */
  #looked = $state(0);
  readonly #end: () => number | undefined;
  readonly #now: () => number;

  /** `end` is read again whenever it changes; `now` is the time of the server. */
  constructor(end: () => number | undefined, now: () => number) {
    this.#end = end;
    this.#now = now;
  }

  /** The moment at which it ends; undefined: one may write. */
  get until(): number | undefined {
    void this.#looked;
    const end = this.#end();
    return end !== undefined && end > this.#now() ? end : undefined;
  }

  /** To be called from an effect: looks again when it ends. */
  watch(): () => void {
    void this.#looked;
    const wait = (this.#end() ?? 0) - this.#now();
    const timer = wait > 0 ? setTimeout(() => (this.#looked += 1), Math.min(wait + 1, TIMER_MS_MAX)) : undefined;
    return () => clearTimeout(timer);
  }
}
