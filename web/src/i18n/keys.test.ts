import { expect, it } from 'vitest';

import { keyName } from './keys';

it('keys_are_called_what_is_printed_on_them', () => {
  const names = (language: 'en' | 'de' | 'fr', platform: string) => ['Ctrl', 'Shift', 'K'].map((key) => keyName(language, key, platform));
  expect(names('en', 'Linux x86_64')).toEqual(['Ctrl', 'Shift', 'K']);
  expect(names('de', 'Win32')).toEqual(['Strg', 'Umschalt', 'K']);
  expect(names('fr', 'Linux x86_64')).toEqual(['Ctrl', 'Maj', 'K']);
  expect(names('de', 'MacIntel')).toEqual(['⌘', '⇧', 'K']);
});
