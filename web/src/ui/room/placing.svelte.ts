//! Where a room's messages stand: which of them exist as elements, and what stays in its place while rows around it
//! are measured, arrive or change. The anchor is a message or the end; it belongs to the conversation, so that coming
//! back finds the same place.
//!
//! Geometry is set directly and in the same frame as measurements: what one reads never jumps.

import { tick, untrack } from 'svelte';

import type { Chat } from '../../app/chat.svelte';
import type { Conversation } from '../../app/conversation.svelte';
import { whenIdle } from '../../app/when_idle';

/** Rows kept beyond the view on either side, so that a flick finds them drawn. */
const OVERSCAN = 12;
/** Rows come and go by so many. */
const STEP_ROWS = 4;
/** Rows out of reach that stay until others come: what goes in the same step costs no layout of its own. */
const SPARE_ROWS = 12;
/** Within this distance of the end one counts as being there. */
const END_PX = 32;

export class Placing {
  /** The rows that exist, by index. */
  first = $state(0);
  last = $state(-1);
  atEnd = $state(true);
  /** The number of the message at the top of the view. */
  topVisible = $state(0);
  flashed = $state<number>();
  // Null again while the room is being left, when observers may fire once more.
  scroller = $state.raw<HTMLDivElement | null>();
  space = $state.raw() as HTMLDivElement;
  rowsBox = $state.raw() as HTMLDivElement;
  readonly #chat: Chat;
  readonly #conversation: Conversation;
  readonly #sizes = new ResizeObserver((entries) => this.#resized(entries));
  #known = 0;
  #gone = 0;
  #placedAt = -1;
  #placedHeight = -1;
  #awaited: number | undefined;
  /** Nobody scrolls before the first rows are painted. */
  #overscan = 0;

  constructor(chat: Chat, conversation: Conversation) {
    this.#chat = chat;
    this.#conversation = conversation;
  }

  /** Whether a message that arrives is the first that this list shows. */
  get isFresh(): boolean {
    return this.#known === 0;
  }

  /** For each row: its height counts as soon as it is known. */
  readonly measured = (element: HTMLElement): (() => void) => {
    this.#sizes.observe(element);
    return () => this.#sizes.unobserve(element);
  };

  /** Follows the size of the view until the room is left. */
  watch(): () => void {
    const scroller = untrack(() => this.scroller);
    if (scroller) this.#sizes.observe(scroller);
    whenIdle(() => {
      this.#overscan = OVERSCAN;
      this.chooseRows();
    });
    return () => {
      this.#sizes.disconnect();
      this.#conversation.isAtEnd = false;
    };
  }

