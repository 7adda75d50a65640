//! From what a person typed to elements that are safe to show. Marked says what it means; only the elements that are named
//! below are made of it, and everything else is text. Typed HTML is shown as it was typed; images become links, so that
//! nobody's address leaks.

import { Marked, type MarkedToken, type Token, type TokenizerExtension, type Tokens } from 'marked';

/** Nothing else may be followed: no javascript:, no data:, nothing relative to this page. */
const LINK = /^(?:https?:\/\/|mailto:)/i;
const LANGUAGE = /^[a-z0-9+#-]{1,24}/i;
const MENTION = /^@([a-z0-9_.-]{1,31}[a-z0-9_])/i;

/** A message is read on one screen. Its text could name millions of cells, each of them an element. */
const CELLS_MAX = 2_000;
/** Quotes and lists in each other. Browsers lay nested elements out by recursion. */
const DEPTH_MAX = 50;

interface Mention {
  type: 'mention';
  raw: string;
  name: string;
}

const mention: TokenizerExtension = {
  name: 'mention',
  level: 'inline',
  start: (source) => source.search(/(?<![\w@])@[a-z0-9_.-]/i),
  tokenizer: (source) => {
    const found = MENTION.exec(source);
    return found ? { type: 'mention', raw: found[0], name: found[1] } : undefined;
  },
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
});

function element(tag: string, ...content: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  made.append(...content);
  return made;
}

function link(href: string, ...content: (Node | string)[]): Node[] {
  const made = element('a', ...content) as HTMLAnchorElement;
  if (LINK.test(href)) made.href = href;
  made.target = '_blank';
  made.rel = 'noopener noreferrer nofollow';
  return [made];
}

function code({ lang, text }: Tokens.Code): Node {
  const made = element('code', `${text.replace(/\n$/, '')}\n`);
  const language = LANGUAGE.exec(lang ?? '')?.[0];
  if (language) made.className = `language-${language}`;
  return element('pre', made);
}

class Builder {
  readonly #myName: string;
  #depth = 0;

  constructor(myName: string) {
    this.#myName = myName;
  }

  nodes(tokens: readonly Token[]): (Node | string)[] {
    if (++this.#depth > DEPTH_MAX) throw new RangeError('too deep');
    const made = tokens.flatMap((token) => this.#made(token as MarkedToken | Mention));
    this.#depth -= 1;
    return made;
  }

  #made(token: MarkedToken | Mention): (Node | string)[] {
    switch (token.type) {
      case 'space':
      case 'def':
        return [];
      case 'paragraph':
        return [element('p', ...this.nodes(token.tokens))];
      case 'heading':
        return [this.#heading(token)];
      case 'blockquote':
      case 'strong':
      case 'em':
      case 'del':
        return [element(token.type, ...this.nodes(token.tokens))];
      case 'hr':
      case 'br':
        return [element(token.type)];
      case 'code':
        return [code(token)];
      case 'codespan':
        return [element('code', token.text)];
      case 'list':
        return [this.#list(token)];
      case 'checkbox':
        return [token.checked ? '☑ ' : '☐ '];
      case 'table':
        return [this.#table(token)];
      case 'link':
        return link(token.href, ...this.nodes(token.tokens));
      case 'image':
        return link(token.href, token.text || token.href);
      case 'mention':
        return [this.#mention(token)];
      case 'text':
        return token.tokens ? this.nodes(token.tokens) : [token.text];
      // Escaped marks and typed HTML.
      default:
        return [token.text];
    }
  }

  /** A message is part of a page with its own headings; a loud line in it is not one of them. */
  #heading({ tokens }: Tokens.Heading): Node {
    const made = element('p', element('strong', ...this.nodes(tokens)));
    made.className = 'heading';
    return made;
  }

  #list({ items, ordered, start }: Tokens.List): Node {
    const made = element(ordered ? 'ol' : 'ul', ...items.map(({ tokens }) => element('li', ...this.nodes(tokens))));
    if (ordered && start !== '' && start !== 1) made.setAttribute('start', String(start));
    return made;
  }

  #table({ header, rows }: Tokens.Table): Node {
    const row = (cells: readonly Tokens.TableCell[], tag: string) =>
      element('tr', ...cells.map(({ tokens }) => element(tag, ...this.nodes(tokens))));
    const body = rows.length > 0 ? [element('tbody', ...rows.map((cells) => row(cells, 'td')))] : [];
    return element('table', element('thead', row(header, 'th')), ...body);
  }

  #mention({ raw, name }: Mention): Node {
    const made = element('span', raw);
    made.className = [this.#myName, 'everyone'].includes(name.toLowerCase()) ? 'mention me' : 'mention';
    return made;
  }
}

/** The elements of a message's text; mentions of `myName`, who reads it, are marked. */
export function format(body: string, myName: string): DocumentFragment {
  const made = document.createDocumentFragment();
  try {
    made.append(...new Builder(myName).nodes(marked.lexer(body)));
  } catch {
    // Nested deeper than anybody reads, or than the parser goes: as it was typed.
    made.append(element('p', body));
  }
  return made;
}
