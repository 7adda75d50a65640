//! These sentences are loaded with the pages that show them, so that everybody else's first visit does not carry them.

import type { Language } from '..';
import { ar } from './ar';
import { de } from './de';
import { en, type AdministrationStrings } from './en';
import { es } from './es';
import { fr } from './fr';
import { ja } from './ja';

const ALL: Record<Language, AdministrationStrings> = { en, de, fr, es, ja, ar };

export type { Act, AdministrationStrings } from './en';

export function administrationStrings(language: Language): AdministrationStrings {
  return ALL[language];
}
