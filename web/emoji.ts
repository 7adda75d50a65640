//! Makes the lists of emoji that the client loads, one per language, from emojibase: what the browser of emoji and the
//! completion need and nothing else, a tenth of the whole.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import type { Plugin } from 'vite';

const NAME = /^virtual:emoji\/([a-z]{2})$/;
/** Parts that only stand in others: skin tones, hair. */
const COMPONENTS = 2;
const TONES = ['🏻', '🏼', '🏽', '🏾', '🏿'];

interface Compact {
  unicode: string;
  hexcode: string;
  label: string;
  group?: number;
  order?: number;
  tags?: string[];
  skins?: { unicode: string }[];
}

const require = createRequire(import.meta.url);
const read = async (path: string): Promise<unknown> => JSON.parse(await readFile(require.resolve(`emojibase-data/${path}`), 'utf8'));

export function emoji(): Plugin {
  return {
    name: 'emoji',
    resolveId: (id) => (NAME.test(id) ? `\0${id}` : undefined),
    load: async (id) => {
      const language = NAME.exec(id.slice(1))?.[1];
      return id.startsWith('\0') && language !== undefined ? listOf(language) : undefined;
    },
  };
}

/** Groups in order, each emoji as `[character, shortcode, label, tags, takes a tone]`. */
async function listOf(language: string): Promise<string> {
  const all = (await read(`${language}/compact.json`)) as Compact[];
  const codes = (await read('en/shortcodes/github.json')) as Record<string, string | string[]>;
  const groups: unknown[][] = [];
  const shown = all.filter(({ group }) => group !== undefined && group !== COMPONENTS);
  for (const each of shown.sort((a, b) => (a.order ?? 0) - (b.order ?? 0))) {
    const found = codes[each.hexcode] ?? codes[each.hexcode.replace(/-FE0F/g, '')];
    const code = (Array.isArray(found) ? found[0] : found) ?? each.label.toLowerCase().replace(/[^a-z0-9]+/g, '_');
    const takesTone = each.skins?.some(({ unicode }) => unicode === toned(each.unicode)) ? 1 : 0;
    (groups[each.group ?? 0] ??= []).push([each.unicode, code, each.label, (each.tags ?? []).join(' '), takesTone]);
  }
  return `export default ${JSON.stringify(groups.filter(Boolean))};`;
}

/** As `withTone` of `src/text/emoji.ts` makes it; whether that is an emoji is known here. */
function toned(character: string): string {
  return character.replace(/(\p{Emoji_Modifier_Base})️?/gu, `$1${TONES[2] ?? ''}`);
}
