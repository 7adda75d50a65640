//! Files on their way to the server. Loaded when somebody attaches the first one. A file goes up as soon as it is chosen;
//! the message that names it waits for it in the outbox. What the network interrupts goes on by itself, what the server
//! refuses is the person's to decide.

import { limitsOf } from '../net/files';
import { Problem, Unreachable } from '../net/http';
import { FILES_CHANGED, newKey } from '../net/outbox';
import { UploadInPieces } from '../net/pieces';
import { Pace } from '../model/pace';
import { isOfFile, refusalOf, type Refusal } from '../model/upload';
import type { Attachment, AttachmentLimits, RoomId } from '../protocol/generated/chat';
import type { Conversation } from './conversation.svelte';

/** Files under way at once: more only share the same line, and what is said meanwhile waits for each of them. */
const UNDER_WAY_MAX = 1;
const PAUSE_MS_MIN = 1_000;
const PAUSE_MS_MAX = 30_000;

/** A file that somebody attached, and where it is. */
export class Draft {
  readonly key = newKey((bytes) => crypto.getRandomValues(bytes));
  readonly file: File;
  readonly room: RoomId;
  /** An address of the picture in memory, where the browser can show it. */
  readonly preview: string | undefined;
  state = $state<'waiting' | 'sending' | 'arrived' | 'failed'>('waiting');
  /** 0 to 1. */
  progress = $state(0);
  refusal = $state.raw<Refusal>();
  /** Why the server refused it, in its words. */
  error = $state('');
  /** What is in it was refused, or its name: it will never be taken. */
  isBroken = $state(false);
  attachment = $state.raw<Attachment>();
  /** Whether the limits allow it is known. */
  checked = false;
  readonly stop = new AbortController();
  /** Once it has begun. */
  upload: UploadInPieces | undefined;
  attempts = 0;

  constructor(room: RoomId, file: File) {
    this.room = room;
    this.file = file;
    const isPicture = /^image\/(png|jpeg|gif|webp)$/.test(file.type);
    this.preview = isPicture ? URL.createObjectURL(file) : undefined;
  }

  /** Whether another try can end otherwise. */
  get mayArrive(): boolean {
    return this.refusal === undefined && !this.isBroken;
  }
}

export interface UploadsListener {
  /** It is on the server's disk. */
  arrived(draft: Draft, attachment: Attachment): void;
  /** The server refused it. */
  failed(draft: Draft): void;
  /** Whether files are on their way now. */
  underWay(some: boolean): void;
}

export class Uploads {
  limits = $state.raw<AttachmentLimits>();
  readonly #token: string;
  readonly #listener: UploadsListener;
  readonly #drafts = new Map<string, Draft>();
  #underWay = 0;
  /** Of the line, for all files. */
  readonly #pace = new Pace();
  #wake: ReturnType<typeof setTimeout> | undefined;
  readonly #ended = new AbortController();

