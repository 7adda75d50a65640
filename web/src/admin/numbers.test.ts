//! Promises of the administration's numbers.

import { describe, expect, it } from 'vitest';

import { administrationStrings } from '../i18n/administration';
import { count, duration, uptime } from './numbers';

describe('numbers', () => {
  it('carry_the_separators_of_the_language', () => {
    expect([count('en', 1234567), count('de', 1234567)]).toEqual(['1,234,567', '1.234.567']);
  });

  it('show_times_in_the_unit_in_which_they_are_small', () => {
    expect([duration('en', 450), duration('en', 1_280), duration('de', 1_280), duration('en', 2_500_000)]).toEqual(['450 µs', '1.3 ms', '1,3 ms', '2.5 s']);
  });

  it('say_how_long_in_the_largest_unit', () => {
    const words = administrationStrings('en');
    const hour = 3_600_000;
    expect([uptime(words, 60_000), uptime(words, 3 * hour), uptime(words, 47 * hour), uptime(words, 50 * hour)]).toEqual(['1 minute', '3 hours', '47 hours', '2 days']);
  });
});
