//! What the marks of Markdown make of a message, element by element, as another person sees it.

import { beforeAll, describe, expect, it } from 'vitest';

import { call, openRoomOf } from './support/call';
import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

const LINKED = 'target="_blank" rel="noopener noreferrer nofollow"';
const quoted = (depth: number, inner: string): string => (depth === 0 ? inner : `<blockquote>${quoted(depth - 1, inner)}</blockquote>`);

const SHAPES: readonly [what: string, body: string, html: string][] = [
  ['emphasis', '**a** *b* ~~c~~ ***d***', '<p><strong>a</strong> <em>b</em> <del>c</del> <em><strong>d</strong></em></p>'],
  ['a_new_line', 'one\ntwo\n\nthree', '<p>one<br>two</p><p>three</p>'],
  ['a_heading', '# Loud', '<p class="heading"><strong>Loud</strong></p>'],
  ['code', 'run `a < b && c`', '<p>run <code>a &lt; b &amp;&amp; c</code></p>'],
  ['lists', '- a\n- b\n\n3. c\n4. d', '<ul><li>a</li><li>b</li></ul><ol start="3"><li>c</li><li>d</li></ol>'],
  ['tasks', '- [x] done\n- [ ] open', '<ul><li>☑ done</li><li>☐ open</li></ul>'],
  ['a_list_in_a_list', '- a\n  - b', '<ul><li>a<ul><li>b</li></ul></li></ul>'],
  ['a_table', '|a|b|\n|-|-|\n|1|**2**|', '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><strong>2</strong></td></tr></tbody></table>'],
  ['a_table_without_rows', '|a|\n|-|', '<table><thead><tr><th>a</th></tr></thead></table>'],
  ['a_rule', 'a\n\n---', '<p>a</p><hr>'],
  ['an_address', 'see https://a.org/x?a=1&b=2', `<p>see <a href="https://a.org/x?a=1&amp;b=2" ${LINKED}>https://a.org/x?a=1&amp;b=2</a></p>`],
  ['a_named_address', '[the **map**](https://a.org)', `<p><a href="https://a.org" ${LINKED}>the <strong>map</strong></a></p>`],
  ['an_address_that_may_not_be_followed', '[x](javascript:boom())', `<p><a ${LINKED}>x</a></p>`],
  ['an_address_of_this_page', '[x](/api/session)', `<p><a ${LINKED}>x</a></p>`],
  ['a_picture', '![a pier](https://a.org/p.png)', `<p><a href="https://a.org/p.png" ${LINKED}>a pier</a></p>`],
  ['mentions', '@Astrid and @bo, @everyone', '<p><span class="mention me">@Astrid</span> and <span class="mention">@bo</span>, <span class="mention me">@everyone</span></p>'],
  ['typed_html', 'a <b>c</b> &amp; d', '<p>a &lt;b&gt;c&lt;/b&gt; &amp;amp; d</p>'],
  ['escaped_marks', '\\*a\\*', '<p>*a*</p>'],
  ['some_quotes_in_each_other', `${'>'.repeat(20)} a`, quoted(20, '<p>a</p>')],
  ['too_many_quotes_in_each_other', `${'>'.repeat(60)} a`, `<p>${'&gt;'.repeat(60)} a</p>`],
];

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
});

describe('a message', () => {
  it.each(SHAPES)('with_%s', async (what, body, html) => {
    const [sent] = await call(bo.page, [['message.send', { room: openRoomOf(bo.page), key: `key-${what}`.slice(0, 30), body }]]);
    const shown = astrid.page.locator(`#body-${(sent as { seq: number }).seq} .body`);
    await shown.waitFor();
    // Which of a row's links Tab reaches is not its text's matter.
    expect((await shown.evaluate((element) => element.innerHTML)).replaceAll(' tabindex="-1"', '')).toBe(html);
  });
});