  constructor(token: string, listener: UploadsListener) {
    this.#token = token;
    this.#listener = listener;
    window.addEventListener('beforeunload', (event) => this.#onLeaving(event), { signal: this.#ended.signal });
  }

  /** Attaches files to what is being written in a room. */
  async add(conversation: Conversation, files: readonly File[]): Promise<void> {
    const before = conversation.drafts;
    const added = files.map((file) => new Draft(conversation.room, file));
    // At once: a message that is sent before the limits are known has to have them.
    conversation.drafts = [...before, ...added];
    for (const draft of added) this.#drafts.set(draft.key, draft);
    // Without limits at hand the server is the one to tell.
    const limits = await this.loadLimits();
    for (const [index, draft] of added.entries()) {
      if (limits) this.#check(draft, limits, [...before, ...added.slice(0, index)]);
      draft.checked = true;
    }
    this.resume();
  }

  async loadLimits(): Promise<AttachmentLimits | undefined> {
    this.limits = await limitsOf(this.#token).then(({ attachments }) => attachments, () => this.limits);
    return this.limits;
  }

  draft(key: string): Draft | undefined {
    return this.#drafts.get(key);
  }

  retry(draft: Draft): void {
    if (!draft.mayArrive) {
      // After the step that asked for it.
      queueMicrotask(() => this.#listener.failed(draft));
      return;
    }
    draft.state = 'waiting';
    draft.error = '';
    this.resume();
  }

  /** It is not wanted any more. */
  drop(draft: Draft): void {
    draft.stop.abort();
    if (draft.preview) URL.revokeObjectURL(draft.preview);
    this.#drafts.delete(draft.key);
  }

  /** Its message has arrived; whoever shows that has taken the preview over. */
  release(draft: Draft): void {
    this.#drafts.delete(draft.key);
  }

  /** Sends what waits; also once the connection is back. */
  resume(): void {
    clearTimeout(this.#wake);
    this.#wake = undefined;
    for (const draft of this.#drafts.values()) {
      if (this.#underWay >= UNDER_WAY_MAX) return;
      if (draft.state === 'waiting' && draft.checked) void this.#send(draft);
    }
  }

  end(): void {
    this.#ended.abort();
    clearTimeout(this.#wake);
    for (const draft of this.#drafts.values()) {
      draft.stop.abort();
      if (draft.preview) URL.revokeObjectURL(draft.preview);
    }
    this.#drafts.clear();
  }

  #check(draft: Draft, limits: AttachmentLimits, before: readonly Draft[]): void {
    const others = before.filter((other) => other.refusal === undefined && !other.stop.signal.aborted);
    const bytes = others.reduce((sum, other) => sum + (other.attachment ? 0 : other.file.size), 0);
    draft.refusal = refusalOf(draft.file, limits, others.length, bytes);
    if (!draft.refusal) return;
    draft.state = 'failed';
    this.#listener.failed(draft);
  }

  /** Bytes do not outlive the tab: the browser asks before it closes one in the middle of them. */
  #onLeaving(event: BeforeUnloadEvent): void {
    const states = [...this.#drafts.values()].map(({ state }) => state);
    if (states.includes('sending') || states.includes('waiting')) event.preventDefault();
  }

  async #send(draft: Draft): Promise<void> {
    this.#underWay += 1;
    this.#listener.underWay(true);
    draft.state = 'sending';
    draft.attempts += 1;
    const { room, file, stop } = draft;
    try {
      const request = { token: this.#token, room, file, signal: stop.signal, onprogress: (part: number) => (draft.progress = part) };
      draft.upload ??= new UploadInPieces(request, this.#pace);
      draft.attachment = await draft.upload.send();
      draft.state = 'arrived';
      this.#listener.arrived(draft, draft.attachment);
    } catch (failure) {
      const isLost = failure instanceof Unreachable && !(await isReadable(file));
      if (!stop.signal.aborted) this.#onFailure(draft, failure, isLost);
    } finally {
      this.#underWay -= 1;
      this.#listener.underWay(this.#underWay > 0);
      if (this.#wake === undefined) this.resume();
    }
  }

  /** `isLost`: the file is not on the disk any more as it was chosen. */
  #onFailure(draft: Draft, failure: unknown, isLost: boolean): void {
    const isBusy = failure instanceof Problem && (failure.status >= 500 || failure.status === 429);
    const passes = !isLost && (failure instanceof Unreachable || isBusy);
    draft.state = passes ? 'waiting' : 'failed';
    draft.error = isLost ? FILES_CHANGED : failure instanceof Error ? failure.message : String(failure);
    if (isLost) draft.refusal = { why: 'changed' };
    draft.isBroken = failure instanceof Problem && isOfFile(failure, this.limits?.user_bytes_max);
    if (!passes) {
      this.#listener.failed(draft);
      return;
    }
    const pause = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** (draft.attempts - 1));
    this.#wake ??= setTimeout(() => this.resume(), pause);
  }
}

/** Of a file that was changed or removed after it was chosen, the browser says just what it says of a lost network. */
function isReadable(file: File): Promise<boolean> {
  return file.slice(0, 1).arrayBuffer().then(() => true, () => false);
}
