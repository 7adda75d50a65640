//! From what a person typed to HTML that is safe to show. Marked parses, DOMPurify decides what may stay: the allow-list
//! below is the whole vocabulary. Typed HTML is shown as text; images become links, so that nobody's address leaks.

import DOMPurify from 'dompurify';
import { Marked, type TokenizerAndRendererExtension } from 'marked';

const TAGS = [
  'p', 'br', 'strong', 'em', 'del', 'code', 'pre', 'a', 'ul', 'ol', 'li', 'blockquote', 'hr', 'span',
  'table', 'thead', 'tbody', 'tr', 'th', 'td',
];
const ATTRIBUTES = ['href', 'class', 'start'];
/** Nothing else may be followed: no javascript:, no data:, nothing relative to this page. */
const LINK = /^(?:https?:\/\/|mailto:)/i;
const CLASS = /^(?:mention(?: me)?|heading|language-[a-z0-9+#-]{1,24})$/;
const MENTION = /^@([a-z0-9_.-]{1,31}[a-z0-9_])/i;

/** Rendered bodies kept; a screen shows about twenty. */
const CACHE_MAX = 2_000;
/** A message is read on one screen. Its text could name millions of cells, each of them an element. */
const CELLS_MAX = 2_000;

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const mention: TokenizerAndRendererExtension = {
  name: 'mention',
  level: 'inline',
  start: (source) => source.search(/(?<![\w@])@[a-z0-9_.-]/i),
  tokenizer: (source) => {
    const found = MENTION.exec(source);
    return found ? { type: 'mention', raw: found[0], name: found[1] } : undefined;
  },
  renderer: (token) => `<span class="mention">${escaped(token.raw)}</span>`,
};

/** As many as a table that begins here would have, at most. */
function cellsAt(source: string): number {
  const lines = source.split(/\n[ \t]*\n/, 1)[0]?.split('\n') ?? [];
  return ((lines[0] ?? '').split('|').length + 1) * lines.length;
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  extensions: [mention],
  // False is marked's own way, undefined is that there is none.
  tokenizer: { table: (source) => (/^[^\n]*\|/.test(source) && cellsAt(source) > CELLS_MAX ? undefined : false) },
  renderer: {
    html: ({ text }) => escaped(text),
    // A message is part of a page with its own headings; a loud line in it is not one of them.
    heading({ tokens }) {
      return `<p class="heading"><strong>${this.parser.parseInline(tokens)}</strong></p>`;
    },
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
});

const purifier = DOMPurify(window);

purifier.addHook('uponSanitizeAttribute', (_node, data) => {
  if (data.attrName === 'href' && !LINK.test(data.attrValue.trim())) data.keepAttr = false;
  if (data.attrName === 'class' && !CLASS.test(data.attrValue)) data.keepAttr = false;
});
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer nofollow');
});

const cache = new Map<string, string>();

/** What is nested deeper than the parser goes, thousands of quotes in each other, is shown as it was typed. */
function parsed(body: string): string {
  try {
    return marked.parse(body, { async: false });
  } catch {
    return `<p>${escaped(body)}</p>`;
  }
}

/** HTML of a message body; `myName` marks mentions of the reader. */
export function render(body: string, myName: string): string {
  const key = `${myName} ${body}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const html = purifier.sanitize(parsed(body), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
  const marking = html.replaceAll(/<span class="mention">@([a-z0-9_.-]+)<\/span>/gi, (whole, name: string) =>
    [myName, 'everyone'].includes(name.toLowerCase()) ? `<span class="mention me">@${name}</span>` : whole,
  );
  if (cache.size >= CACHE_MAX) cache.delete(cache.keys().next().value ?? '');
  cache.set(key, marking);
  return marking;
}
