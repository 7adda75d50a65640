//! The one place that knows the `centrifuge` SDK. It turns the SDK's callbacks into events of our own and never decides
//! anything: which state follows is `connection.ts`, what a publication means is `model/`.

import { Centrifuge, type Subscription } from 'centrifuge';

import { NoReply, ReplyError } from '../protocol/errors';
import type { Method, Reply, Request } from '../protocol/generated/methods';
import type { RoomId } from '../protocol/generated/chat';
import { isTerminal, type ConnectionEvent } from './connection';

/** How long a command may take before it counts as unanswered. */
const CALL_TIMEOUT_MS = 10_000;
/** As long while files go up: on a slow line what is said waits behind them, and saying it again would only make the line
 *  longer. Whether the connection lives is known by the server's pings. */
const CALL_TIMEOUT_BESIDE_FILES_MS = 60_000;
const RECONNECT_MS_MIN = 300;
/** The SDK chooses at random below a limit that doubles up to this one. */
const RECONNECT_MS_MAX = 20_000;

export interface Position {
  offset: number;
  epoch: string;
}

export interface Subscribed {
  room: RoomId;
  /** False when events were missed that the server no longer holds: what is loaded must be fetched again. */
  complete: boolean;
  position: Position | undefined;
}

export interface SocketListener {
  connection(event: ConnectionEvent): void;
  /** The server took the connection, and says what its user may do. */
  welcomed(data: unknown): void;
  roomPublication(room: RoomId, payload: unknown, offset: number | undefined): void;
  userPublication(payload: unknown): void;
  /** The user's own stream could not be resumed: rooms and counts must be listed again. */
  userStreamReset(): void;
  subscribed(subscribed: Subscribed): void;
  unsubscribed(room: RoomId, code: number): void;
}

export class Socket {
  readonly #client: Centrifuge;
  readonly #listener: SocketListener;
  readonly #subscriptions = new Map<RoomId, Subscription>();
  #waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(endpoint: string, token: string, listener: SocketListener) {
    this.#listener = listener;
    this.#client = new Centrifuge(endpoint, {
      token,
      name: 'folkmoot-web',
      timeout: CALL_TIMEOUT_MS,
      minReconnectDelay: RECONNECT_MS_MIN,
      maxReconnectDelay: RECONNECT_MS_MAX,
    });
    this.#listen();
  }

  open(): void {
    clearTimeout(this.#waiting);
    this.#client.connect();
  }

  close(): void {
    clearTimeout(this.#waiting);
    this.#client.disconnect();
  }

  /** Tries at once instead of waiting out the pause before the next attempt. */
  reopen(): void {
    clearTimeout(this.#waiting);
    this.#client.disconnect();
    this.#client.connect();
  }

  /** Instead of the SDK's own next attempt. */
  reopenAfter(ms: number): void {
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(() => this.#client.connect(), ms);
    // The SDK is still telling us of the loss; it has to finish first.
    queueMicrotask(() => this.#client.disconnect());
  }

  /** Whether files are going up over the same line. */
  set besideFiles(on: boolean) {
    // The SDK reads it for each command, and has no other way to change it. A connection would be ended for a
    // subscription that is answered late.
    const { _config: config } = this.#client as unknown as { _config: { timeout: number } };
    config.timeout = on ? CALL_TIMEOUT_BESIDE_FILES_MS : CALL_TIMEOUT_MS;
  }

  /** Throws ReplyError for an answer that is an error, NoReply when none came. */
  async call<M extends Method>(method: M, request: Request<M>): Promise<Reply<M>> {
    try {
      const result = await this.#client.rpc(method, request);
      return result.data as Reply<M>;
    } catch (failure) {
      throw asFailure(failure);
    }
  }

  isSubscribed(room: RoomId): boolean {
    return this.#subscriptions.has(room);
  }

  /** Follows a room from `since` on: events after it arrive in order and once. */
  subscribe(room: RoomId, since: Position): void {
    if (this.#subscriptions.has(room)) return;
    const subscription = this.#client.newSubscription(channelOf(room), { since, recoverable: true, positioned: true });
    this.#subscriptions.set(room, subscription);
    subscription.on('publication', (context) => {
      this.#listener.roomPublication(room, context.data as unknown, context.offset);
    });
    subscription.on('subscribed', (context) => {
      const { streamPosition, wasRecovering, recovered } = context;
      this.#listener.subscribed({ room, complete: !wasRecovering || recovered, position: streamPosition });
    });
    subscription.on('unsubscribed', (context) => {
      // A code other than 0 is the server's decision: we were removed, or lost the right to read.
      if (context.code !== 0) this.#listener.unsubscribed(room, context.code);
    });
    subscription.subscribe();
  }

  unsubscribe(room: RoomId): void {
    const subscription = this.#subscriptions.get(room);
    if (!subscription) return;
    this.#subscriptions.delete(room);
    subscription.unsubscribe();
    this.#client.removeSubscription(subscription);
  }

  #listen(): void {
    const listener = this.#listener;
    let everConnected = false;
    this.#client.on('connected', ({ data }) => {
      everConnected = true;
      listener.welcomed(data as unknown);
      listener.connection({ type: 'connected', at: Date.now() });
    });
    this.#client.on('connecting', ({ code, reason }) => {
      // Code 0 is our own connect(); the machine knows about that one.
      if (code !== 0) listener.connection({ type: 'lost', at: Date.now(), code, detail: reason, terminal: false });
    });
    this.#client.on('error', ({ type, error }) => {
      // Transport errors while connecting are failed attempts; others are reported by the call that failed.
      if (type === 'transport' || type === 'connect') {
        listener.connection({ type: 'lost', at: Date.now(), code: error.code, detail: error.message, terminal: false });
      }
    });
    this.#client.on('disconnected', ({ code, reason }) => {
      // Codes below 3000 are the SDK's own: 0 is our disconnect(), the others will not cure themselves.
      if (code !== 0) {
        const terminal = code < 3000 || isTerminal(code);
        listener.connection({ type: 'lost', at: Date.now(), code, detail: reason, terminal });
      }
    });
    this.#client.on('publication', ({ data }) => listener.userPublication(data as unknown));
    this.#client.on('subscribed', ({ wasRecovering, recovered }) => {
      if (everConnected && wasRecovering && !recovered) listener.userStreamReset();
    });
  }
}

function channelOf(room: RoomId): string {
  return `room:${room}`;
}

/** Codes below 100 are the SDK's own (timeout, connection closed): the server has not answered. */
function asFailure(failure: unknown): Error {
  if (typeof failure === 'object' && failure !== null && 'code' in failure && typeof failure.code === 'number') {
    const message = 'message' in failure && typeof failure.message === 'string' ? failure.message : '';
    return failure.code < 100 ? new NoReply(message) : new ReplyError(failure.code, message);
  }
  return failure instanceof Error ? failure : new NoReply(String(failure));
}
