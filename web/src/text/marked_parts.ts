//! A text cut where its highlights begin and end. Positions count characters (code points), as the server does; strings
//! count UTF-16 units, which an emoji has two of.

export interface Part {
  text: string;
  marked: boolean;
}

export function markedParts(text: string, highlights: readonly (readonly [number, number])[]): Part[] {
  const characters = Array.from(text);
  const parts: Part[] = [];
  let last = 0;
  const cut = (to: number, marked: boolean) => {
    if (to > last) parts.push({ text: characters.slice(last, to).join(''), marked });
    last = Math.max(last, to);
  };
  for (const [from, to] of highlights) {
    cut(from, false);
    cut(to, true);
  }
  cut(characters.length, false);
  return parts;
}
