//! The messages of one room by number. Numbers have no gaps from the first that the room keeps, so its length is known before
//! anything is loaded, and what is missing is plain arithmetic. Applying the same event or page twice changes nothing.

import type { RoomEvent } from '../protocol/events';
import type { MessageView, RoomId, UserId } from '../protocol/generated/chat';
import { Answers, type Grown } from './answers';

interface Held {
  message: MessageView;
  /** The generation it was fetched in; older than the timeline's means it may have changed unseen. */
  generation: number;
}

export interface SeqRange {
  from: number;
  /** Inclusive. */
  to: number;
}

export class Timeline {
  readonly room: RoomId;
  #firstSeq = 1;
  #lastSeq: number;
  #generation = 1;
  readonly #held = new Map<number, Held>();
  readonly #answers = new Answers();
  /** From here to the end all is held up to date, as far as was looked. */
  #whole = { from: 1, to: 0, generation: 0 };

  constructor(room: RoomId, lastSeq: number) {
    this.room = room;
    this.#lastSeq = lastSeq;
  }

  /** The first message that the room keeps; above the last one if it keeps none. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get heldCount(): number {
    return this.#held.size;
  }

  at(seq: number): MessageView | undefined {
    return this.#held.get(seq)?.message;
  }

  /** What grew out of a message, of what is held. */
  grownFrom(seq: number): Grown | undefined {
    return this.#answers.of(seq);
  }

