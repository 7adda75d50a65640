//! Times as people of a language write them. Formatters are costly to build, so each is built once.

import type { Language } from '.';
import { timeZone } from './zone.svelte';

const FORMATS = {
  clock: { hour: 'numeric', minute: '2-digit' },
  full: { dateStyle: 'full', timeStyle: 'short' },
  day: { weekday: 'long', day: 'numeric', month: 'long' },
  day_and_year: { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' },
  short_day: { day: 'numeric', month: 'short' },
  date: { dateStyle: 'medium' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

const BUILT = new Map<string, Intl.DateTimeFormat>();
const DAY_MS = 86_400_000;

function format(language: Language, name: keyof typeof FORMATS): Intl.DateTimeFormat {
  // One that is built keeps the zone of that moment.
  const key = `${language}.${name}.${timeZone()}`;
  let built = BUILT.get(key);
  if (!built) {
    built = new Intl.DateTimeFormat(regional(language), FORMATS[name]);
    // "07:55" and "7:55 AM": each as its readers write it.
    if (name === 'clock' && built.resolvedOptions().hour12 === false) {
      built = new Intl.DateTimeFormat(regional(language), { ...FORMATS.clock, hour: '2-digit' });
    }
    BUILT.set(key, built);
  }
  return built;
}

/** The reader's own variety of the language, for 24 hours or a.m. and p.m.; the plain language where there is none. */
function regional(language: Language): string {
  return navigator.languages.find((tag) => tag.split('-')[0] === language) ?? language;
}

export function clock(language: Language, at: number): string {
  return format(language, 'clock').format(at);
}

export function fullTime(language: Language, at: number): string {
  return format(language, 'full').format(at);
}

/** The heading of a day: today and yesterday by name, others by date; the year only when it is another one. */
export function dayHeading(language: Language, day: number, now: number): string {
  void timeZone();
  const today = new Date(now).setHours(0, 0, 0, 0);
  // Rounded: a day of a clock change is 23 or 25 hours long.
  const distance = Math.round((day - today) / DAY_MS);
  if (distance === 0 || distance === -1) {
    const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(distance, 'day');
    return relative.charAt(0).toLocaleUpperCase(language) + relative.slice(1);
  }
  const sameYear = new Date(day).getFullYear() === new Date(now).getFullYear();
  return format(language, sameYear ? 'day' : 'day_and_year').format(day);
}

/** For lists: the clock today, the date before that. */
export function shortTime(language: Language, at: number, now: number): string {
  void timeZone();
  const sameDay = new Date(at).toDateString() === new Date(now).toDateString();
  return sameDay ? clock(language, at) : format(language, 'short_day').format(at);
}

/** A day that may be long ago. */
export function dateOf(language: Language, at: number): string {
  return format(language, 'date').format(at);
}
