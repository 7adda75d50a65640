//! Finding something by a few letters of its name: those that begin with them, then a word that does, then the first letters
//! of its words, then any place, then the letters in order. Equal ones keep their order, so whoever sorts by what was used
//! last gets that first.

import { fold } from '../text/fold';

export function matching<T>(items: readonly T[], query: string, nameOf: (item: T) => string): T[] {
  const wanted = fold(query.trim());
  if (wanted === '') return [...items];
  const ranked = items.map((item) => ({ item, rank: rankOf(fold(nameOf(item)), wanted) }));
  return ranked.filter(({ rank }) => rank !== undefined).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)).map(({ item }) => item);
}

function rankOf(name: string, wanted: string): number | undefined {
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  const words = name.split(/[\s._@-]+/).filter(Boolean);
  if (words.some((word) => word.startsWith(wanted))) return 2;
  if (words.map((word) => word[0]).join('').startsWith(wanted)) return 3;
  if (name.includes(wanted)) return 4;
  return hasInOrder(name, wanted) ? 5 : undefined;
}

function hasInOrder(name: string, wanted: string): boolean {
  let from = 0;
  for (const letter of wanted.replaceAll(' ', '')) {
    const at = name.indexOf(letter, from);
    if (at === -1) return false;
    from = at + letter.length;
  }
  return true;
}
