//! Sizes of files as people read them, in units of 1024 bytes. Intl writes the number; it has no names for these units.

import type { Language } from '.';
import { leftToRight } from './isolated';

const UNITS = ['B', 'KiB', 'MiB', 'GiB'];
/** A line must not end between the number and its unit. */
const SPACE = '\u00a0';

export function fileSize(language: Language, bytes: number): string {
  let size = bytes;
  let unit = 0;
  // From 999.5 on: rounded to a whole number it would be a thousand of the smaller unit.
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const shown = new Intl.NumberFormat(language, { maximumFractionDigits: size < 10 && unit > 0 ? 1 : 0 }).format(size);
  return leftToRight(language, `${shown}${SPACE}${UNITS[unit] ?? ''}`);
}
