//! What must survive a closed tab and is small: the session, unsent messages, drafts, preferences. One key per thing, so
//! that two tabs never overwrite each other's entries. A browser that refuses storage costs persistence, never the session.

import type { Branding, ReplyRef, RoomId, UserId, UserView } from '../protocol/generated/chat';
import type { Layout } from '../model/sidebar';
import type { OutboxEntry } from './outbox';

export interface KeptSession {
  token: string;
  user: UserView;
  device: string;
}

/** A message that is being changed: where it stands, when it was said, and what it is to say. */
export interface KeptEdit {
  seq: number;
  at: number;
  body: string;
}

/** The name of the database in which a user's rooms are kept. */
export function archiveOf(user: UserId): string {
  return `folkmoot.${user}`;
}

/** The key under which a draft is kept, of a room or of one of its threads; other tabs hear of it by this name. */
export function draftOf(user: UserId, room: RoomId, thread?: number): string {
  return `folkmoot.draft.${user}.${room}${thread === undefined ? '' : `.${thread}`}`;
}

/** The key under which it is kept what a room's message is being changed to. */
export function editOf(user: UserId, room: RoomId): string {
  return `folkmoot.edit.${user}.${room}`;
}

function answeringOf(user: UserId, room: RoomId): string {
  return `folkmoot.answering.${user}.${room}`;
}

/** Whether a change of the storage says that a session has ended. */
export function saysEnded({ key, oldValue, newValue }: Pick<StorageEvent, 'key' | 'oldValue' | 'newValue'>, { token }: KeptSession): boolean {
  return key === SESSION && newValue === null && oldValue?.includes(token) === true;
}

/** The keys under which a user's unsent messages are kept, up to those of the messages. */
export function unsentOf(user: UserId): string {
  return `folkmoot.unsent.${user}.`;
}

/** The key by which other tabs hear that one which had unsent messages is gone. */
export function leftOf(user: UserId): string {
  return `folkmoot.left.${user}`;
}

/** The part of `Storage` in use, so that tests can bring their own. */
export type KeyValue = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>;

/** More than anybody remembers. */
const RECENT_ROOMS_MAX = 50;
const SESSION = 'folkmoot.session';
const BRANDING = 'folkmoot.branding';
const BEEN_HERE = 'folkmoot.been-here';
const ENDING = 'folkmoot.ending.';

export class Keep {
  readonly #storage: KeyValue | undefined;
  /** What storage has refused, as it is written there: it lives as long as the tab. */
  readonly #refused = new Map<string, string>();

  constructor(storage: KeyValue | undefined) {
    this.#storage = storage;
  }

  session(): KeptSession | undefined {
    return this.#read<KeptSession>(SESSION);
  }

  /** One for all tabs: the last to sign in. */
  setSession(session: KeptSession | undefined): void {
    if (session ?? this.session()) this.#write(BEEN_HERE, true);
    this.#write(SESSION, session);
  }

  /** Forgets a session. If another tab has signed in meanwhile, that one's stays. */
  endSession({ token }: KeptSession): void {
    if (this.session()?.token === token) this.setSession(undefined);
  }

  /** Tokens of sessions that were ended here, and of which the server has not heard that. They sign nobody in. */
  endings(): string[] {
    return this.#keys().flatMap((key) => (key.startsWith(ENDING) ? key.slice(ENDING.length) : []));
  }

  setEnding(token: string, waits: boolean): void {
    this.#write(ENDING + token, waits || undefined);
  }

  /** Whether anybody was ever signed in at this browser. */
  beenHere(): boolean {
    return this.#read<boolean>(BEEN_HERE) === true;
  }

  unsent(user: UserId): OutboxEntry[] {
    return this.#all<OutboxEntry>(unsentOf(user));
  }

  /** Returns whether the browser keeps it. */
  setUnsent(user: UserId, key: string, entry: OutboxEntry | undefined): boolean {
    return this.#write(unsentOf(user) + key, entry);
  }

  /** This tab is closed, and what it has not sent is for the others to send. */
  leave(user: UserId): void {
    this.#write(leftOf(user), Date.now());
  }

