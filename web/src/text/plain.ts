//! Words without their marks, for previews, notifications and announcements.

/** No preview shows more, and a body of brackets would be searched from each of them to its end. */
const CHARS_MAX = 1_000;

/** One line of plain text for previews: marks are dropped, the words stay. */
export function plain(body: string): string {
  return body
    .slice(0, CHARS_MAX)
    .replace(/```[\s\S]*?(?:```|$)/g, (code) => code.replace(/```\w*/g, ' '))
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*_~`>#]+/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}
