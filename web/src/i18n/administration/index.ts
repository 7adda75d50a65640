//! These sentences are loaded with the pages that show them, so that everybody else's first visit does not carry them.

import type { Language } from '..';
import { de } from './de';
import { en, type AdministrationStrings } from './en';

/** The administration speaks two languages so far; readers of the others get English there. */
const ALL: Record<Language, AdministrationStrings> = { en, de, fr: en, es: en, ja: en, ar: en };

export type { Act, AdministrationStrings } from './en';

export function administrationStrings(language: Language): AdministrationStrings {
  return ALL[language];
}
