//! Events wait here for the next frame, so that a burst of hundreds a second costs one update of the page per frame and
//! leaves time for typing. Order is kept; nothing is dropped.

import type { RoomEvent } from '../protocol/events';

export interface Arrival {
  event: RoomEvent;
  offset: number | undefined;
}

/** Hidden tabs draw no frames: the timer delivers there. */
const HIDDEN_MS = 100;

export class Inbox {
  #waiting: Arrival[] = [];
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #deliver: (batch: Arrival[]) => void;

  constructor(deliver: (batch: Arrival[]) => void) {
    this.#deliver = deliver;
  }

  push(arrival: Arrival): void {
    this.#waiting.push(arrival);
    if (this.#waiting.length > 1) return;
    this.#frame = requestAnimationFrame(() => this.flush());
    this.#timer = setTimeout(() => this.flush(), HIDDEN_MS);
  }

  flush(): void {
    this.stop();
    const batch = this.#waiting;
    this.#waiting = [];
    if (batch.length > 0) this.#deliver(batch);
  }

  stop(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
  }
}
