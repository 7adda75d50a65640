//! The code of an invitation, from whatever somebody was sent: the code itself, or the link.

/** Nothing but spaces has no code. */
export function codeOf(given: string): string {
  const text = given.trim();
  const code = /\/invite\/([^/?#\s]+)/.exec(text)?.[1] ?? text;
  try {
    return decodeURIComponent(code);
  } catch {
    return code;
  }
}
