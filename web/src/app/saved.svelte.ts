//! Which messages one has saved for later: only where they are, for their marks. What they say is
//! asked for by who shows them.

import { marksAfter, marksOf, withMark, type Marks } from '../model/marks';
import type { RoomEvent } from '../protocol/events';
import type { RoomId } from '../protocol/generated/chat';
import type { Link } from './link.svelte';

export class Saved {
  #marks = $state.raw<Marks>(new Map());
  /** Rises when the list may read differently: with every change, also of what saved messages say. */
  version = $state(0);
  readonly #link: Link;
  /** Counts changes told of: an answer that was asked for before the last one is not believed. */
  #told = 0;

  constructor(link: Link) {
    this.#link = link;
  }

  has(room: RoomId, seq: number): boolean {
    return this.#marks.get(room)?.has(seq) ?? false;
  }

  /** Asks for all of them; what cannot be asked now, the next connection asks. */
  async load(): Promise<void> {
    for (;;) {
      const told = this.#told;
      const answer = await this.#link.call('saved.marks', {}).catch(() => undefined);
      if (!answer) return;
      if (told !== this.#told) continue;
      this.#marks = marksOf(answer.rooms);
      this.version += 1;
      return;
    }
  }

  apply(room: RoomId, seq: number, on: boolean): void {
    this.#told += 1;
    this.#marks = withMark(this.#marks, room, seq, on);
    this.version += 1;
  }

  /** A room's event may change what is saved there, or take it away. */
  heard(event: RoomEvent): void {
    const marks = marksAfter(this.#marks, event);
    const reads = event.type === 'edited' && this.has(event.room, event.seq);
    if (marks === this.#marks && !reads) return;
    this.#told += 1;
    this.#marks = marks;
    this.version += 1;
  }
}
