//! What was loaded, kept for reading without a network: rooms and the newest messages of each, in IndexedDB.
//! It is a copy: everything in it may be stale, and losing it costs nothing but a fetch.

import type { MessageView, RoomId, RoomView, UserId } from '../protocol/generated/chat';
import { archiveOf } from './keep';
import { within } from './within';

export interface ArchivedRoom {
  view: RoomView;
  messages: MessageView[];
}

/** Newest messages kept per room; a screen shows about twenty. */
export const ARCHIVED_MESSAGES_MAX = 200;

/** A browser answers in milliseconds, or after its disk has woken; some never do, in private windows or once a tab is stuck. */
export const ANSWER_MS_MAX = 1_000;

const STORE = 'rooms';

export class Archive {
  readonly #database: Promise<IDBDatabase>;
  #isOpen = false;

  private constructor(database: Promise<IDBDatabase>) {
    this.#database = database;
    // Every use awaits it; a refusal must not surface as an unhandled rejection before the first.
    database.then(() => (this.#isOpen = true), () => undefined);
  }

  /** One database per user, so that two people at one browser never see each other's rooms. */
  static open(user: UserId): Archive {
    const opening = new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(archiveOf(user), 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error ?? new Error('storage refused'));
    });
    return new Archive(opening);
  }

  /** Everything kept; undefined where the browser refuses storage. */
  async load(): Promise<ArchivedRoom[] | undefined> {
    try {
      const store = await this.#store('readonly');
      return await settled<ArchivedRoom[]>(store.getAll());
    } catch {
      return undefined;
    }
  }

  async put(rooms: ArchivedRoom[], removed: RoomId[]): Promise<void> {
    // What waited for a browser that never answers would grow with every message.
    if (!this.#isOpen) return;
    try {
      const store = await this.#store('readwrite');
      for (const room of rooms) store.put(room, room.view.id);
      for (const id of removed) store.delete(id);
    } catch {
      // Reading offline is a courtesy; without storage there is none.
    }
  }

  /** Forgets everything: after signing out nothing readable stays behind. Nobody waits for a browser that never answers. */
  async erase(): Promise<void> {
    await within(ANSWER_MS_MAX, this.#erase().catch(() => undefined));
  }

  async #erase(): Promise<void> {
    const store = await this.#store('readwrite');
    await settled(store.clear());
  }

  async #store(mode: IDBTransactionMode): Promise<IDBObjectStore> {
    const database = await this.#database;
    return database.transaction(STORE, mode).objectStore(STORE);
  }
}

function settled<T>(request: IDBRequest): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    request.onsuccess = () => resolve(request.result as T);
    request.onerror = () => reject(request.error ?? new Error('storage failed'));
  });
}
