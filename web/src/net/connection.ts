//! The connection as a value: every state that a person can be shown, and the only transitions between them.
//! No socket and no clock in here; the driver in `socket.ts` feeds events and carries out the effects.

export type Connection =
  | { name: 'signed_out' }
  /** Trying. `attempt` counts from 1; `since` is when the trouble began, for "offline for 3 minutes". */
  | { name: 'connecting'; attempt: number; since: number; everOnline: boolean; early: number }
  /** `early` counts the connections in a row that ended before they had been steady. */
  | { name: 'online'; since: number; early: number }
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

/** `hold_off`: the next attempt waits for `holdOffMs`, whatever the SDK would do by itself. */
export type ConnectionEffect = 'open' | 'close' | 'reopen' | 'hold_off' | 'forget_token' | 'flush_outbox';

export interface Step {
  state: Connection;
  effects: ConnectionEffect[];
}

/** A connection that lived this long was a good one: the next loss begins with a short pause again. */
const STEADY_MS = 10_000;
const HOLD_OFF_MS_MIN = 1_000;
const HOLD_OFF_MS_MAX = 60_000;

/**
 * The pause before the next attempt once connections end as soon as they begin. The SDK counts only attempts that fail; a
 * server that takes each connection and closes it again would be asked several times a second.
 */
export function holdOffMs(early: number): number {
  return Math.min(HOLD_OFF_MS_MAX, HOLD_OFF_MS_MIN * 2 ** Math.max(0, early - 1));
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
      return { state: { name: 'connecting', attempt: 1, since: event.at, everOnline: false, early: 0 }, effects: ['open'] };
    case 'sign_out':
      return { state: SIGNED_OUT, effects: state.name === 'signed_out' ? [] : ['close', 'forget_token'] };
    case 'connected':
      return state.name === 'signed_out'
        ? { state, effects: ['close'] }
        : { state: { name: 'online', since: event.at, early: state.name === 'connecting' ? state.early : 0 }, effects: ['flush_outbox'] };
    case 'lost':
      return lost(state, event);
    case 'network_lost':
      return isTrying(state)
        ? { state: { name: 'offline', since: troubleSince(state, event.at), everOnline: wasOnline(state) }, effects: [] }
        : { state, effects: [] };
    case 'network_found':
      return state.name === 'offline'
        ? { state: { name: 'connecting', attempt: 1, since: state.since, everOnline: state.everOnline, early: 0 }, effects: ['reopen'] }
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
  const ended = state.name === 'online';
  const early = !ended ? state.early : event.at - state.since < STEADY_MS ? state.early + 1 : 0;
  return { state: { name: 'connecting', attempt, since, everOnline: wasOnline(state), early }, effects: ended && early > 0 ? ['hold_off'] : [] };
}

function retryNow(state: Connection, at: number): Step {
  switch (state.name) {
    case 'connecting':
      return { state, effects: ['reopen'] };
    case 'offline':
      return {
        state: { name: 'connecting', attempt: 1, since: state.since, everOnline: state.everOnline, early: 0 },
        effects: ['reopen'],
      };
    case 'ended':
      return state.cause === 'refused'
        ? { state: { name: 'connecting', attempt: 1, since: at, everOnline: false, early: 0 }, effects: ['open'] }
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
