//! Promises of formatting while writing. `[` and `]` stand for the selection, `|` for a caret.

import { describe, expect, it } from 'vitest';

import { continueList, format, inOpenBlock, pasteAddress, type Mark, type Selected } from './formatting';

function read(drawn: string): Selected {
  const caret = drawn.indexOf('|');
  if (caret !== -1) return { text: drawn.replace('|', ''), from: caret, to: caret };
  return { text: drawn.replace('[', '').replace(']', ''), from: drawn.indexOf('['), to: drawn.indexOf(']') - 1 };
}

function draw({ text, from, to }: Selected): string {
  return from === to ? `${text.slice(0, from)}|${text.slice(from)}` : `${text.slice(0, from)}[${text.slice(from, to)}]${text.slice(to)}`;
}

const done = (drawn: string, mark: Mark) => draw(format(read(drawn), mark));

describe('formatting', () => {
  it.each<[string, Mark, string]>([
    ['a [word] b', 'bold', 'a **[word]** b'],
    ['a **[word]** b', 'bold', 'a [word] b'],
    ['a [word] b', 'italic', 'a *[word]* b'],
    ['a **[word]** b', 'italic', 'a ***[word]*** b'],
    ['say |', 'code', 'say `|`'],
    ['[x]', 'strike', '~~[x]~~'],
  ])('%s as %s becomes %s', (before, mark, after) => {
    expect(done(before, mark)).toBe(after);
  });

  it('marks_whole_lines_and_takes_the_marks_back', () => {
    expect(done('o[ne\ntw]o', 'list')).toBe('[- one\n- two]');
    expect(done('[- one\n- two]', 'list')).toBe('[one\ntwo]');
    expect(done('[one\ntwo]', 'numbers')).toBe('[1. one\n2. two]');
    expect(done('hm|', 'quote')).toBe('> hm|');
  });

  it('puts_code_on_lines_of_its_own', () => {
    expect(done('see [let x] ok', 'block')).toBe('see \n```\n[let x]\n```\n ok');
  });

  it('makes_a_link_of_words_and_a_pasted_address', () => {
    const pasted = (drawn: string, address: string) => pasteAddress(read(drawn), address);
    expect(draw(pasted('the [tides] page', ' https://tides.example ') ?? read('|'))).toBe('the [tides](https://tides.example)| page');
    expect(pasted('the [tides] page', 'no address')).toBeUndefined();
    expect(pasted('|', 'https://tides.example')).toBeUndefined();
    expect(pasted('[https://old.example]', 'https://new.example')).toBeUndefined();
  });

  it('goes_on_with_a_list_and_ends_it_on_an_empty_item', () => {
    expect(draw(continueList(read('- one|')) ?? read('|'))).toBe('- one\n- |');
    expect(draw(continueList(read('9. nine|')) ?? read('|'))).toBe('9. nine\n10. |');
    expect(draw(continueList(read('- one\n- |')) ?? read('|x'))).toBe('- one\n|');
    expect(continueList(read('plain|'))).toBeUndefined();
  });

  it('knows_when_the_caret_stands_in_code', () => {
    expect(inOpenBlock('```\nlet', 7)).toBe(true);
    expect(inOpenBlock('```\nlet\n```\n', 12)).toBe(false);
    expect(inOpenBlock('a ``` b', 7)).toBe(false);
  });
});
