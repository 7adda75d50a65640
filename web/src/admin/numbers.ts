//! Numbers as the administration shows them: counts with their separators, times to disk, how long a server is up.

import type { Language } from '../i18n';
import type { AdministrationStrings } from '../i18n/administration';
import { leftToRight } from '../i18n/isolated';

const MINUTE_MS = 60_000;

export function count(language: Language, value: number): string {
  return new Intl.NumberFormat(language).format(value);
}

/** Microseconds, with two digits that count. */
export function duration(language: Language, us: number): string {
  const [value, unit] = us < 1_000 ? [us, 'µs'] : us < 1_000_000 ? [us / 1_000, 'ms'] : [us / 1_000_000, 's'];
  return leftToRight(language, `${new Intl.NumberFormat(language, { maximumSignificantDigits: 2 }).format(value)} ${unit}`);
}

/** In its largest unit, as nobody asks for the minutes of a month. */
export function uptime(words: AdministrationStrings, ms: number): string {
  // A server that has just started is up for its first minute.
  const minutes = Math.max(1, Math.ceil(ms / MINUTE_MS));
  if (minutes < 60) return words.minutes(minutes);
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? words.hours(hours) : words.days(Math.floor(hours / 24));
}
