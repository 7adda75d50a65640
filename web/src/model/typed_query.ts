//! What a half-typed query asks for: the last word may go on, so it stands for all words that begin so. Where that would
//! change what was meant, or the query is not complete, nothing is asked until Enter.

/** Shorter beginnings fit half of all messages. */
const WORD_CHARS_MIN = 2;

export function typedQuery(query: string): string | undefined {
  const text = query.trimEnd();
  if (text.trim() === '' || (text.split('"').length - 1) % 2 === 1) return undefined;
  const last = /(\S+)$/.exec(text)?.[1] ?? '';
  // A filter that still lacks its value would be refused.
  if (/^\w+:$/.test(last)) return undefined;
  const isWord = /^[\p{L}\p{N}]+$/u.test(last);
  // Scripts without spaces are found by any part; a beginning means nothing there.
  const spaced = !/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(last);
  if (!isWord || !spaced || query !== text) return text;
  return last.length < WORD_CHARS_MIN ? undefined : `${text}*`;
}
