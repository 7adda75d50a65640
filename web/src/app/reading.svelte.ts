//! Moves the read cursor as a person reads: at most once a second, only while they can be looking.

import type { RoomId } from '../protocol/generated/chat';
import { markRead } from './actions';
import type { Chat } from './chat.svelte';
import { isLooking } from './looking';

const REPORT_MS = 1_000;

export class Reading {
  readonly #chat: Chat;
  readonly #reached = new Map<RoomId, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(chat: Chat) {
    this.#chat = chat;
  }

  /** The list shows messages up to `seq`. */
  reached(room: RoomId, seq: number): void {
    const view = this.#chat.rooms.get(room);
    if (!view || seq <= view.read_seq || !isLooking()) return;
    // The badge goes at once; the server hears of it in a moment.
    this.#chat.setRead(room, seq, view.mentions);
    this.#reached.set(room, seq);
    this.#timer ??= setTimeout(() => void this.#report(), REPORT_MS);
  }

  /** Back online: what could not be reported is reported now. */
  flush(): void {
    if (this.#reached.size > 0) void this.#report();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  async #report(): Promise<void> {
    this.#timer = undefined;
    const reached = [...this.#reached];
    this.#reached.clear();
    for (const [room, seq] of reached) {
      await markRead(this.#chat, room, seq).catch(() => {
        // Not connected: `flush` carries it.
        if (!this.#reached.has(room)) this.#reached.set(room, seq);
      });
    }
  }
}
