//! Promises of the connection's state machine.

import { describe, expect, it } from 'vitest';

import { holdOffMs, isTerminal, SIGNED_OUT, step, type Connection, type ConnectionEvent } from './connection';

function run(events: ConnectionEvent[], from: Connection = SIGNED_OUT) {
  return events.reduce(
    ({ state, effects }, event) => {
      const next = step(state, event);
      return { state: next.state, effects: [...effects, ...next.effects] };
    },
    { state: from, effects: [] as string[] },
  );
}

const SIGN_IN: ConnectionEvent = { type: 'sign_in', at: 1 };
const CONNECTED: ConnectionEvent = { type: 'connected', at: 2 };
const LOST: ConnectionEvent = { type: 'lost', at: 3, code: 1, detail: 'transport closed', terminal: false };
const dropped = (at: number): ConnectionEvent => ({ type: 'lost', at, code: 3011, detail: '', terminal: false });

describe('connection', () => {
  it('opens_on_sign_in_and_flushes_unsent_messages_once_connected', () => {
    const { state, effects } = run([SIGN_IN, CONNECTED]);
    expect(state).toEqual({ name: 'online', since: 2, early: 0 });
    expect(effects).toEqual(['open', 'flush_outbox']);
  });

  it('counts_attempts_and_remembers_when_the_trouble_began', () => {
    const { state } = run([SIGN_IN, CONNECTED, dropped(20_000), dropped(20_001), dropped(20_005)]);
    expect(state).toEqual({ name: 'connecting', attempt: 3, since: 20_000, everOnline: true, early: 0 });
  });

  it('waits_longer_each_time_a_connection_ends_as_soon_as_it_began', () => {
    let state = run([SIGN_IN]).state;
    const pauses: number[] = [];
    for (let at = 0; at < 8; at += 1) {
      const ended = run([{ type: 'connected', at: at * 100 }, dropped(at * 100 + 50)], state);
      expect(ended.effects).toContain('hold_off');
      state = ended.state;
      if (state.name === 'connecting') pauses.push(holdOffMs(state.early));
    }
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  it('begins_with_a_short_pause_again_after_a_connection_that_lasted', () => {
    const flapping = run([SIGN_IN, CONNECTED, dropped(3), { type: 'connected', at: 4 }, dropped(5)]);
    const { state, effects } = run([{ type: 'connected', at: 6 }, dropped(20_006)], flapping.state);
    expect(effects).toEqual(['flush_outbox']);
    expect(state).toMatchObject({ early: 0 });
  });

  it('tells_a_first_connection_from_a_lost_one', () => {
    expect(run([SIGN_IN, dropped(10)]).state).toMatchObject({ name: 'connecting', everOnline: false });
  });

  it('asks_for_a_new_sign_in_when_the_token_is_rejected', () => {
    const { state, effects } = run([SIGN_IN, { type: 'lost', at: 3, code: 3500, detail: 'invalid token', terminal: true }]);
    expect(state).toMatchObject({ name: 'ended', cause: 'token_rejected' });
    expect(effects.slice(1)).toEqual(['close', 'forget_token']);
  });

  it('treats_the_sdk_verdict_unauthorized_like_a_rejected_token', () => {
    expect(run([SIGN_IN, { ...LOST, terminal: true }]).state).toMatchObject({ cause: 'token_rejected' });
  });

  it('keeps_the_session_when_the_transport_closes_though_the_sdk_numbers_that_like_a_rejection', () => {
    expect(run([SIGN_IN, CONNECTED, LOST]).state).toMatchObject({ name: 'connecting', attempt: 1 });
  });

  it('stops_at_a_terminal_code_until_the_person_asks_again', () => {
    const refused: ConnectionEvent = { type: 'lost', at: 3, code: 3503, detail: 'force disconnect', terminal: true };
    const ended = run([SIGN_IN, CONNECTED, refused]);
    expect(ended.state).toMatchObject({ name: 'ended', cause: 'refused', detail: 'force disconnect' });
    expect(step(ended.state, dropped(5)).state).toBe(ended.state);
    expect(step(ended.state, { type: 'retry_now', at: 6 }).effects).toEqual(['open']);
  });

  it('does_not_count_attempts_without_a_network_and_reopens_when_it_returns', () => {
    const away = run([SIGN_IN, CONNECTED, { type: 'network_lost', at: 10 }, dropped(11)]);
    expect(away.state).toEqual({ name: 'offline', since: 10, everOnline: true });
    const back = step(away.state, { type: 'network_found', at: 20 });
    expect(back).toEqual({ state: { name: 'connecting', attempt: 1, since: 10, everOnline: true, early: 0 }, effects: ['reopen'] });
  });

  it('closes_and_forgets_on_sign_out_and_ignores_what_arrives_later', () => {
    const { state, effects } = run([SIGN_IN, CONNECTED, { type: 'sign_out' }, dropped(9)]);
    expect(state).toEqual(SIGNED_OUT);
    expect(effects.slice(2)).toEqual(['close', 'forget_token']);
    expect(step(state, CONNECTED).effects).toEqual(['close']);
  });

  it('knows_which_codes_forbid_coming_back', () => {
    expect([3000, 3012, 3500, 3999, 4000, 4499, 4500, 4999, 5000].filter(isTerminal)).toEqual([3500, 3999, 4500, 4999]);
  });
});
