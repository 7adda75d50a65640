//! Highlights mark what the server meant, whatever stands before them.

import { describe, expect, it } from 'vitest';

import { markedParts } from './marked_parts';

const shown = (text: string, highlights: [number, number][]) =>
  markedParts(text, highlights).map(({ text: part, marked }) => (marked ? `[${part}]` : part)).join('');

describe('marked parts', () => {
  it('count_characters_and_not_their_halves', () => {
    expect(shown('🎉🎉 tea', [[3, 6]])).toBe('🎉🎉 [tea]');
    expect(shown('明日は東京へ', [[3, 5]])).toBe('明日は[東京]へ');
  });

  it('leave_nothing_out_and_nothing_twice', () => {
    expect(shown('one two three', [[0, 3], [8, 13]])).toBe('[one] two [three]');
    expect(shown('plain', [])).toBe('plain');
    expect(shown('short', [[2, 99]])).toBe('sh[ort]');
  });

  it('are_without_the_marks_of_emphasis_and_code', () => {
    expect(shown('**The Dispossessed**, in *a* `copy`', [[2, 5]])).toBe('[The] Dispossessed, in a copy');
    expect(shown('brought **412 €** and ~~more~~', [[8, 15]])).toBe('brought [412 €] and more');
    expect(shown('2 * 3 * 4, a*b, snake_case, ~5', [])).toBe('2 * 3 * 4, a*b, snake_case, ~5');
  });
});
