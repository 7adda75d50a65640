//! Messages that are about to be deleted: for a moment one can think better of it, and nobody else has seen anything yet.
//! Whatever waits when the page goes away is deleted then, because that is what was asked for.

import type { MessageView, RoomId } from '../protocol/generated/chat';
import { deleteMessage } from './actions';
import type { Chat } from './chat.svelte';

/** Long enough to read what one has done. */
const UNDO_MS = 6_000;

const keyOf = ({ room, seq }: { room: RoomId; seq: number }) => `${room}/${seq}`;

export class Deletions {
  #waiting = $state.raw<ReadonlyMap<string, { message: MessageView; timer: ReturnType<typeof setTimeout> }>>(new Map());
  readonly #chat: Chat;
  readonly #failed: (failure: unknown) => void;
  readonly #leave = new AbortController();

  constructor(chat: Chat, failed: (failure: unknown) => void) {
    this.#chat = chat;
    this.#failed = failed;
    window.addEventListener('pagehide', () => this.flush(), { signal: this.#leave.signal });
  }

  has(message: MessageView): boolean {
    return this.#waiting.has(keyOf(message));
  }

  soon(message: MessageView): void {
    if (this.has(message)) return;
    const timer = setTimeout(() => this.#now(message), UNDO_MS);
    this.#waiting = new Map(this.#waiting).set(keyOf(message), { message, timer });
  }

  undo(message: MessageView): void {
    clearTimeout(this.#waiting.get(keyOf(message))?.timer);
    this.#forget(message);
  }

  flush(): void {
    for (const { message, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      this.#now(message);
    }
  }

  stop(): void {
    this.flush();
    this.#leave.abort();
  }

  #now(message: MessageView): void {
    // The event shows it as deleted; until then it stays hidden here.
    deleteMessage(this.#chat, message).catch(this.#failed).finally(() => this.#forget(message));
  }

  #forget(message: MessageView): void {
    const left = new Map(this.#waiting);
    left.delete(keyOf(message));
    this.#waiting = left;
  }
}
