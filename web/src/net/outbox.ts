//! Messages that the server has not acknowledged yet, as a value. A message keeps its idempotency key for life, so
//! sending it again can never double it; one message per room is under way at a time, so that order holds.
//! Nothing here sends or stores: the driver carries out the effects.

import type { RoomId } from '../protocol/generated/chat';

export type OutboxState =
  | 'queued'
  | 'sending'
  /** The server refused it; only the person can decide (retry, discard). */
  | 'failed';

/** A file of a message, which goes up on its own; the message waits for its id. */
export interface OutboxFile {
  /** Names the upload within this tab. */
  key: string;
  name: string;
  size: number;
  /** Once it is on the server. */
  id?: string;
}

export interface OutboxEntry {
  key: string;
  room: RoomId;
  body: string;
  reply_to?: number;
  files?: OutboxFile[];
  created_at: number;
  state: OutboxState;
  /** How often sending began. */
  attempts: number;
  /** The last refusal, in the server's words. */
  error?: string;
}

/** In the order written; the order per room is the order of sending. */
export type Outbox = readonly OutboxEntry[];

export type OutboxEvent =
  | { type: 'enqueue'; entry: Pick<OutboxEntry, 'key' | 'room' | 'body' | 'created_at' | 'reply_to' | 'files'> }
  | { type: 'restored'; entries: readonly OutboxEntry[] }
  | { type: 'online' }
  | { type: 'offline' }
  | { type: 'acknowledged'; key: string }
  /** A file has arrived. */
  | { type: 'uploaded'; file: string; id: string }
  /** A file will not arrive; the person decides what becomes of its message. */
  | { type: 'upload_failed'; file: string; error: string }
  /** The server refused it for good. */
  | { type: 'refused'; key: string; error: string }
  /** What it answers is gone: it is said without that. */
  | { type: 'unquoted'; key: string }
  /** No answer, or one that time may cure: it goes back to the queue until `wake`. */
  | { type: 'deferred'; key: string; error: string }
  | { type: 'wake' }
  /** Another tab has sent or discarded it. */
  | { type: 'gone'; key: string }
  | { type: 'retry'; key: string }
  | { type: 'discard'; key: string };

export type OutboxEffect =
  | { type: 'send'; entry: OutboxEntry }
  /** Files that failed begin again. */
  | { type: 'upload'; files: OutboxFile[] }
  | { type: 'store'; entry: OutboxEntry }
  | { type: 'erase'; key: string }
  | { type: 'wake_after'; ms: number };

export interface OutboxStep {
  outbox: Outbox;
  effects: OutboxEffect[];
}

/** In place of the server's words, for a message whose files went with the tab that had them. */
export const FILES_LOST = 'files_lost';
/** The same, for a message with a file that is not any more what was chosen. */
export const FILES_CHANGED = 'files_changed';

/** First and longest pause between two tries of a message that the server could not take just now. */
const DEFER_MS_MIN = 500;
const DEFER_MS_MAX = 15_000;

export function step(outbox: Outbox, event: OutboxEvent, online: boolean): OutboxStep {
  switch (event.type) {
    case 'enqueue': {
      // Whatever the clock shows, later is later: a new tab takes them up in this order.
      const created_at = Math.max(event.entry.created_at, latest(outbox) + 1);
      const entry: OutboxEntry = { ...event.entry, created_at, state: 'queued', attempts: 0 };
      return pump([...outbox, entry], [{ type: 'store', entry }], online);
    }
    case 'restored': {
      const known = new Set(outbox.map((entry) => entry.key));
      const restored = event.entries
        .filter((entry) => !known.has(entry.key))
        .map(restoredEntry);
      return pump([...outbox, ...restored].sort((a, b) => a.created_at - b.created_at), [], online);
    }
    case 'online':
    case 'wake':
      return pump(outbox, [], online);
    case 'uploaded': {
      const files = (entry: OutboxEntry) => entry.files?.map((file) => (file.key === event.file ? { ...file, id: event.id } : file));
      return change(outbox, holderOf(outbox, event.file), (entry) => ({ files: files(entry) ?? [] }), online, []);
    }
    case 'upload_failed':
      return change(outbox, holderOf(outbox, event.file), () => ({ state: 'failed', error: event.error }), online, []);
    case 'offline':
      return { outbox: outbox.map((entry) => (entry.state === 'sending' ? { ...entry, state: 'queued' } : entry)), effects: [] };
    case 'acknowledged':
      return remove(outbox, event.key, online);
    case 'refused':
      return change(outbox, event.key, () => ({ state: 'failed', error: event.error }), online, []);
    case 'gone':
      return pump(outbox.filter((entry) => entry.key !== event.key || isOnlyHere(entry)), [], online);
    case 'unquoted':
      return change(outbox, event.key, () => ({ state: 'queued' }), online, [], withoutReply);
    case 'deferred': {
      const attempts = outbox.find((entry) => entry.key === event.key)?.attempts ?? 1;
      const ms = Math.min(DEFER_MS_MAX, DEFER_MS_MIN * 2 ** Math.max(0, attempts - 1));
      const next = outbox.map((entry) => (entry.key === event.key ? { ...entry, state: 'queued' as const, error: event.error } : entry));
      return { outbox: next, effects: [{ type: 'wake_after', ms }] };
    }
    case 'retry': {
      const missing = (outbox.find((entry) => entry.key === event.key)?.files ?? []).filter((file) => file.id === undefined);
      const effects: OutboxEffect[] = missing.length > 0 ? [{ type: 'upload', files: missing }] : [];
      return change(outbox, event.key, () => ({ state: 'queued', attempts: 0 }), online, effects);
    }
    case 'discard':
      return remove(outbox, event.key, online);
  }
}

