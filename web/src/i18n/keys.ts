//! What is printed on a key, by language and by maker of the keyboard. Keys are known by their English names.

import type { Language } from '.';

type Names = Record<string, string>;

const OF_LANGUAGE: Partial<Record<Language, Names>> = {
  de: { Ctrl: 'Strg', Shift: 'Umschalt', Del: 'Entf', End: 'Ende' },
  fr: { Shift: 'Maj', Del: 'Suppr', End: 'Fin', Esc: 'Échap' },
  es: { Shift: 'Mayús', Del: 'Supr', End: 'Fin' },
};
/** Its keyboards have signs in all languages; what elsewhere is done with Ctrl is done with the first of them. */
const APPLE: Names = { Ctrl: '⌘', Alt: '⌥', Shift: '⇧', Del: '⌦', End: '↘' };

export function keyName(language: Language, key: string, platform = navigator.platform): string {
  const names = /Mac|iPhone|iPad/.test(platform) ? APPLE : OF_LANGUAGE[language];
  return names?.[key] ?? key;
}
