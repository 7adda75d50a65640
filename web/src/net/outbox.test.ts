//! Promises of the outbox: nothing is lost, doubled or overtaken.

import { describe, expect, it } from 'vitest';

import { newKey, step, type Outbox, type OutboxEffect, type OutboxEvent } from './outbox';

function run(events: OutboxEvent[], online = true, from: Outbox = []) {
  let outbox = from;
  const effects: OutboxEffect[] = [];
  for (const event of events) {
    const next = step(outbox, event, online);
    outbox = next.outbox;
    effects.push(...next.effects);
  }
  return { outbox, effects };
}

const write = (key: string, room = 'r1', created_at = 1): OutboxEvent => ({ type: 'enqueue', entry: { key, room, body: key, created_at } });
const sent = (effects: OutboxEffect[]) => effects.flatMap((effect) => (effect.type === 'send' ? [effect.entry.key] : []));

describe('outbox', () => {
  it('stores_a_message_before_sending_it', () => {
    expect(run([write('a')]).effects.map((effect) => effect.type)).toEqual(['store', 'send']);
  });

  it('keeps_messages_while_offline_and_sends_them_in_order_when_back', () => {
    const away = run([write('a'), write('b')], false);
    expect(sent(away.effects)).toEqual([]);
    const back = run([{ type: 'online' }, { type: 'acknowledged', key: 'a' }], true, away.outbox);
    expect(sent(back.effects)).toEqual(['a', 'b']);
  });

  it('has_one_message_per_room_under_way_and_lets_rooms_go_side_by_side', () => {
    expect(sent(run([write('a'), write('b'), write('c', 'r2')]).effects)).toEqual(['a', 'c']);
  });

  it('sends_the_same_key_again_after_no_answer', () => {
    const { outbox, effects } = run([write('a'), { type: 'deferred', key: 'a', error: 'timeout' }, { type: 'wake' }]);
    expect(sent(effects)).toEqual(['a', 'a']);
    expect(outbox[0]).toMatchObject({ key: 'a', state: 'sending', attempts: 2 });
  });

  it('waits_longer_each_time_up_to_a_limit', () => {
    const pauses: number[] = [];
    let outbox = run([write('a')]).outbox;
    for (let attempt = 0; attempt < 8; attempt += 1) {
      const next = run([{ type: 'deferred', key: 'a', error: '' }, { type: 'wake' }], true, outbox);
      outbox = next.outbox;
      pauses.push(...next.effects.flatMap((effect) => (effect.type === 'wake_after' ? [effect.ms] : [])));
    }
    expect(pauses).toEqual([500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
  });

  it('keeps_a_refused_message_for_the_person_to_decide_without_holding_up_the_room', () => {
    const { outbox, effects } = run([write('a'), write('b'), { type: 'refused', key: 'a', error: 'too large' }]);
    expect(outbox[0]).toMatchObject({ state: 'failed', error: 'too large' });
    expect(sent(effects)).toEqual(['a', 'b']);
    expect(sent(run([{ type: 'acknowledged', key: 'b' }, { type: 'retry', key: 'a' }], true, outbox).effects)).toEqual(['a']);
  });

  it('erases_what_is_acknowledged_or_discarded_and_ignores_a_second_acknowledgement', () => {
    const { outbox, effects } = run([write('a'), { type: 'acknowledged', key: 'a' }, { type: 'acknowledged', key: 'a' }]);
    expect(outbox).toEqual([]);
    expect(effects.filter((effect) => effect.type === 'erase')).toHaveLength(1);
  });

  it('takes_up_what_an_earlier_tab_left_in_the_order_written', () => {
    const left = run([write('b', 'r1', 2), write('a', 'r1', 1)], false).outbox.map((entry) => ({ ...entry, state: 'sending' as const }));
    const { outbox, effects } = run([{ type: 'restored', entries: left }], true);
    expect(outbox.map((entry) => entry.key)).toEqual(['a', 'b']);
    expect(sent(effects)).toEqual(['a']);
  });

  it('makes_keys_of_the_promised_alphabet_and_length', () => {
    const key = newKey((bytes) => bytes.map((_, index) => index * 7));
    expect(key).toMatch(/^[0-9a-z]{26}$/);
  });
});