  /** By its key. */
  draft(key: string): string {
    return this.#read<string>(key) ?? '';
  }

  setDraft(key: string, draft: string): void {
    this.#write(key, draft === '' ? undefined : draft);
  }

  edit(user: UserId, room: RoomId): KeptEdit | undefined {
    return this.#read<KeptEdit>(editOf(user, room));
  }

  setEdit(user: UserId, room: RoomId, edit: KeptEdit | undefined): void {
    this.#write(editOf(user, room), edit);
  }

  /** The message that a draft answers. */
  answering(user: UserId, room: RoomId): ReplyRef | undefined {
    return this.#read<ReplyRef>(answeringOf(user, room));
  }

  setAnswering(user: UserId, room: RoomId, message: ReplyRef | undefined): void {
    const kept = message && { seq: message.seq, user: message.user, name: message.name, body: message.body };
    this.#write(answeringOf(user, room), kept);
  }

  /** Of the messages that drafts answer only the numbers stay: what others said is not left behind. */
  forgetQuotes(user: UserId): void {
    for (const key of this.#keys().filter((each) => each.startsWith(answeringOf(user, '')))) {
      const answered = this.#read<ReplyRef>(key);
      this.#write(key, answered && { seq: answered.seq, user: answered.user, name: '', body: '' });
    }
  }

  /** The rooms opened last, the latest first. */
  recentRooms(user: UserId): RoomId[] {
    return this.#read<RoomId[]>(`folkmoot.recent-rooms.${user}`) ?? [];
  }

  opened(user: UserId, room: RoomId): void {
    const rest = this.recentRooms(user).filter((id) => id !== room);
    this.#write(`folkmoot.recent-rooms.${user}`, [room, ...rest].slice(0, RECENT_ROOMS_MAX));
  }

  layout(user: UserId): Layout | undefined {
    return this.#read<Layout>(`folkmoot.layout.${user}`);
  }

  setLayout(user: UserId, layout: Layout): void {
    this.#write(`folkmoot.layout.${user}`, layout);
  }

  /** How the server showed itself the last time. */
  branding(): Branding | undefined {
    return this.#read<Branding>(BRANDING);
  }

  setBranding(branding: Branding): void {
    this.#write(BRANDING, branding);
  }

  preference(name: string): string | undefined {
    return this.#read<string>(`folkmoot.preference.${name}`);
  }

  setPreference(name: string, value: string | undefined): void {
    this.#write(`folkmoot.preference.${name}`, value);
  }

  /** Everything of somebody whose account is gone. */
  forget(user: UserId): void {
    for (const key of this.#keys()) if (key.split('.').includes(user)) this.#write(key, undefined);
  }

  #read<T>(key: string): T | undefined {
    try {
      const text = this.#refused.get(key) ?? this.#storage?.getItem(key);
      return text === null || text === undefined ? undefined : (JSON.parse(text) as T);
    } catch {
      return undefined;
    }
  }

  /** Where storage is full or forbidden, the value lives as long as the tab. */
  #write(key: string, value: unknown): boolean {
    this.#refused.delete(key);
    const text = value === undefined ? undefined : JSON.stringify(value);
    try {
      if (text === undefined) this.#storage?.removeItem(key);
      else this.#storage?.setItem(key, text);
      if (this.#storage !== undefined) return true;
    } catch {
      // Told by what is returned.
    }
    if (text !== undefined) this.#refused.set(key, text);
    return false;
  }

  #all<T>(prefix: string): T[] {
    return this.#keys().flatMap((key) => (key.startsWith(prefix) ? (this.#read<T>(key) ?? []) : []));
  }

  #keys(): string[] {
    const kept = Array.from({ length: this.#storage?.length ?? 0 }, (_, index) => this.#storage?.key(index) ?? '');
    return [...new Set([...kept, ...this.#refused.keys()])];
  }
}

/** The browser's storage, or undefined where it is forbidden. */
export function browserStorage(): KeyValue | undefined {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}
