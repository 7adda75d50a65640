//! What reads from left to right in every language, such as a number with its unit, amid words that run the other way: without
//! being isolated (Unicode UAX 9) it would come apart, and its unit stand where the number begins.

import { directionOf, type Language } from '.';

const LEFT_TO_RIGHT = '\u2066';
const END = '\u2069';

/** In languages that run the same way the text stays as it is. */
export function leftToRight(language: Language, text: string): string {
  return directionOf(language) === 'rtl' ? `${LEFT_TO_RIGHT}${text}${END}` : text;
}
