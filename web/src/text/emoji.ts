//! Emoji by name, with skin tones and the ones used last. The list is loaded when someone first types a colon or opens the
//! browser of emoji, in the language of the page; short names are English everywhere, as in other programs.

import type { Language } from '../i18n';

export interface Emoji {
  /** Between colons. */
  name: string;
  character: string;
  /** As people of the language call it. */
  label: string;
  tags: string;
  takesTone: boolean;
}

/** By group: smileys, people, animals, food, travel, activities, objects, symbols, flags. */
export type EmojiGroups = readonly (readonly Emoji[])[];

/** Drawn, so that the way to the groups is there where the system has no emoji. */
export const GROUP_ICONS = ['smile', 'people', 'leaf', 'cup', 'compass', 'ball', 'bulb', 'heart', 'flag'] as const;
export const TONES = ['', '🏻', '🏼', '🏽', '🏾', '🏿'] as const;

/** Offered first, and as quick reactions, until somebody has favourites of their own. */
export const FREQUENT: readonly string[] = ['👍', '❤️', '😂', '🎉', '😮', '😢', '🙏', '👀'];
export const RECENT_MAX = 24;

type Line = readonly [character: string, name: string, label: string, tags: string, takesTone: 0 | 1];

/** Languages that the list does not speak get the English one. */
const LISTS: Partial<Record<Language, () => Promise<{ default: readonly (readonly Line[])[] }>>> = {
  en: () => import('virtual:emoji/en'),
  de: () => import('virtual:emoji/de'),
  fr: () => import('virtual:emoji/fr'),
  es: () => import('virtual:emoji/es'),
  ja: () => import('virtual:emoji/ja'),
};

const loaded = new Map<Language, Promise<EmojiGroups>>();

export function loadEmoji(language: Language): Promise<EmojiGroups> {
  let list = loaded.get(language);
  if (!list) {
    const load = LISTS[language] ?? LISTS.en;
    list = (load ? load() : Promise.resolve({ default: [] })).then(({ default: groups }) => groups.map((lines) => lines.map(fromLine)));
    // Without a network there is nothing to load it from; the next try asks again.
    list.catch(() => loaded.delete(language));
    loaded.set(language, list);
  }
  return list;
}

function fromLine([character, name, label, tags, takesTone]: Line): Emoji {
  return { character, name, label, tags, takesTone: takesTone === 1 };
}

/** The best first: a short name that begins so, a name that does, a word of either, anything that contains it. */
export function findEmoji(groups: EmojiGroups, query: string, limit: number): Emoji[] {
  const wanted = query.trim().toLowerCase();
  const ranked: { emoji: Emoji; rank: number }[] = [];
  for (const group of groups) {
    for (const emoji of group) {
      const rank = rankOf(emoji, wanted);
      if (rank !== undefined) ranked.push({ emoji, rank });
    }
  }
  return ranked.sort((a, b) => a.rank - b.rank).slice(0, limit).map(({ emoji }) => emoji);
}

function rankOf({ name, label, tags }: Emoji, wanted: string): number | undefined {
  const shown = label.toLowerCase();
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  if (shown.startsWith(wanted)) return 2;
  if (`_${name}`.includes(`_${wanted}`) || ` ${shown}`.includes(` ${wanted}`)) return 3;
  if (` ${tags.toLowerCase()}`.includes(` ${wanted}`)) return 4;
  return name.includes(wanted) || shown.includes(wanted) ? 5 : undefined;
}

/** In the tone a person chose; every person in the emoji gets it. */
export function withTone({ character, takesTone }: Emoji, tone: string): string {
  return takesTone && tone !== '' ? character.replace(/(\p{Emoji_Modifier_Base})️?/gu, `$1${tone}`) : character;
}

/** What is offered at once: those used last, then what most people use. */
export function usualEmoji(recent: readonly string[], count: number): string[] {
  return [...new Set([...recent, ...FREQUENT])].slice(0, count);
}

/** The list of those used last, with one more. */
export function used(recent: readonly string[], character: string): string[] {
  return [character, ...recent.filter((each) => each !== character)].slice(0, RECENT_MAX);
}
