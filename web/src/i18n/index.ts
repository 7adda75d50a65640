//! Which languages there are, and which one a browser prefers.

import { de } from './de';
import { en, type Strings } from './en';

export const LANGUAGES = ['en', 'de'] as const;
export type Language = (typeof LANGUAGES)[number];
export type { Strings };

const ALL: Record<Language, Strings> = { en, de };

export function strings(language: Language): Strings {
  return ALL[language];
}

export function nameOf(language: Language): string {
  return ALL[language].language_name;
}

/** The first of the browser's languages that we speak; English otherwise. */
export function browserLanguage(preferred: readonly string[]): Language {
  for (const tag of preferred) {
    const found = LANGUAGES.find((language) => tag.toLowerCase().split('-')[0] === language);
    if (found) return found;
  }
  return 'en';
}
