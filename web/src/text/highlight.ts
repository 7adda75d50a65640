//! Colours for code blocks. Loaded on the first code block that names a language; most people never need it.

import core from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const LANGUAGES = {
  bash, c, cpp, css, diff, go, ini, java, javascript, json, python, rust, sql, typescript, xml, yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) core.registerLanguage(name, language);

/** Longer blocks stay plain: colouring them would hold up typing. */
const CODE_CHARS_MAX = 10_000;

/** Colours one `<code class="language-…">` in place; an unknown language stays plain. */
export function highlight(code: HTMLElement): void {
  const name = /language-(\S+)/.exec(code.className)?.[1];
  const text = code.textContent;
  if (!name || !core.getLanguage(name) || text.length > CODE_CHARS_MAX) return;
  // Highlight.js escapes the text it is given; its output holds nothing but spans around it.
  code.innerHTML = core.highlight(text, { language: name, ignoreIllegals: true }).value;
}
