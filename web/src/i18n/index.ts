//! What the client says, in the language that somebody gets. It is there before the page is shown; English is always there,
//! because something has to be.

import { en, type Strings } from './en';
import { fetchStrings, LANGUAGES, languageOf, type Language } from './languages';

export { LANGUAGES, languageOf };
export type { Language, Strings };

/** Whoever looks for their language recognises its own name. */
const NAMES: Record<Language, string> = { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español', ja: '日本語', ar: 'العربية' };
const RIGHT_TO_LEFT: ReadonlySet<string> = new Set(['ar']);

const known = new Map<Language, Strings>([['en', en]]);

/** Without a network a language may stay away: then the page speaks English rather than nothing. */
export async function loadStrings(language: Language): Promise<void> {
  if (known.has(language)) return;
  const strings = await fetchStrings(language)?.catch(() => undefined);
  if (strings) known.set(language, strings);
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
