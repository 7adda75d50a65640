//! Which languages there are, and which one somebody gets. Each is a file of its own; English comes with the client.

import type { Strings } from './en';

export const LANGUAGES = ['en', 'de', 'fr', 'es', 'ja', 'ar'] as const;
export type Language = (typeof LANGUAGES)[number];

const FILES: Record<Exclude<Language, 'en'>, () => Promise<Strings>> = {
  de: () => import('./de').then(({ de }) => de),
  fr: () => import('./fr').then(({ fr }) => fr),
  es: () => import('./es').then(({ es }) => es),
  ja: () => import('./ja').then(({ ja }) => ja),
  ar: () => import('./ar').then(({ ar }) => ar),
};

/** What a language says, where that is not at hand anyway. */
export function fetchStrings(language: Language): Promise<Strings> | undefined {
  return language === 'en' ? undefined : FILES[language]();
}

/** What was chosen on this device; else the first of the browser's languages that we speak, or English. */
export function languageOf(chosen: string | undefined, preferred: readonly string[]): Language {
  return LANGUAGES.find((language) => language === chosen) ?? browserLanguage(preferred);
}

function browserLanguage(preferred: readonly string[]): Language {
  for (const tag of preferred) {
    const found = LANGUAGES.find((language) => tag.toLowerCase().split('-')[0] === language);
    if (found) return found;
  }
  return 'en';
}
