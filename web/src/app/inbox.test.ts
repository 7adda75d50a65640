import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Inbox, type Arrival } from './inbox';

const FRAME_MS = 16;

let delivered: { at: number; seqs: number[] }[];
let inbox: Inbox;
let began: number;

function arrive(seq: number): void {
  const event = { type: 'deleted', room: '1', seq, by: '1', at: 0 } as Arrival['event'];
  inbox.push({ event, offset: seq });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => setTimeout(run, FRAME_MS));
  vi.stubGlobal('cancelAnimationFrame', (frame: number) => clearTimeout(frame));
  began = performance.now();
  delivered = [];
  inbox = new Inbox((batch) => delivered.push({ at: performance.now() - began, seqs: batch.map(({ offset }) => offset ?? 0) }));
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
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
    expect(delivered.flatMap(({ seqs }) => seqs)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    expect(delivered.length).toBeLessThanOrEqual(11);
  });

  it('come_right_after_a_key_is_painted_while_somebody_types', () => {
    burst(100, 150);
    // The first key goes down after 140 ms.
    const later = delivered.filter(({ at }) => at > 140);
    expect(later.length).toBeGreaterThan(3);
    // A key went down at each 150 ms; a frame and no time later its paint is done.
    for (const { at } of later.slice(0, -1)) expect([0, 1]).toContain((at + 10 - FRAME_MS) % 150);
    expect(delivered.flatMap(({ seqs }) => seqs)).toHaveLength(100);
  });

  it('wait_for_no_key_that_does_not_come', () => {
    inbox.keyPressed();
    arrive(1);
    vi.advanceTimersByTime(FRAME_MS);
    arrive(2);
    vi.advanceTimersByTime(100 + 250 + FRAME_MS);
    expect(delivered.map(({ seqs }) => seqs)).toEqual([[1], [2]]);
  });
});