  /** Decides which rows exist, from where the view is. */
  chooseRows(): void {
    if (!this.scroller) return;
    const { heights } = this.#conversation;
    const top = Math.max(0, this.#top());
    const bottom = Math.max(0, this.#top() + this.scroller.clientHeight);
    this.#choose(top, bottom, SPARE_ROWS);
    this.topVisible = heights.indexAt(top) + 1;
    this.atEnd = this.#isAtEnd();
    this.#conversation.isAtEnd = this.atEnd;
    if (heights.count > 0) this.#conversation.want({ from: this.first + 1, to: this.last + 1 });
    this.#markRead(bottom);
  }

  /** Before messages that arrived are drawn: whoever is at the end will see them, so that rows are chosen once. */
  expect(): void {
    const { timeline, heights } = this.#conversation;
    if (this.#known === 0 || !this.atEnd || timeline.lastSeq <= this.#known) return;
    // How tall they are is not known yet: what is in view now stays.
    const top = heights.offsetOf(this.#known) - this.#placedHeight;
    heights.grow(timeline.lastSeq);
    this.#choose(top, heights.total, 0);
  }

  /** Messages arrived or changed, or rows were chosen: the elements exist by now and can be placed. */
  update(): void {
    const { timeline, heights } = this.#conversation;
    const count = timeline.lastSeq;
    // The server may have lost the last ones.
    this.#known = Math.min(this.#known, count);
    const follows = this.#known > 0 && count > this.#known && this.atEnd && this.#awaited === undefined;
    if (count > this.#known) {
      if (this.#known > 0 && this.atEnd) this.#conversation.anchor = 'end';
      this.#known = count;
      heights.grow(count);
    }
    // What the room keeps no longer takes no place.
    for (; this.#gone < Math.min(count, timeline.firstSeq - 1); this.#gone += 1) heights.measure(this.#gone, 0);
    if (this.#awaited !== undefined && this.#awaited <= count) void this.jumpTo(this.#awaited);
    // Rows that came tell their height before they are painted. Asking for it now would have the page laid out once more
    // for each step of a burst.
    if (follows) this.#spread();
    else this.#settle();
  }

  readonly onScroll = (): void => {
    if (!this.scroller) return;
    // Our own placement is not the person's wish to be elsewhere.
    if (this.scroller.clientHeight !== this.#placedHeight) {
      // The view became taller or shorter, and the browser moved what it shows: that is nobody's wish either.
      this.#place();
    } else if (Math.abs(this.scroller.scrollTop - this.#placedAt) >= 1) {
      this.#placedAt = -1;
      this.#anchorHere();
    } else return;
    this.chooseRows();
  };

  readonly toLatest = (): void => {
    this.#awaited = undefined;
    this.#conversation.anchor = 'end';
    this.#settle();
  };

  readonly jumpTo = async (seq: number): Promise<void> => {
    if (!this.scroller || seq < 1) return;
    // The archive may end before it: the jump happens once the room is known to reach that far.
    this.#awaited = seq > this.#conversation.timeline.lastSeq ? seq : undefined;
    if (this.#awaited !== undefined) return;
    this.#conversation.anchor = { seq, delta: Math.round(this.scroller.clientHeight / 3) };
    this.#settle();
    await tick();
    this.flashed = seq;
  };

  /** Up to `spare` rows that exist stay though they are not needed any more. */
  #choose(top: number, bottom: number, spare: number): void {
    const { heights } = this.#conversation;
    // In steps, so that a few pixels more or less change nothing.
    const from = Math.floor((heights.indexAt(Math.max(0, top)) - this.#overscan) / STEP_ROWS) * STEP_ROWS;
    const to = Math.ceil((heights.indexAt(bottom) + this.#overscan) / STEP_ROWS) * STEP_ROWS;
    const first = Math.max(0, from);
    const last = Math.min(heights.count - 1, to);
    const { first: before, last: after } = untrack(() => ({ first: this.first, last: this.last }));
    const staysAbove = before < first && first - before <= spare;
    const staysBelow = after > last && after - last <= spare && after < heights.count;
    this.first = staysAbove ? before : first;
    this.last = staysBelow ? after : last;
  }

  /** How far the view's top is below the first row's. */
  #top(): number {
    return this.scroller ? this.scroller.scrollTop - this.space.offsetTop : 0;
  }

  #isAtEnd(): boolean {
    const { scroller } = this;
    return scroller != null && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < END_PX;
  }

  #anchorHere(): void {
    const { heights } = this.#conversation;
    const top = this.#top();
    const index = heights.indexAt(Math.max(0, top));
    const isEnd = this.#isAtEnd() || heights.count === 0;
    this.#conversation.anchor = isEnd ? 'end' : { seq: index + 1, delta: heights.offsetOf(index) - top };
  }

  #markRead(bottom: number): void {
    const { timeline, heights, room } = this.#conversation;
    const index = heights.indexAt(bottom);
    const complete = heights.offsetOf(index + 1) <= bottom + 1;
    const seq = this.atEnd ? timeline.lastSeq : complete ? index + 1 : index;
    if (seq > 0 && timeline.at(seq)) this.#chat.reading.reached(room, seq);
  }

  #settle(): void {
    this.#place();
    this.chooseRows();
  }

  /** Gives the list its length, and its rows their place in it; reads nothing of the page. */
  #spread(): void {
    const { heights } = this.#conversation;
    this.space.style.height = `${heights.total}px`;
    // Not by a transform: rows that stay where they were on the page are not painted again.
    this.rowsBox.style.top = `${heights.offsetOf(this.first)}px`;
  }

  /** Puts everything where it belongs, keeping the anchor in place. */
  #place(): void {
    const { scroller, space } = this;
    if (!scroller) return;
    const { heights, anchor } = this.#conversation;
    this.#spread();
    const end = scroller.scrollHeight - scroller.clientHeight;
    const wanted = anchor === 'end' ? end : space.offsetTop + heights.offsetOf(anchor.seq - 1) - anchor.delta;
    const target = Math.max(0, Math.min(end, wanted));
    if (Math.abs(scroller.scrollTop - target) >= 1) scroller.scrollTop = target;
    this.#placedAt = scroller.scrollTop;
    this.#placedHeight = scroller.clientHeight;
  }

  #resized(entries: readonly ResizeObserverEntry[]): void {
    for (const { target, borderBoxSize } of entries) {
      const seq = target instanceof HTMLElement ? Number(target.dataset['seq']) : Number.NaN;
      const height = borderBoxSize[0]?.blockSize;
      // A row that is being removed reports zero; its last real height stays true.
      if (Number.isFinite(seq) && height) this.#conversation.heights.measure(seq - 1, height);
    }
    this.#settle();
  }
}
