//! Promises of searching while typing.

import { describe, expect, it } from 'vitest';

import { matching } from './matching';
import { typedQuery } from './typed_query';

describe('a half-typed query', () => {
  it.each([
    ['harbou', 'harbou*'], ['low tide', 'low tide*'], ['from:mira harb', 'from:mira harb*'], ['harb*', 'harb*'], ['"low tide"', '"low tide"'],
    ['東京タ', '東京タ'], ['tide ', 'tide'],
  ])('%s asks for %s', (typed, asked) => {
    expect(typedQuery(typed)).toBe(asked);
  });

  it.each(['', ' ', 'h', '"low ti', 'from:'])('%s waits', (typed) => {
    expect(typedQuery(typed)).toBeUndefined();
  });
});

describe('matching', () => {
  const names = ['Town square', 'Küche', 'Code corner', 'Emil Sørensen', 'Back to the Kuchen'];
  const found = (query: string) => matching(names, query, (name) => name);

  it('asks_for_no_accents', () => {
    expect(found('kuch')).toEqual(['Küche', 'Back to the Kuchen']);
    expect(found('soren')).toEqual(['Emil Sørensen']);
  });

  it('finds_by_first_letters_and_by_letters_in_order', () => {
    expect(found('ts')[0]).toBe('Town square');
    expect(found('ccrn')).toEqual(['Code corner']);
    expect(found('code cor')).toEqual(['Code corner']);
  });
});
