//! Promises of the outbox: nothing is lost, doubled or overtaken.

import { describe, expect, it } from 'vitest';

import { FILES_LOST, newKey, step, type Outbox, type OutboxEffect, type OutboxEvent } from './outbox';

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

  it('keeps_the_order_for_a_new_tab_though_the_clock_was_put_back', () => {
    const written = run([write('a', 'r1', 9), write('b', 'r1', 5), write('c', 'r1', 5)], false);
    const kept = written.effects.flatMap((effect) => (effect.type === 'store' ? [effect.entry] : [])).reverse();
    const restored = run([{ type: 'restored', entries: kept }], false).outbox;
    expect(restored.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
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

  it('says_without_a_quote_what_answers_a_message_that_is_gone', () => {
    const answer: OutboxEvent = { type: 'enqueue', entry: { key: 'a', room: 'r1', body: 'a', created_at: 1, reply_to: 7 } };
    const { outbox, effects } = run([answer, write('b'), { type: 'unquoted', key: 'a' }]);
    expect(sent(effects)).toEqual(['a', 'a']);
    expect(outbox[0]).not.toHaveProperty('reply_to');
  });

  it('erases_what_is_acknowledged_or_discarded_and_ignores_a_second_acknowledgement', () => {
    const { outbox, effects } = run([write('a'), { type: 'acknowledged', key: 'a' }, { type: 'acknowledged', key: 'a' }]);
    expect(outbox).toEqual([]);
    expect(effects.filter((effect) => effect.type === 'erase')).toHaveLength(1);
  });

  it('forgets_what_another_tab_has_sent_or_discarded_and_goes_on', () => {
    const { outbox, effects } = run([write('a'), write('b'), { type: 'gone', key: 'a' }]);
    expect(sent(effects)).toEqual(['a', 'b']);
    expect(outbox.map(({ key }) => key)).toEqual(['b']);
    expect(effects.filter((effect) => effect.type === 'erase')).toEqual([]);
  });

  it('keeps_a_message_whose_files_are_on_their_way_though_another_tab_had_them_for_lost', () => {
    const files = [{ key: 'f1', name: 'a.png', size: 1 }];
    const picture: OutboxEvent = { type: 'enqueue', entry: { key: 'a', room: 'r1', body: '', created_at: 1, files } };
    const here = run([picture, { type: 'gone', key: 'a' }]).outbox;
    expect(here.map(({ key }) => key)).toEqual(['a']);
    // The other tab hears in turn that it was sent after all.
    expect(run([{ type: 'restored', entries: here }, { type: 'gone', key: 'a' }]).outbox).toEqual([]);
  });

  it('takes_up_what_an_earlier_tab_left_in_the_order_written', () => {
    const left = run([write('a', 'r1', 1), write('b', 'r1', 2)], false).outbox.map((entry) => ({ ...entry, state: 'sending' as const })).reverse();
    const { outbox, effects } = run([{ type: 'restored', entries: left }], true);
    expect(outbox.map((entry) => entry.key)).toEqual(['a', 'b']);
    expect(sent(effects)).toEqual(['a']);
  });

  it('sends_a_message_when_its_files_have_arrived_and_lets_nothing_overtake_it', () => {
    const files = [{ key: 'f1', name: 'a.png', size: 1, id: 'id1' }, { key: 'f2', name: 'b.png', size: 2 }];
    const picture: OutboxEvent = { type: 'enqueue', entry: { key: 'a', room: 'r1', body: '', created_at: 1, files } };
    const waiting = run([picture, write('b')]);
    expect(sent(waiting.effects)).toEqual([]);
    const arrived = run([{ type: 'uploaded', file: 'f2', id: 'id2' }], true, waiting.outbox);
    expect(sent(arrived.effects)).toEqual(['a']);
    expect(arrived.outbox[0]?.files?.map((file) => file.id)).toEqual(['id1', 'id2']);
  });

  it('leaves_a_message_whose_file_failed_to_the_person_and_begins_the_file_again_on_retry', () => {
    const files = [{ key: 'f1', name: 'a.png', size: 1 }];
    const picture: OutboxEvent = { type: 'enqueue', entry: { key: 'a', room: 'r1', body: '', created_at: 1, files } };
    const failed = run([picture, { type: 'upload_failed', file: 'f1', error: 'too large' }, write('b')]);
    expect(failed.outbox[0]).toMatchObject({ state: 'failed', error: 'too large' });
    expect(sent(failed.effects)).toEqual(['b']);
    const again = run([{ type: 'retry', key: 'a' }], true, failed.outbox);
    expect(again.effects).toContainEqual({ type: 'upload', files });
    expect(again.outbox[0]).toMatchObject({ state: 'queued' });
  });

  it('says_that_files_went_with_the_tab_that_had_them', () => {
    const entry = { key: 'a', room: 'r1', body: 'x', created_at: 1, state: 'queued' as const, attempts: 0 };
    const half = { ...entry, files: [{ key: 'f1', name: 'a.png', size: 1 }] };
    const whole = { ...entry, key: 'b', files: [{ key: 'f2', name: 'a.png', size: 1, id: 'id' }] };
    const { outbox, effects } = run([{ type: 'restored', entries: [half, whole] }]);
    expect(outbox[0]).toMatchObject({ state: 'failed', error: FILES_LOST });
    expect(sent(effects)).toEqual(['b']);
  });

  it('makes_keys_of_the_promised_alphabet_and_length', () => {
    const key = newKey((bytes) => bytes.map((_, index) => index * 7));
    expect(key).toMatch(/^[0-9a-z]{26}$/);
  });
});
