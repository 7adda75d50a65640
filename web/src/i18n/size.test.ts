//! Promises of sizes: a number and its unit stay together, in the order in which they are read.

import { beforeAll, describe, expect, it } from 'vitest';

import { loadStrings } from '.';
import { fileSize } from './size';

beforeAll(() => loadStrings('ar'));

describe('a size', () => {
  it('is_written_as_the_language_writes_numbers', () => {
    expect([fileSize('en', 1126), fileSize('de', 1126)]).toEqual(['1.1\u00a0KiB', '1,1\u00a0KiB']);
  });

  it('is_in_the_unit_in_which_it_is_below_a_thousand', () => {
    const sizes = [0, 999, 1_000, 1_048_576, 1_073_741_824].map((bytes) => fileSize('en', bytes));
    expect(sizes).toEqual(['0\u00a0B', '999\u00a0B', '1\u00a0KiB', '1\u00a0MiB', '1\u00a0GiB']);
  });

  it('has_its_number_before_its_unit_amid_words_that_run_from_right_to_left', () => {
    expect(fileSize('ar', 1126)).toMatch(/^\u2066[^\u2066\u2069]+\u00a0KiB\u2069$/);
  });
});
