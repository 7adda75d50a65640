//! Runs the outbox: sends what it says, stores what must survive, and tells when a message is acknowledged. Tabs of one user
//! share what is stored: what a tab leaves unsent when it is closed the others send, under the same keys.

import { FILES_LOST, newKey, step, type Outbox, type OutboxEffect, type OutboxEntry, type OutboxEvent, type OutboxFile } from '../net/outbox';
import { leftOf, unsentOf, type Keep } from '../net/keep';
import { ReplyError } from '../protocol/errors';
import { ErrorCode } from '../protocol/generated/codes';
import type { Reply } from '../protocol/generated/methods';
import type { RoomId, UserId } from '../protocol/generated/chat';
import type { Link } from './link.svelte';

export interface SenderListener {
  acknowledged: Acknowledged;
  /** Files of a message begin again; false if this tab does not have them any more. */
  upload: (files: readonly OutboxFile[]) => boolean;
}

type Acknowledged = (entry: OutboxEntry, reply: Reply<'message.send'>) => void;

export class Sender {
  outbox = $state.raw<Outbox>([]);
  readonly #link: Link;
  readonly #keep: Keep;
  readonly #user: UserId;
  readonly #listener: SenderListener;
  #wake: ReturnType<typeof setTimeout> | undefined;
  /** Entries that the browser does not keep: they would be lost with this tab. */
  readonly #unkept = new Set<string>();
  readonly #ended = new AbortController();

  constructor(link: Link, keep: Keep, user: UserId, listener: SenderListener) {
    this.#link = link;
    this.#keep = keep;
    this.#user = user;
    this.#listener = listener;
  }

  /** Takes up what an earlier tab left unsent, and goes on with others. */
  restore(): void {
    const { signal } = this.#ended;
    window.addEventListener('storage', (event) => this.#onStorage(event), { signal });
    window.addEventListener('pagehide', () => this.outbox.length > 0 && this.#keep.leave(this.#user), { signal });
    window.addEventListener('pageshow', (event) => event.persisted && this.#forgetGone(), { signal });
    window.addEventListener('beforeunload', (event) => this.#onLeaving(event), { signal });
    this.#takeUp();
  }

  send(room: RoomId, body: string, options: Pick<OutboxEntry, 'reply_to' | 'files'>): void {
    const key = newKey((bytes) => crypto.getRandomValues(bytes));
    this.dispatch({ type: 'enqueue', entry: { key, room, body, created_at: Date.now(), ...options } });
  }

  dispatch(event: OutboxEvent): void {
    const next = step(this.outbox, event, this.#link.isOnline);
    this.outbox = next.outbox;
    for (const effect of next.effects) this.#run(effect);
  }

  stop(): void {
    clearTimeout(this.#wake);
    this.#ended.abort();
  }

  #takeUp(): void {
    this.dispatch({ type: 'restored', entries: this.#keep.unsent(this.#user) });
  }

  /** Another tab has changed what is kept. */
  #onStorage({ key, newValue }: StorageEvent): void {
    if (key === leftOf(this.#user)) return this.#takeUp();
    const prefix = unsentOf(this.#user);
    if (newValue === null && key?.startsWith(prefix)) this.dispatch({ type: 'gone', key: key.slice(prefix.length) });
  }

  /** While the page was put aside nobody told it what other tabs have sent. */
  #forgetGone(): void {
    const kept = new Set(this.#keep.unsent(this.#user).map(({ key }) => key));
    for (const { key } of this.outbox) if (!kept.has(key) && !this.#unkept.has(key)) this.dispatch({ type: 'gone', key });
  }

  /** The browser asks before it closes the only place where an unsent message is. */
  #onLeaving(event: BeforeUnloadEvent): void {
    for (const entry of this.outbox) if (this.#unkept.has(entry.key)) this.#store(entry);
    if (this.outbox.some(({ key }) => this.#unkept.has(key))) event.preventDefault();
  }

  #store(entry: OutboxEntry): void {
    if (this.#keep.setUnsent(this.#user, entry.key, entry)) this.#unkept.delete(entry.key);
    else this.#unkept.add(entry.key);
  }

  #run(effect: OutboxEffect): void {
    switch (effect.type) {
      case 'send':
        void this.#send(effect.entry);
        return;
      case 'store':
        this.#store(effect.entry);
        return;
      case 'upload':
        this.#upload(effect.files);
        return;
      case 'erase':
        this.#unkept.delete(effect.key);
        this.#keep.setUnsent(this.#user, effect.key, undefined);
        return;
      case 'wake_after':
        clearTimeout(this.#wake);
        this.#wake = setTimeout(() => this.dispatch({ type: 'wake' }), effect.ms);
        return;
    }
  }

  #upload(files: readonly OutboxFile[]): void {
    const [first] = files;
    if (!first || this.#listener.upload(files)) return;
    // After the step that asked for it, which has not stored its outcome yet.
    queueMicrotask(() => this.dispatch({ type: 'upload_failed', file: first.key, error: FILES_LOST }));
  }

  async #send(entry: OutboxEntry): Promise<void> {
    const { key, room, body, reply_to, files } = entry;
    const attachments = files?.flatMap((file) => file.id ?? []);
    try {
      const request = {
        room, key, body,
        ...(reply_to === undefined ? {} : { reply_to }),
        ...(attachments === undefined ? {} : { attachments }),
      };
      const reply = await this.#link.call('message.send', request);
      this.#listener.acknowledged(entry, reply);
      this.dispatch({ type: 'acknowledged', key });
    } catch (failure) {
      const error = failure instanceof Error ? failure.message : String(failure);
      // Files may be what is gone, too: then the person has to decide.
      const isGone = failure instanceof ReplyError && failure.code === ErrorCode.NotFound && !attachments?.length;
      if (isGone && reply_to !== undefined) return this.dispatch({ type: 'unquoted', key });
      const refused = failure instanceof ReplyError && !failure.temporary;
      this.dispatch({ type: refused ? 'refused' : 'deferred', key, error });
    }
  }
}
