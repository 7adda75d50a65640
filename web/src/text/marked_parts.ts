//! A text cut where its highlights begin and end. Positions count characters (code points), as the server does; strings
//! count UTF-16 units, which an emoji has two of.

/** Before the first highlight, where there is one line for all. */
const LEAD_CHARS_MAX = 24;

export interface Part {
  text: string;
  marked: boolean;
}

/** Marks of code, marks of emphasis at the edge of a word (inside of one they may mean what they are), and empty lines. */
const MARKS = /`+|\n(?=\s*\n)|(?<![\p{L}\p{N}])(?:\*+|~~)(?=[\p{L}\p{N}])|(?<=[\p{L}\p{N}\p{P}€$%])(?:\*+|~~)(?![\p{L}\p{N}])/gu;
/** Stands for what is left out until the text is cut, so that positions stay; no message holds one. */
const GONE = '\0';

/** The words, cut at their highlights and without Markdown's marks. */
export function markedParts(text: string, highlights: readonly (readonly [number, number])[]): Part[] {
  const characters = Array.from(text.replace(MARKS, (marks) => GONE.repeat(marks.length)));
  const parts: Part[] = [];
  let last = 0;
  const cut = (to: number, marked: boolean) => {
    const words = characters.slice(last, to).filter((each) => each !== GONE).join('');
    if (words !== '') parts.push({ text: words, marked });
    last = Math.max(last, to);
  };
  for (const [from, to] of highlights) {
    cut(from, false);
    cut(to, true);
  }
  cut(characters.length, false);
  return parts;
}

/** For a line that is cut at its end: what was found stands near its beginning. */
export function fromFirstMark(parts: readonly Part[]): readonly Part[] {
  const [first, second] = parts;
  if (!first || first.marked || !second || first.text.length <= LEAD_CHARS_MAX) return parts;
  const lead = first.text.slice(-LEAD_CHARS_MAX);
  // From a whole word on, where words are apart.
  return [{ ...first, text: `…${/\s/.test(lead.trimEnd()) ? lead.replace(/^\S*\s/, '') : lead}` }, ...parts.slice(1)];
}
