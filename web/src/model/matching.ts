//! Finding something by a few letters of its name: those that begin with them, then a word that does, then any place,
//! then the letters in order. Equal ones keep their order.

export function matching<T>(items: readonly T[], query: string, nameOf: (item: T) => string): T[] {
  const wanted = query.trim().toLocaleLowerCase();
  if (wanted === '') return [...items];
  const ranked = items.map((item) => ({ item, rank: rankOf(nameOf(item).toLocaleLowerCase(), wanted) }));
  return ranked.filter(({ rank }) => rank !== undefined).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0)).map(({ item }) => item);
}

function rankOf(name: string, wanted: string): number | undefined {
  if (name.startsWith(wanted)) return 0;
  if (name.split(/[\s._-]+/).some((word) => word.startsWith(wanted))) return 1;
  if (name.includes(wanted)) return 2;
  return hasInOrder(name, wanted) ? 3 : undefined;
}

function hasInOrder(name: string, wanted: string): boolean {
  let from = 0;
  for (const letter of wanted) {
    const at = name.indexOf(letter, from);
    if (at === -1) return false;
    from = at + letter.length;
  }
  return true;
}
