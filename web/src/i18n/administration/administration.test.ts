//! The administration speaks every language of the client.

import { expect, test } from 'vitest';

import { LANGUAGES } from '..';
import { administrationStrings, type AdministrationStrings } from '.';

const act = { by: 'Ana', user: 'Bo', room: 'Tea', role: 'moderator', until: '' } as const;

/** What is longer than a word, so that languages cannot say it alike by chance. */
function sentences(strings: AdministrationStrings): Map<string, string> {
  const plain = Object.entries(strings).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const acts = Object.entries(strings.acts).map(([name, say]): [string, string] => [name, say(act)]);
  return new Map([...plain, ...acts].filter(([, text]) => text.includes(' ')));
}

test('no_sentence_of_administration_is_left_in_english', () => {
  const english = sentences(administrationStrings('en'));
  for (const language of LANGUAGES.filter((language) => language !== 'en')) {
    const same = [...sentences(administrationStrings(language))].filter(([name, text]) => english.get(name) === text);
    expect(same, language).toEqual([]);
  }
});

test('arabic_counts_by_its_own_rules', () => {
  const { minutes, room_members } = administrationStrings('ar');
  expect([1, 2, 3, 11].map(minutes)).toEqual(['دقيقة واحدة', 'دقيقتين', '3 دقائق', '11 دقيقة']);
  expect(room_members(1_234, '١٬٢٣٤')).toBe('١٬٢٣٤ عضوًا');
});
