//! The connection as a value: every state that a person can be shown, and the only transitions between them.
//! No socket and no clock in here; the driver in `socket.ts` feeds events and carries out the effects.

export type Connection =
  | { name: 'signed_out' }
  /** Trying. `attempt` counts from 1; `since` is when the trouble began, for "offline for 3 minutes". */
  | { name: 'connecting'; attempt: number; since: number; everOnline: boolean }
  | { name: 'online'; since: number }
  /** The browser itself reports no network; attempts would only fail. */
  | { name: 'offline'; since: number; everOnline: boolean }
  /** The server told us not to come back by ourselves. */
  | { name: 'ended'; cause: 'token_rejected' | 'refused'; code: number; detail: string };

export type ConnectionEvent =
  | { type: 'sign_in'; at: number }
  | { type: 'sign_out' }
  | { type: 'connected'; at: number }
  /** The transport closed or an attempt failed; the SDK will try again unless `terminal`. */
  | { type: 'lost'; at: number; code: number; detail: string; terminal: boolean }
  | { type: 'network_lost'; at: number }
  | { type: 'network_found'; at: number }
  /** The person asked, or the tab came back to the front. */
  | { type: 'retry_now'; at: number };

export type ConnectionEffect = 'open' | 'close' | 'reopen' | 'forget_token' | 'flush_outbox';

export interface Step {
  state: Connection;
  effects: ConnectionEffect[];
}

export const SIGNED_OUT: Connection = { name: 'signed_out' };

/** Terminal codes that mean the token is no longer good: a sign-in is needed, a retry cannot help. 1 is the SDK's own
 *  verdict; as a reason to reconnect the same number means a closed transport. */
const TOKEN_REJECTED: ReadonlySet<number> = new Set([1, 101, 109, 3500]);

/** Whether a disconnect code forbids reconnecting (docs/protocol.md, disconnect codes). */
export function isTerminal(code: number): boolean {
  return (code >= 3500 && code <= 3999) || (code >= 4500 && code <= 4999);
}

export function step(state: Connection, event: ConnectionEvent): Step {
  switch (event.type) {
    case 'sign_in':
      return { state: { name: 'connecting', attempt: 1, since: event.at, everOnline: false }, effects: ['open'] };
    case 'sign_out':
      return { state: SIGNED_OUT, effects: state.name === 'signed_out' ? [] : ['close', 'forget_token'] };
    case 'connected':
      return state.name === 'signed_out'
        ? { state, effects: ['close'] }
        : { state: { name: 'online', since: event.at }, effects: ['flush_outbox'] };
    case 'lost':
      return lost(state, event);
    case 'network_lost':
      return isTrying(state)
        ? { state: { name: 'offline', since: troubleSince(state, event.at), everOnline: wasOnline(state) }, effects: [] }
        : { state, effects: [] };
    case 'network_found':
      return state.name === 'offline'
        ? { state: { name: 'connecting', attempt: 1, since: state.since, everOnline: state.everOnline }, effects: ['reopen'] }
        : { state, effects: [] };
    case 'retry_now':
      return retryNow(state, event.at);
  }
}

function lost(state: Connection, event: Extract<ConnectionEvent, { type: 'lost' }>): Step {
  if (!isTrying(state)) return { state, effects: [] };
  if (event.terminal) {
    const rejected = TOKEN_REJECTED.has(event.code);
    return {
      state: { name: 'ended', cause: rejected ? 'token_rejected' : 'refused', code: event.code, detail: event.detail },
      // The outbox stays: it is keyed by user and goes out after the next sign-in.
      effects: rejected ? ['close', 'forget_token'] : ['close'],
    };
  }
  if (state.name === 'offline') return { state, effects: [] };
  const attempt = state.name === 'connecting' ? state.attempt + 1 : 1;
  const since = troubleSince(state, event.at);
  return { state: { name: 'connecting', attempt, since, everOnline: wasOnline(state) }, effects: [] };
}

function retryNow(state: Connection, at: number): Step {
  switch (state.name) {
    case 'connecting':
      return { state, effects: ['reopen'] };
    case 'offline':
      return {
        state: { name: 'connecting', attempt: 1, since: state.since, everOnline: state.everOnline },
        effects: ['reopen'],
      };
    case 'ended':
      return state.cause === 'refused'
        ? { state: { name: 'connecting', attempt: 1, since: at, everOnline: false }, effects: ['open'] }
        : { state, effects: [] };
    case 'online':
    case 'signed_out':
      return { state, effects: [] };
  }
}

type Trying = Extract<Connection, { name: 'connecting' | 'online' | 'offline' }>;

function isTrying(state: Connection): state is Trying {
  return state.name === 'connecting' || state.name === 'online' || state.name === 'offline';
}

function troubleSince(state: Trying, at: number): number {
  return state.name === 'online' ? at : state.since;
}

function wasOnline(state: Trying): boolean {
  return state.name === 'online' || state.everOnline;
}
