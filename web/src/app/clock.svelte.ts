//! The time of the server. A device's own clock may be wrong by minutes or by years: which messages are of today, and
//! when a mute or a status ends, goes by the server's.

import { lookAtTimeZone } from '../i18n/zone.svelte';

/** Less is the way of the answer, and nothing that anybody sees. */
const NOTABLE_MS = 1_000;
/** How often a new day is looked for, another time zone, and a device's clock that was set. */
const LOOK_MS = 10_000;
/** A device that sleeps for as long has lost its connection, and hears the time with the next one. */
const SET_MS_MIN = 60_000;

export class Clock {
  /** By how much the server's clock is ahead of this device's; none until a server has told its own. */
  #aheadMs = $state(0);
  /** Moves at midnight, so that whatever shows a time by its day looks again. */
  #day = $state(new Date().toDateString());
  #begin = beginOfPage();
  readonly #looking: ReturnType<typeof setInterval>;

  /** `wasSet`: the device's clock is another one, and the server has to tell its own anew. */
  constructor(wasSet: () => void) {
    this.#looking = setInterval(() => this.#look(wasSet), LOOK_MS);
  }

  /** What the server's clock shows at this moment. */
  set(serverNow: number): void {
    const aheadMs = serverNow - Date.now();
    if (Math.abs(aheadMs - this.#aheadMs) > NOTABLE_MS) this.#aheadMs = Math.abs(aheadMs) > NOTABLE_MS ? aheadMs : 0;
    this.#begin = beginOfPage();
  }

  now(): number {
    void this.#day;
    return Date.now() + this.#aheadMs;
  }

  stop(): void {
    clearInterval(this.#looking);
  }

  #look(wasSet: () => void): void {
    lookAtTimeZone();
    this.#day = new Date(Date.now() + this.#aheadMs).toDateString();
    const before = this.#begin;
    this.#begin = beginOfPage();
    if (Math.abs(this.#begin - before) > SET_MS_MIN) wasSet();
  }
}

/** When the page began, by the device's clock of now: it moves where that is set. */
function beginOfPage(): number {
  return Date.now() - performance.now();
}
