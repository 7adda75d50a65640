//! Who is there now, of those on screen. Parts of the page say whom they show; the rooms are asked for all of them together,
//! and tell whenever one of them comes or goes. What follows from that is decided in `model/watched`.

import type { RoomId, UserId } from '../protocol/generated/chat';
import { Watched, type PresenceEvent, type Question } from '../model/watched';

export class Presence {
  online = $state.raw<ReadonlySet<UserId>>(new Set());
  /** How many are in each room of which somebody is shown. */
  counts = $state.raw<ReadonlyMap<RoomId, number>>(new Map());
  readonly #watched = new Watched();
  readonly #ask: (question: Question) => void;
  #due = false;

  constructor(ask: (question: Question) => void) {
    this.#ask = ask;
  }

  /** From now on `part` shows these users of a room; none: it is gone. */
  show(room: RoomId, part: object, users: readonly UserId[]): void {
    this.#watched.show(room, part, users);
    this.#settle();
  }

  subscribed(room: RoomId): void {
    this.#watched.subscribed(room);
    this.#settle();
  }

  unsubscribed(room: RoomId): void {
    this.#watched.unsubscribed(room);
    this.#settle();
  }

  told(event: PresenceEvent): void {
    this.#watched.told(event);
    this.#settle();
  }

  forget(room: RoomId): void {
    this.#watched.forget(room);
    this.#settle();
  }

  restart(): void {
    this.#watched.restart();
  }

  /** Hundreds may come back at once after a restart: they are shown together. */
  #settle(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      this.#due = false;
      for (const question of this.#watched.questions()) this.#ask(question);
      const [online, counts] = [this.#watched.online(), this.#watched.counts()];
      if (online.size !== this.online.size || [...online].some((user) => !this.online.has(user))) this.online = online;
      if (counts.size !== this.counts.size || [...counts].some(([room, count]) => this.counts.get(room) !== count)) this.counts = counts;
    });
  }
}
