//! Formatting as a value: what a key or a button makes of a text and its selection. Each mark taken twice leaves the text as
//! it was.

export interface Selected {
  text: string;
  from: number;
  to: number;
}

export type Mark = 'bold' | 'italic' | 'strike' | 'code' | 'link' | 'quote' | 'list' | 'numbers' | 'block';

const AROUND = { bold: '**', italic: '*', strike: '~~', code: '`' } as const;
const BEFORE = { quote: '> ', list: '- ', numbers: '1. ' } as const;
const ADDRESS = /^(?:https?:\/\/|mailto:)\S+$/i;
const FENCE = /^ {0,3}(?:```|~~~)/gm;

export function format(selected: Selected, mark: Mark): Selected {
  switch (mark) {
    case 'bold':
    case 'italic':
    case 'strike':
    case 'code':
      return around(selected, AROUND[mark]);
    case 'quote':
    case 'list':
    case 'numbers':
      return lines(selected, mark);
    case 'link':
      return link(selected);
    case 'block':
      return block(selected);
  }
}

/** An address pasted onto words becomes a link of them; undefined where it is an ordinary paste. */
export function pasteAddress(selected: Selected, pasted: string): Selected | undefined {
  const address = pasted.trim();
  const words = selected.text.slice(selected.from, selected.to);
  if (!ADDRESS.test(address) || words.trim() === '' || words.includes('\n') || ADDRESS.test(words.trim())) return undefined;
  const linked = `[${words}](${address})`;
  const end = selected.from + linked.length;
  return { text: replaced(selected, linked), from: end, to: end };
}

/** Whether the caret stands in a block of code that is not closed yet: there a new line is a new line. */
export function inOpenBlock(text: string, cursor: number): boolean {
  return (text.slice(0, cursor).match(FENCE)?.length ?? 0) % 2 === 1;
}

/** A new line inside a list goes on with the list; on an empty item it ends it. Undefined outside of lists. */
export function continueList({ text, from, to }: Selected): Selected | undefined {
  if (from !== to) return undefined;
  const start = text.lastIndexOf('\n', from - 1) + 1;
  const item = /^(\s*)(?:([-*]) |(\d+)\. |(> ))(.*)$/.exec(text.slice(start, from));
  if (!item) return undefined;
  const [, indent = '', bullet, number, quote, rest = ''] = item;
  if (rest.trim() === '') return { text: text.slice(0, start) + text.slice(from), from: start, to: start };
  const next = `\n${indent}${bullet ? `${bullet} ` : number ? `${Number(number) + 1}. ` : (quote ?? '')}`;
  return { text: text.slice(0, from) + next + text.slice(to), from: from + next.length, to: from + next.length };
}

function replaced({ text, from, to }: Selected, by: string): string {
  return text.slice(0, from) + by + text.slice(to);
}

function around(selected: Selected, mark: string): Selected {
  const { text, from, to } = selected;
  const { length } = mark;
  const inner = text.slice(from, to);
  const single = length === 1 && mark === '*';
  const stands = text.slice(from - length, from) === mark && text.slice(to, to + length) === mark;
  // One star inside of two is bold, not italic.
  if (stands && !(single && text[from - 2] === '*' && text[from - 3] !== '*')) {
    return { text: text.slice(0, from - length) + inner + text.slice(to + length), from: from - length, to: to - length };
  }
  return { text: replaced(selected, mark + inner + mark), from: from + length, to: to + length };
}

function lines(selected: Selected, mark: keyof typeof BEFORE): Selected {
  const { text, from, to } = selected;
  const start = text.lastIndexOf('\n', from - 1) + 1;
  const found = text.indexOf('\n', to);
  const end = found === -1 ? text.length : found;
  const each = text.slice(start, end).split('\n');
  const known = mark === 'numbers' ? /^\d+\. / : mark === 'list' ? /^[-*] / : /^> ?/;
  const marked = each.every((line) => known.test(line))
    ? each.map((line) => line.replace(known, ''))
    : each.map((line, index) => (mark === 'numbers' ? `${index + 1}. ${line}` : BEFORE[mark] + line));
  const body = marked.join('\n');
  const next = text.slice(0, start) + body + text.slice(end);
  return from === to ? { text: next, from: start + body.length, to: start + body.length } : { text: next, from: start, to: start + body.length };
}

function link(selected: Selected): Selected {
  const words = selected.text.slice(selected.from, selected.to);
  const text = replaced(selected, `[${words}](https://)`);
  // The address is what is still missing; without words they come first.
  const at = words === '' ? selected.from + 1 : selected.from + words.length + 3;
  return words === '' ? { text, from: at, to: at } : { text, from: at, to: at + 'https://'.length };
}

function block(selected: Selected): Selected {
  const { text, from, to } = selected;
  const before = from > 0 && text[from - 1] !== '\n' ? '\n' : '';
  const after = to < text.length && text[to] !== '\n' ? '\n' : '';
  const inner = text.slice(from, to);
  const at = from + before.length + 4;
  return { text: replaced(selected, `${before}\`\`\`\n${inner}\n\`\`\`${after}`), from: at, to: at + inner.length };
}
