//! The time of the server. A device's own clock may be wrong by minutes or by years: which messages are of today, and
//! when a mute or a status ends, goes by the server's.

/** Less is the way of the answer, and nothing that anybody sees. */
const NOTABLE_MS = 1_000;

export class Clock {
  /** By how much the server's clock is ahead of this device's; none until a server has told its own. */
  #aheadMs = $state(0);

  /** What the server's clock shows at this moment. */
  set(serverNow: number): void {
    const aheadMs = serverNow - Date.now();
    if (Math.abs(aheadMs - this.#aheadMs) > NOTABLE_MS) this.#aheadMs = Math.abs(aheadMs) > NOTABLE_MS ? aheadMs : 0;
  }

  now(): number {
    return Date.now() + this.#aheadMs;
  }
}
