//! Promises of the size of pieces: about a second each, on any line.

import { describe, expect, it } from 'vitest';

import { UPLOAD_PIECE_BYTES_MAX } from '../protocol/generated/limits';
import { Pace } from './pace';

/** Sends pieces over a line; returns how long each of them keeps it busy, in ms. */
function busy(pace: Pace, bytesPerSecond: number, roundTripMs: number, count: number): number[] {
  return Array.from({ length: count }, () => {
    const { bytes } = pace;
    const ms = (bytes / bytesPerSecond) * 1_000;
    pace.sent(bytes, ms + roundTripMs);
    return ms;
  });
}

describe('pace', () => {
  it.each([6_250, 50_000, 200_000, 1_000_000])('keeps_a_line_of_%d_bytes_a_second_busy_for_a_second', (rate) => {
    const pace = new Pace();
    pace.answered(100);
    for (const ms of busy(pace, rate, 100, 12)) expect(ms).toBeLessThan(1_400);
    expect(pace.bytes).toBeGreaterThan(rate * 0.9);
  });

  it('waits_no_longer_for_a_piece_than_for_its_answer', () => {
    const pace = new Pace();
    pace.answered(2_000);
    const [, ...later] = busy(pace, 6_250, 2_000, 8);
    for (const ms of later) expect(ms).toBeLessThanOrEqual(2_000);
  });

  it('follows_a_line_that_becomes_slow_with_the_next_piece', () => {
    const pace = new Pace();
    pace.answered(50);
    busy(pace, 10_000_000, 50, 8);
    expect(pace.bytes).toBe(UPLOAD_PIECE_BYTES_MAX);
    const [first, ...later] = busy(pace, 500_000, 50, 3);
    expect(first).toBeGreaterThan(1_000);
    for (const ms of later) expect(ms).toBeLessThan(1_100);
  });

  it('begins_another_file_with_seconds_at_most_on_a_line_that_has_become_slow', () => {
    const pace = new Pace();
    pace.answered(50);
    busy(pace, 10_000_000, 50, 8);
    pace.begin();
    const [first, ...later] = busy(pace, 6_250, 50, 3);
    expect(first).toBeLessThan(6_000);
    for (const ms of later) expect(ms).toBeLessThan(1_400);
  });

  it('begins_small_again_where_a_piece_did_not_arrive_in_time_until_none_is_smaller', () => {
    const pace = new Pace();
    pace.answered(50);
    busy(pace, 10_000_000, 50, 8);
    expect(pace.tooSlow()).toBe(true);
    const [first] = busy(pace, 6_250, 50, 1);
    expect(first).toBeLessThan(1_400);
    let left = 0;
    while (pace.tooSlow()) left += 1;
    expect(left).toBeLessThan(3);
  });

  it('takes_nothing_from_the_last_piece_of_a_file', () => {
    const pace = new Pace();
    pace.answered(50);
    busy(pace, 100_000, 50, 6);
    const before = pace.bytes;
    pace.sent(10, 51);
    expect(pace.bytes).toBe(before);
  });
});
