//! Highlights mark what the server meant, whatever stands before them.

import { describe, expect, it } from 'vitest';

import { fromFirstMark, markedParts } from './marked_parts';

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

  it('are_without_marks_of_code_wherever_they_stand_and_without_empty_lines', () => {
    expect(shown('then `@bo` brings', [[11, 17]])).toBe('then @bo [brings]');
    expect(shown('one\n\n- two', [[7, 10]])).toBe('one\n- [two]');
  });

  it('begin_near_the_first_highlight_in_a_line_that_is_cut', () => {
    const line = (text: string, at: number) => fromFirstMark(markedParts(text, [[at, at + 4]])).map(({ text: part }) => part).join('|');
    expect(line('a tide', 2)).toBe('a |tide');
    const long = 'Good morning, the crane is booked for Thursday and the tide is with us';
    expect(line(long, long.indexOf('tide'))).toBe('…for Thursday and the |tide| is with us');
    expect(fromFirstMark(markedParts(long, []))).toEqual([{ text: long, marked: false }]);
  });
});
