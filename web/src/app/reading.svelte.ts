//! Moves the read cursor as a person reads: at most once a second, only while they can be looking.

import { ReplyError } from '../protocol/errors';
import type { RoomId } from '../protocol/generated/chat';
import { markRead } from './actions';
import type { Chat } from './chat.svelte';
import { isLooking } from './looking';

const REPORT_MS = 1_000;
/** A server that refuses for the moment is asked again after this long. */
const RETRY_MS = 5_000;

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
    if (!view) return;
    // What a server that was put back to an older state has lost may still be shown: what is said in its place is unread.
    const read = Math.min(seq, view.last_seq);
    if (read <= view.read_seq || !isLooking()) return;
    // The badge goes at once; the server hears of it in a moment.
    this.#chat.setRead(room, read, view.mentions);
    this.#reached.set(room, read);
    this.#later(REPORT_MS);
  }

  /** Somebody says that they are done with a room. It counts at once, also where the server cannot be reached now. */
  done(room: RoomId, seq: number): void {
    this.#chat.setRead(room, seq, 0);
    this.report(room, seq);
  }

  /** The server lacks what was read here. */
  report(room: RoomId, seq: number): void {
    this.#reached.set(room, seq);
    void this.#report();
  }

  /** Back online: what could not be reported is reported now. */
  flush(): void {
    if (this.#reached.size > 0) void this.#report();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #later(ms: number): void {
    this.#timer ??= setTimeout(() => void this.#report(), ms);
  }

  async #report(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const reached = [...this.#reached];
    this.#reached.clear();
    for (const [room, seq] of reached) {
      await markRead(this.#chat, room, seq).catch((failure: unknown) => {
        if (failure instanceof ReplyError && !failure.temporary) return;
        if (!this.#reached.has(room)) this.#reached.set(room, seq);
        // Without a connection, `flush` carries it.
        if (failure instanceof ReplyError) this.#later(RETRY_MS);
      });
    }
  }
}