  /** Whether everything after this message is held up to date, and nothing that grew out of it is missing. */
  isWholeAfter(seq: number): boolean {
    const whole = this.#whole;
    let reach = whole.generation === this.#generation ? whole.to : 0;
    while (reach > 0 && reach < this.#lastSeq && this.#isFresh(reach + 1)) reach += 1;
    let from = reach === this.#lastSeq && reach > 0 ? whole.from : this.#lastSeq + 1;
    while (from > this.#firstSeq && this.#isFresh(from - 1)) from -= 1;
    this.#whole = { from, to: this.#lastSeq, generation: this.#generation };
    return from <= seq + 1;
  }

  /** The first message of what this one belongs to, as far as the answers between them are held. */
  rootOf(seq: number): number {
    let root = seq;
    for (;;) {
      const quoted = this.at(root)?.reply_to?.seq;
      // A quote is older than its answer; with a deleted message goes what led to it.
      if (quoted === undefined || quoted >= root || this.at(quoted)?.deleted === true) return root;
      root = quoted;
    }
  }

  /** The room is known to reach this far; an answer that is older changes nothing. */
  extendTo(lastSeq: number): void {
    this.#lastSeq = Math.max(this.#lastSeq, lastSeq);
  }

  /** All messages before this one are gone for good; returns whether that is news. */
  keepFrom(firstSeq: number): boolean {
    if (firstSeq <= this.#firstSeq) return false;
    this.#firstSeq = firstSeq;
    for (const seq of this.#held.keys()) {
      if (seq >= firstSeq) continue;
      this.#held.delete(seq);
      this.#answers.set(seq, undefined);
    }
    return true;
  }

  /**
   * The room reaches only so far: of what is held beyond that, the server has kept nothing but what came since events were
   * missed. Returns whether that is news.
   */
  cutTo(lastSeq: number): boolean {
    let last = lastSeq;
    for (const seq of this.#held.keys()) {
      if (seq <= lastSeq) continue;
      if (this.#isFresh(seq)) {
        last = Math.max(last, seq);
        continue;
      }
      this.#held.delete(seq);
      this.#answers.set(seq, undefined);
    }
    if (last >= this.#lastSeq) return false;
    this.#lastSeq = last;
    this.#firstSeq = Math.min(this.#firstSeq, last + 1);
    this.#whole = { from: 1, to: 0, generation: 0 };
    return true;
  }

  /** Events were missed: everything held stays readable but counts as missing until fetched again. */
  invalidate(): void {
    this.#generation += 1;
  }

  /** Messages that may be out of date: shown at once, fetched again as soon as there is a connection. */
  addArchived(messages: readonly MessageView[]): void {
    for (const message of messages) {
      if (message.seq >= this.#firstSeq && !this.#held.has(message.seq)) this.#hold(message, this.#generation - 1);
      this.extendTo(message.seq);
    }
  }

  addPage(messages: readonly MessageView[]): void {
    for (const message of messages) {
      if (message.seq < this.#firstSeq) continue;
      const held = this.#held.get(message.seq);
      const newer = held && held.generation === this.#generation && isNewer(held.message, message);
      if (!newer) this.#hold(message, this.#generation);
      this.extendTo(message.seq);
    }
  }

  /** Lets go of what is held beyond `most`, of all but the newest and those around what is looked at: it is fetched again once
   *  it is looked at. Of answers the numbers stay, so that threads are counted as before. */
  letGo({ from, to }: SeqRange, most: number): void {
    if (this.#held.size <= most) return;
    // Far fewer than may be held: it is not done again with the next message.
    const around = Math.floor(most / 4);
    for (const seq of this.#held.keys()) {
      const isNear = seq >= from - around && seq <= to + around;
      if (!isNear && seq <= this.#lastSeq - around) this.#held.delete(seq);
    }
    this.#whole = { from: 1, to: 0, generation: 0 };
  }

  /** Returns whether anything visible changed. */
  apply(event: RoomEvent, me: UserId): boolean {
    switch (event.type) {
      case 'message':
        return this.#addMessage(messageOf(event));
      case 'edited':
        return this.#change(event.seq, (message) => withBody(message, event));
      case 'deleted':
        this.#answers.set(event.seq, undefined);
        return this.#change(event.seq, asDeleted);
      case 'reaction':
        return this.#change(event.seq, (message) => withReaction(message, event.emoji, event.on, event.user === me));
      case 'pinned':
        return this.#change(event.seq, (message) => asPinned(message, event.on));
      case 'expired':
        return this.keepFrom(event.up_to + 1);
      case 'typing':
      case 'profile':
      case 'presence':
      case 'joined':
      case 'left':
      case 'role':
      case 'room':
      case 'archived':
      case 'room_deleted':
        return false;
    }
  }

  /** The first stretch of at most `limit` numbers within the range that is not held up to date. */
  missing(range: SeqRange, limit: number): SeqRange | undefined {
    const end = Math.min(range.to, this.#lastSeq);
    let from = Math.max(this.#firstSeq, range.from);
    while (from <= end && this.#isFresh(from)) from += 1;
    if (from > end) return undefined;
    let to = from;
    while (to < end && to - from + 1 < limit && !this.#isFresh(to + 1)) to += 1;
    return { from, to };
  }

  /** The newest messages held, oldest first. */
  newest(count: number): MessageView[] {
    const found: MessageView[] = [];
    for (let seq = this.#lastSeq; seq >= this.#firstSeq && found.length < count; seq -= 1) {
      const message = this.at(seq);
      if (!message) break;
      found.push(message);
    }
    return found.reverse();
  }

  #isFresh(seq: number): boolean {
    return this.#held.get(seq)?.generation === this.#generation;
  }

  #addMessage(message: MessageView): boolean {
    this.extendTo(message.seq);
    if (this.#isFresh(message.seq)) return false;
    this.#hold(message, this.#generation);
    return true;
  }

  #hold(message: MessageView, generation: number): void {
    this.#held.set(message.seq, { message, generation });
    this.#answers.set(message.seq, message.deleted ? undefined : message.reply_to?.seq);
  }

  #change(seq: number, change: (message: MessageView) => MessageView): boolean {
    const held = this.#held.get(seq);
    if (!held) return false;
    held.message = change(held.message);
    this.#answers.set(seq, held.message.reply_to?.seq);
    return true;
  }
}

export function messageOf(event: Extract<RoomEvent, { type: 'message' }>): MessageView {
  const { type: _type, offset: _offset, ...message } = event;
  return { ...message, reactions: [] };
}

/** A page may have been read before an event that we already saw; the event wins. */
function isNewer(held: MessageView, page: MessageView): boolean {
  if (held.deleted) return !page.deleted;
  return (held.edited_at ?? 0) > (page.edited_at ?? 0);
}

/** The answer to an edit may come after the news that the message was deleted. */
function withBody(message: MessageView, { body, edited_at, mentions }: Extract<RoomEvent, { type: 'edited' }>): MessageView {
  return message.deleted ? message : { ...message, body, edited_at, mentions };
}

function asDeleted(message: MessageView): MessageView {
  const { attachments: _attachments, reply_to: _reply, pinned: _pinned, ...rest } = message;
  return { ...rest, body: '', deleted: true, reactions: [], mentions: [] };
}

function asPinned(message: MessageView, on: boolean): MessageView {
  const { pinned: _pinned, ...rest } = message;
  return on && !message.deleted ? { ...rest, pinned: true } : rest;
}

function withReaction(message: MessageView, emoji: string, on: boolean, mine: boolean): MessageView {
  const known = message.reactions.find((reaction) => reaction.emoji === emoji);
  if (mine && known && known.mine === on) return message;
  const count = Math.max(0, (known?.count ?? 0) + (on ? 1 : -1));
  const changed = { emoji, count, mine: mine ? on : (known?.mine ?? false) };
  const reactions = known
    ? message.reactions.map((reaction) => (reaction === known ? changed : reaction))
    : [...message.reactions, changed];
  return { ...message, reactions: reactions.filter((reaction) => reaction.count > 0) };
}
