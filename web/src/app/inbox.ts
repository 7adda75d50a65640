//! Events wait here for the next frame, so that a burst of hundreds a second costs few updates of the page and leaves time
//! for typing. While somebody types they come in small slices, in moments when the browser has nothing else to do: a
//! frame belongs to the key that was pressed before it. Order is kept; nothing is dropped.

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
/** A page that is never idle gets everything after this long. */
const IDLE_MS_MAX = 250;
/** A slice takes about this long at most: a key that goes down meanwhile is painted in the frame it would have had. */
const SLICE_MS = 6;
/** A slice is drawn in steps of about this long. Between two of them it ends early for a key that waits, or because events
 *  cost more than they did. */
const STEP_MS = 2;
/** Of the latest step in what is assumed of the next. */
const LATEST_PART = 0.5;

export class Inbox {
  #waiting: Arrival[] = [];
  #frame = 0;
  #idle = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #delivered = -Infinity;
  #pressed = -Infinity;
  /** What one event took of late, drawn. */
  #eventMs = 1;
  readonly #deliver: (batch: Arrival[]) => void;

  /** `deliver` draws what it is given before it returns: how long that takes decides how much comes next. */
  constructor(deliver: (batch: Arrival[]) => void) {
    this.#deliver = deliver;
  }

  push(arrival: Arrival): void {
    this.#waiting.push(arrival);
    if (this.#waiting.length > 1) return;
    const wait = this.#delivered + SPACING_MS - performance.now();
    if (wait <= 0) this.#soon();
    else this.#timer = setTimeout(() => this.#soon(), wait);
  }

  /** A key went down somewhere on the page. */
  keyPressed(): void {
    this.#pressed = performance.now();
    if (this.#frame === 0) return;
    this.stop();
    this.#whenIdle();
  }

  flush(): void {
    this.#take(this.#waiting.length);
  }

  stop(): void {
    cancelAnimationFrame(this.#frame);
    stopWaiting(this.#idle);
    clearTimeout(this.#timer);
    this.#frame = 0;
    this.#idle = 0;
  }

  #soon(): void {
    if (performance.now() - this.#pressed <= TYPING_MS) return this.#whenIdle();
    this.#frame = requestAnimationFrame(() => this.flush());
    this.#timer = setTimeout(() => this.flush(), HIDDEN_MS);
  }

  #whenIdle(): void {
    this.#idle = onceIdle(({ didTimeout, timeRemaining }) => {
      if (didTimeout) return this.flush();
      const end = performance.now() + Math.min(SLICE_MS, timeRemaining());
      let left = end - performance.now();
      do {
        this.#take(Math.max(1, Math.floor(Math.min(STEP_MS, left) / this.#eventMs)));
        left = end - performance.now();
      } while (this.#waiting.length > 0 && left >= this.#eventMs && !keyWaits());
      if (this.#waiting.length > 0) this.#whenIdle();
    });
  }

  #take(count: number): void {
    this.stop();
    const batch = this.#waiting.splice(0, count);
    if (batch.length === 0) return;
    this.#delivered = performance.now();
    this.#deliver(batch);
    const eventMs = (performance.now() - this.#delivered) / batch.length;
    this.#eventMs += LATEST_PART * (eventMs - this.#eventMs);
  }
}

interface Idle {
  didTimeout: boolean;
  timeRemaining: () => number;
}

/** Safari says nothing of idle moments: what is painted next goes first there. */
function onceIdle(run: (idle: Idle) => void): number {
  if (typeof requestIdleCallback === 'function') {
    return requestIdleCallback((deadline) => run({ didTimeout: deadline.didTimeout, timeRemaining: () => deadline.timeRemaining() }), { timeout: IDLE_MS_MAX });
  }
  return requestAnimationFrame(() => setTimeout(() => run({ didTimeout: false, timeRemaining: () => SLICE_MS })));
}

/** Whether a key or a click waits for this task to end; only some browsers tell. */
function keyWaits(): boolean {
  const { scheduling } = navigator as { scheduling?: { isInputPending?: () => boolean } };
  return scheduling?.isInputPending?.() === true;
}

function stopWaiting(idle: number): void {
  if (typeof cancelIdleCallback === 'function') cancelIdleCallback(idle);
  else cancelAnimationFrame(idle);
}
