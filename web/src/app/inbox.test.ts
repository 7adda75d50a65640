import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Inbox, type Arrival } from './inbox';

const FRAME_MS = 16;
/** So long after it was asked for a moment without work comes, and so long it lasts. */
const IDLE_AFTER_MS = 4;
const IDLE_MS = 5;

let delivered: { at: number; seqs: number[] }[];
let inbox: Inbox;
let began: number;
let eventCostMs: number;
let isBusy: boolean;
let spentMs: number;

function arrive(seq: number): void {
  const event = { type: 'deleted', room: '1', seq, by: '1', at: 0 } as Arrival['event'];
  inbox.push({ event, offset: seq });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const clock = performance.now.bind(performance);
  eventCostMs = 0;
  spentMs = 0;
  isBusy = false;
  vi.spyOn(performance, 'now').mockImplementation(() => clock() + spentMs);
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => setTimeout(run, FRAME_MS));
  vi.stubGlobal('navigator', {});
  vi.stubGlobal('cancelAnimationFrame', (frame: number) => clearTimeout(frame));
  vi.stubGlobal('requestIdleCallback', (run: IdleRequestCallback, { timeout }: IdleRequestOptions) =>
    setTimeout(() => run({ didTimeout: isBusy, timeRemaining: () => (isBusy ? 0 : IDLE_MS) }), isBusy ? timeout : IDLE_AFTER_MS));
  vi.stubGlobal('cancelIdleCallback', (idle: number) => clearTimeout(idle));
  began = clock();
  delivered = [];
  inbox = new Inbox((batch) => {
    delivered.push({ at: clock() - began, seqs: batch.map(({ offset }) => offset ?? 0) });
    spentMs += eventCostMs * batch.length;
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** One event every 10 ms; a key every `keyMs`, if any. */
function burst(count: number, keyMs?: number): void {
  for (let n = 1; n <= count; n += 1) {
    arrive(n);
    if (keyMs !== undefined && (n * 10) % keyMs === 0) inbox.keyPressed();
    vi.advanceTimersByTime(10);
  }
  vi.advanceTimersByTime(1_000);
}

/** What was drawn in one idle moment, in however many steps. */
function slices(): { at: number; seqs: number[] }[] {
  const moments = [...new Set(delivered.map(({ at }) => at))];
  return moments.map((at) => ({ at, seqs: delivered.filter((step) => step.at === at).flatMap(({ seqs }) => seqs) }));
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe('events that arrive', () => {
  it('are_shown_at_the_next_frame_when_there_are_few', () => {
    arrive(1);
    vi.advanceTimersByTime(FRAME_MS);
    expect(delivered).toEqual([{ at: FRAME_MS, seqs: [1] }]);
    vi.advanceTimersByTime(500);
    inbox.keyPressed();
    arrive(2);
    vi.advanceTimersByTime(FRAME_MS);
    expect(delivered[1]?.seqs).toEqual([2]);
  });

  it('are_shown_ten_times_a_second_in_order_when_they_come_by_the_hundred', () => {
    burst(100);
    expect(delivered.flatMap(({ seqs }) => seqs)).toEqual(upTo(100));
    expect(delivered.length).toBeLessThanOrEqual(11);
  });

  it('leave_the_frame_to_a_key_that_goes_down_before_it', () => {
    arrive(1);
    vi.advanceTimersByTime(1);
    inbox.keyPressed();
    vi.advanceTimersByTime(IDLE_AFTER_MS);
    expect(delivered).toEqual([{ at: 1 + IDLE_AFTER_MS, seqs: [1] }]);
    vi.advanceTimersByTime(1_000);
    expect(delivered).toHaveLength(1);
  });

  it('come_in_slices_as_large_as_an_idle_moment_while_somebody_types', () => {
    eventCostMs = 2;
    burst(100, 150);
    expect(delivered.flatMap(({ seqs }) => seqs)).toEqual(upTo(100));
    // Before the first key nobody types.
    const typed = slices().filter(({ at }) => at > 300);
    expect(typed.length).toBeGreaterThan(20);
    for (const { seqs } of typed) expect(seqs.length * eventCostMs).toBeLessThanOrEqual(IDLE_MS + eventCostMs);
  });

  it('end_a_slice_in_time_though_they_cost_more_than_was_known', () => {
    eventCostMs = 4;
    inbox.keyPressed();
    for (let n = 1; n <= 20; n += 1) arrive(n);
    vi.advanceTimersByTime(IDLE_AFTER_MS);
    expect(delivered.flatMap(({ seqs }) => seqs).length * eventCostMs).toBeLessThanOrEqual(IDLE_MS + eventCostMs);
  });

  it('end_a_slice_early_for_a_key_that_waits', () => {
    eventCostMs = 0.5;
    vi.stubGlobal('navigator', { scheduling: { isInputPending: () => true } });
    inbox.keyPressed();
    for (let n = 1; n <= 20; n += 1) arrive(n);
    vi.advanceTimersByTime(IDLE_AFTER_MS);
    expect(delivered.map(({ seqs }) => seqs)).toEqual([upTo(2)]);
    vi.advanceTimersByTime(1_000);
    expect(delivered.flatMap(({ seqs }) => seqs)).toEqual(upTo(20));
  });

  it('come_all_at_once_where_the_page_is_never_idle', () => {
    isBusy = true;
    inbox.keyPressed();
    burst(20, 50);
    expect(delivered.map(({ seqs }) => seqs)).toEqual([upTo(20)]);
  });

  it('wait_for_no_key_that_does_not_come', () => {
    inbox.keyPressed();
    arrive(1);
    vi.advanceTimersByTime(IDLE_AFTER_MS);
    arrive(2);
    vi.advanceTimersByTime(100 + IDLE_AFTER_MS);
    expect(delivered.map(({ seqs }) => seqs)).toEqual([[1], [2]]);
  });
});