function latest(outbox: Outbox): number {
  return Math.max(0, ...outbox.map((entry) => entry.created_at));
}

/** Starts the first queued message of every room that has none under way. A failed one does not hold up its room. */
function pump(outbox: Outbox, effects: OutboxEffect[], online: boolean): OutboxStep {
  if (!online) return { outbox, effects };
  const busy = new Set(outbox.filter((entry) => entry.state === 'sending').map((entry) => entry.room));
  const next = outbox.map((entry): OutboxEntry => {
    if (entry.state !== 'queued' || busy.has(entry.room)) return entry;
    busy.add(entry.room);
    // What is written after it waits too: order is a promise.
    if (isWaiting(entry)) return entry;
    const sending: OutboxEntry = { ...entry, state: 'sending', attempts: entry.attempts + 1 };
    effects.push({ type: 'send', entry: sending });
    return sending;
  });
  return { outbox: next, effects };
}

function change(
  outbox: Outbox,
  key: string | undefined,
  changes: (entry: OutboxEntry) => Partial<OutboxEntry>,
  online: boolean,
  effects: OutboxEffect[],
  of: (entry: OutboxEntry) => OutboxEntry = (entry) => entry,
): OutboxStep {
  const next = outbox.map((entry) => {
    if (entry.key !== key) return entry;
    const changed = { ...of(entry), ...changes(entry) };
    effects.push({ type: 'store', entry: changed });
    return changed;
  });
  return pump(next, effects, online);
}

function withoutReply({ reply_to: _gone, ...rest }: OutboxEntry): OutboxEntry {
  return rest;
}

/** Whether some of its files are not on the server yet. */
export function isWaiting(entry: OutboxEntry): boolean {
  return entry.files?.some((file) => file.id === undefined) ?? false;
}

/** Its files are on their way in this tab: another one had it for lost, and cannot have sent it. */
function isOnlyHere(entry: OutboxEntry): boolean {
  return entry.state === 'queued' && isWaiting(entry);
}

function holderOf(outbox: Outbox, file: string): string | undefined {
  return outbox.find((entry) => entry.files?.some((each) => each.key === file))?.key;
}

/** Bytes do not outlive a tab: a message whose files had not all arrived is the person's to decide. */
function restoredEntry(entry: OutboxEntry): OutboxEntry {
  if (isWaiting(entry)) return { ...entry, state: 'failed', error: FILES_LOST };
  return entry.state === 'sending' ? { ...entry, state: 'queued' } : entry;
}

function remove(outbox: Outbox, key: string, online: boolean): OutboxStep {
  if (!outbox.some((entry) => entry.key === key)) return { outbox, effects: [] };
  return pump(outbox.filter((entry) => entry.key !== key), [{ type: 'erase', key }], online);
}

const KEY_ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** A fresh idempotency key: 130 random bits, so that two devices never meet. */
export function newKey(random: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array): string {
  return Array.from(random(new Uint8Array(26)), (byte) => KEY_ALPHABET[byte & 31]).join('');
}
