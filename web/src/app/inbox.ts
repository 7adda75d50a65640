//! Events wait here for the next frame, so that a burst of hundreds a second costs few updates of the page and leaves time
//! for typing. Order is kept; nothing is dropped.

import type { RoomEvent } from '../protocol/events';

export interface Arrival {
  event: RoomEvent;
  offset: number | undefined;
}

/** Hidden tabs draw no frames: the timer delivers there. */
const HIDDEN_MS = 100;
/** Between two deliveries of a burst. Nobody reads faster, and the frames between belong to whoever types. */
const SPACING_MS = 100;
/** Whoever pressed a key this short a time ago is about to press the next. */
const TYPING_MS = 400;
/** For so long a burst waits for that key: right after it is painted, nobody waits for the page. */
const KEY_MS_MAX = 250;

export class Inbox {
  #waiting: Arrival[] = [];
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #delivered = -Infinity;
  #pressed = -Infinity;
  #awaitsKey = false;
  readonly #deliver: (batch: Arrival[]) => void;

  constructor(deliver: (batch: Arrival[]) => void) {
    this.#deliver = deliver;
  }

  push(arrival: Arrival): void {
    this.#waiting.push(arrival);
    if (this.#waiting.length > 1) return;
    const wait = this.#delivered + SPACING_MS - performance.now();
    if (wait <= 0) this.#atFrame();
    else this.#timer = setTimeout(() => this.#afterKey(), wait);
  }

  /** A key went down somewhere on the page. */
  keyPressed(): void {
    this.#pressed = performance.now();
    if (!this.#awaitsKey) return;
    this.stop();
    this.#frame = requestAnimationFrame(() => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.flush());
    });
    this.#timer = setTimeout(() => this.flush(), HIDDEN_MS);
  }

  flush(): void {
    this.stop();
    const batch = this.#waiting;
    this.#waiting = [];
    if (batch.length === 0) return;
    this.#delivered = performance.now();
    this.#deliver(batch);
  }

  stop(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#awaitsKey = false;
  }

  #afterKey(): void {
    if (performance.now() - this.#pressed > TYPING_MS) return this.#atFrame();
    this.#awaitsKey = true;
    this.#timer = setTimeout(() => this.flush(), KEY_MS_MAX);
  }

  #atFrame(): void {
    this.#frame = requestAnimationFrame(() => this.flush());
    this.#timer = setTimeout(() => this.flush(), HIDDEN_MS);
  }
}
