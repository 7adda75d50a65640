//! Words without their marks, for previews, notifications and announcements.

/** One line of plain text for previews: marks are dropped, the words stay. */
export function plain(body: string): string {
  return body
    .replace(/```[\s\S]*?(?:```|$)/g, (code) => code.replace(/```\w*/g, ' '))
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*_~`>#]+/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}
