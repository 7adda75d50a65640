//! Emoji by their short names. The list is loaded when someone first types a colon or opens the picker.

export interface Emoji {
  name: string;
  character: string;
}

/** Offered first, and as quick reactions. */
export const FREQUENT: readonly string[] = ['👍', '❤️', '😂', '🎉', '😮', '😢', '🙏', '👀'];

let list: Promise<readonly Emoji[]> | undefined;

export function loadEmoji(): Promise<readonly Emoji[]> {
  list ??= import('emojibase-data/en/shortcodes/github.json').then((module) => fromCodes(module.default));
  return list;
}

type Codes = Record<string, string | string[]>;

function fromCodes(codes: Codes): readonly Emoji[] {
  return Object.entries(codes).map(([hexcode, names]) => ({
    name: (Array.isArray(names) ? names[0] : names) ?? '',
    character: String.fromCodePoint(...hexcode.split('-').map((code) => Number.parseInt(code, 16))),
  }));
}

/** Names that begin with the query come before names that contain it. */
export function findEmoji(all: readonly Emoji[], query: string, limit: number): Emoji[] {
  const wanted = query.toLowerCase();
  const begins = all.filter((emoji) => emoji.name.startsWith(wanted));
  const contains = all.filter((emoji) => !emoji.name.startsWith(wanted) && emoji.name.includes(wanted));
  return [...begins, ...contains].slice(0, limit);
}
