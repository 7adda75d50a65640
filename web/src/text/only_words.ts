//! What a message is made of: one line of words without any mark of Markdown, address or markup is shown as it is.

/** An item of a list begins with a number; `www.` begins an address. Everything that could mean more is left out. */
const ONLY_WORDS = /^(?!\d{1,9}[.)])(?!.*www\.)[\p{L}\p{N}"'“‘(¿¡](?:[\p{L}\p{M}\p{N} ,.;:?!'"’‘“”…–—()%€$]*[\p{L}\p{M}\p{N},.;:?!'"’”…)%€$])?$/iu;

export function isOnlyWords(body: string): boolean {
  return ONLY_WORDS.test(body);
}

/** One to three emoji and nothing else: shown larger. */
export function isOnlyEmoji(body: string): boolean {
  return /^(?:(?:\p{RGI_Emoji}|\p{Extended_Pictographic}️?)\s*){1,3}$/v.test(body);
}
