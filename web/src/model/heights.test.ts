//! Promises of the height index, checked against plain addition.

import { describe, expect, it } from 'vitest';

import { Heights } from './heights';

/** A small generator with a fixed seed, so that a failure repeats. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

describe('heights', () => {
  it('agrees_with_plain_addition_after_any_measurements', () => {
    const random = numbers(7);
    const heights = new Heights(40);
    heights.grow(3_000);
    const plain = new Array<number>(3_000).fill(40);
    for (let round = 0; round < 2_000; round += 1) {
      const index = Math.floor(random() * 3_000);
      const height = 20 + Math.floor(random() * 300);
      heights.measure(index, height);
      plain[index] = height;
    }
    let sum = 0;
    plain.forEach((height, index) => {
      expect(heights.offsetOf(index)).toBe(sum);
      expect(heights.indexAt(sum)).toBe(index);
      expect(heights.indexAt(sum + height - 1)).toBe(index);
      sum += height;
    });
    expect(heights.total).toBe(sum);
  });

  it('keeps_measurements_when_it_grows_past_its_capacity', () => {
    const heights = new Heights(10);
    heights.grow(1_000);
    heights.measure(999, 110);
    heights.grow(100_000);
    expect(heights.total).toBe(100_000 * 10 + 100);
    expect(heights.offsetOf(1_000)).toBe(1_000 * 10 + 100);
  });

  it('answers_with_the_last_row_beyond_the_end_and_with_the_first_before_the_start', () => {
    const heights = new Heights(10);
    heights.grow(5);
    expect([heights.indexAt(-5), heights.indexAt(10_000)]).toEqual([0, 4]);
  });

  it('forgets_the_last_rows_and_goes_on_from_there', () => {
    const heights = new Heights(10);
    heights.grow(5);
    heights.measure(1, 30);
    heights.shrink(2);
    expect([heights.count, heights.total, heights.indexAt(10_000)]).toEqual([2, 40, 1]);
    heights.grow(3);
    expect(heights.total).toBe(50);
  });

  it('ignores_rows_that_do_not_exist', () => {
    const heights = new Heights(10);
    heights.grow(5);
    expect([heights.measure(-1, 50), heights.measure(5, 50), heights.total]).toEqual([0, 0, 50]);
  });
});
