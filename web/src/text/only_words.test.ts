import { Marked } from 'marked';
import { describe, expect, it } from 'vitest';

import { isOnlyWords } from './only_words';

const marked = new Marked({ gfm: true, breaks: true });
const WORDS = [
  'Good morning', 'a', '7', 'The tide comes in at 9.', 'Does it? It does (mostly)!', '"Yes," she said: 40 % of €30', 'schön… – 東京 ok',
  'مرحبا بالعالم', "it's Bo's", '2026 was good', 'e.g. this: that; and so on', 'a  b',
];
const MORE = [
  '', ' a', 'a ', '1. one', '12) twelve', '- a', '+ a', '* a', '# a', '> a', 'a\nb', '**a**', 'a_b_', '`a`', '~~a~~', '@bo', 'me@example.org',
  'https://a.org', 'see www.a.org', 'SEE WWW.A.ORG', '<b>', 'a & b', '&amp;', 'a | b', '[a](b)', 'a\\b', 'a=b', '---', '☕', 'a\u0000b', 'a\u202eb', 'a\u200bb',
];

describe('a line of words', () => {
  it('is_what_the_parser_would_make_of_it', () => {
    for (const body of WORDS) {
      expect(isOnlyWords(body), body).toBe(true);
      const parsed = (marked.parse(body, { async: false })).replaceAll('&#39;', "'").replaceAll('&quot;', '"');
      expect(parsed).toBe(`<p>${body}</p>\n`);
    }
  });

  it('has_no_mark_of_any_kind', () => {
    for (const body of MORE) expect(isOnlyWords(body), body).toBe(false);
  });

  it('is_told_apart_quickly_however_long_it_is', () => {
    const begin = performance.now();
    expect(isOnlyWords(`${'w.'.repeat(50_000)}<`)).toBe(false);
    expect(performance.now() - begin).toBeLessThan(200);
  });
});
