//! Runs the connection's state machine: feeds it what the socket and the browser report, and carries out its effects.

import { holdOffMs, SIGNED_OUT, step, type Connection, type ConnectionEffect, type ConnectionEvent } from '../net/connection';
import { Socket, type SocketListener } from '../net/socket';
import { NoReply } from '../protocol/errors';
import type { Method, Reply, Request } from '../protocol/generated/methods';

export interface LinkListener extends Omit<SocketListener, 'connection'> {
  online(): void;
  tokenRejected(): void;
}

export class Link {
  state = $state.raw<Connection>(SIGNED_OUT);
  readonly socket: Socket;
  readonly #listener: LinkListener;
  readonly #stop = new AbortController();

  constructor(endpoint: string, token: string, listener: LinkListener) {
    this.#listener = listener;
    this.socket = new Socket(endpoint, token, {
      connection: (event) => this.dispatch(event),
      welcomed: (data) => listener.welcomed(data),
      roomPublication: (room, payload, offset) => listener.roomPublication(room, payload, offset),
      userPublication: (payload) => listener.userPublication(payload),
      userStreamReset: () => listener.userStreamReset(),
      subscribed: (subscribed) => listener.subscribed(subscribed),
      unsubscribed: (room, code) => listener.unsubscribed(room, code),
    });
  }

  get isOnline(): boolean {
    return this.state.name === 'online';
  }

  start(): void {
    const { signal } = this.#stop;
    window.addEventListener('online', () => this.dispatch({ type: 'network_found', at: Date.now() }), { signal });
    window.addEventListener('offline', () => this.dispatch({ type: 'network_lost', at: Date.now() }), { signal });
    document.addEventListener('visibilitychange', () => this.#onVisibility(), { signal });
    this.dispatch({ type: 'sign_in', at: Date.now() });
    if (!navigator.onLine) this.dispatch({ type: 'network_lost', at: Date.now() });
  }

  stop(): void {
    this.#stop.abort();
    this.dispatch({ type: 'sign_out' });
  }

  retryNow(): void {
    this.dispatch({ type: 'retry_now', at: Date.now() });
  }

  /** The server tells again what it tells with a connection. */
  renew(): void {
    if (this.isOnline) this.socket.reopen();
  }

  dispatch(event: ConnectionEvent): void {
    const next = step(this.state, event);
    this.state = next.state;
    for (const effect of next.effects) this.#run(effect);
  }

  async call<M extends Method>(method: M, request: Request<M>): Promise<Reply<M>> {
    // The SDK holds a call until it is connected. That is right for the first moments after signing in; once a
    // connection was lost, a person waiting for it deserves to hear now.
    const beginning = this.state.name === 'connecting' && !this.state.everOnline;
    if (!this.isOnline && !beginning) throw new NoReply('not connected');
    return this.socket.call(method, request);
  }

  #run(effect: ConnectionEffect): void {
    switch (effect) {
      case 'open':
        return this.socket.open();
      case 'close':
        return this.socket.close();
      case 'reopen':
        return this.socket.reopen();
      case 'hold_off': {
        const ms = this.state.name === 'connecting' ? holdOffMs(this.state.early) : 0;
        // Spread, so that a thousand clients do not come back at once.
        return this.socket.reopenAfter(ms * (0.5 + Math.random() / 2));
      }
      case 'forget_token':
        // Our own sign-out has already forgotten it.
        if (this.state.name === 'ended') this.#listener.tokenRejected();
        return undefined;
      case 'flush_outbox':
        return this.#listener.online();
    }
  }

  /** A laptop that slept through its reconnects should not wait out the pause when its lid opens. */
  #onVisibility(): void {
    if (document.visibilityState === 'visible' && this.state.name === 'connecting' && this.state.attempt > 1) this.retryNow();
  }
}

