//! Which languages there are, and which one a browser prefers. Each is a file of its own, fetched before the page is shown;
//! English is always there, because something has to be.

import { en, type Strings } from './en';

export const LANGUAGES = ['en', 'de', 'fr', 'es', 'ja', 'ar'] as const;
export type Language = (typeof LANGUAGES)[number];
export type { Strings };

/** Whoever looks for their language recognises its own name. */
const NAMES: Record<Language, string> = { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español', ja: '日本語', ar: 'العربية' };
const RIGHT_TO_LEFT: ReadonlySet<string> = new Set(['ar']);
const LOADED: Record<Exclude<Language, 'en'>, () => Promise<Strings>> = {
  de: () => import('./de').then(({ de }) => de),
  fr: () => import('./fr').then(({ fr }) => fr),
  es: () => import('./es').then(({ es }) => es),
  ja: () => import('./ja').then(({ ja }) => ja),
  ar: () => import('./ar').then(({ ar }) => ar),
};

const known = new Map<Language, Strings>([['en', en]]);

/** Without a network a language may stay away: then the page speaks English rather than nothing. */
export async function loadStrings(language: Language): Promise<void> {
  if (language === 'en' || known.has(language)) return;
  await LOADED[language]().then((strings) => known.set(language, strings), () => undefined);
}

export function strings(language: Language): Strings {
  return known.get(language) ?? en;
}

export function nameOf(language: Language): string {
  return NAMES[language];
}

export function directionOf(language: Language): 'ltr' | 'rtl' {
  return RIGHT_TO_LEFT.has(language) && known.has(language) ? 'rtl' : 'ltr';
}

/** The first of the browser's languages that we speak; English otherwise. */
export function browserLanguage(preferred: readonly string[]): Language {
  for (const tag of preferred) {
    const found = LANGUAGES.find((language) => tag.toLowerCase().split('-')[0] === language);
    if (found) return found;
  }
  return 'en';
}
