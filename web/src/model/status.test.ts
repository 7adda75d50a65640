//! Promises of when a status ends.

import { describe, expect, it } from 'vitest';

import { endOf } from './status';

describe('a status', () => {
  const wednesday = new Date(2026, 10, 18, 14, 30).getTime();

  it('ends_with_the_day_or_the_week_by_ones_own_clock', () => {
    expect(endOf('today', wednesday)).toBe(new Date(2026, 10, 19).getTime());
    expect(endOf('week', wednesday)).toBe(new Date(2026, 10, 23).getTime());
    const sunday = new Date(2026, 10, 22, 9).getTime();
    expect(endOf('week', sunday)).toBe(new Date(2026, 10, 23).getTime());
  });

  it('lasts_as_long_as_was_said_or_for_ever', () => {
    expect(endOf('half_hour', wednesday)).toBe(wednesday + 1_800_000);
    expect(endOf('never', wednesday)).toBeUndefined();
  });
});
