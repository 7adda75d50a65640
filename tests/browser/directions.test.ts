//! Every language says everything, in its own direction, and nothing is out of place or cut off.

import { beforeAll, describe, expect, it } from 'vitest';

import { CHECKED, violations } from './support/axe';
import { astrid, meetIn, bo, withAstridAndBo } from './support/scene';

withAstridAndBo({ astrid: CHECKED });
beforeAll(async () => {
  await meetIn('Harbour', 'Boats and tides');
  await bo.say('Hello @astrid, see `code` and https://example.org');
  await bo.say('مرحبا بالجميع');
  await astrid.message('مرحبا').waitFor();
});

async function speak(language: string): Promise<void> {
  await astrid.page.evaluate((chosen) => localStorage.setItem('folkmoot.preference.language', JSON.stringify(chosen)), language);
  await astrid.page.reload();
  await astrid.message('مرحبا').waitFor();
  // What was kept is shown at once; a checker must not meet the page while the connection brings the rest.
  await astrid.isOnline();
  await astrid.page.locator('.pill').waitFor({ state: 'detached' });
}

describe.each([
  ['fr', 'Salons', 'ltr'], ['es', 'Salas', 'ltr'], ['ja', 'ルーム', 'ltr'], ['ar', 'الغرف', 'rtl'],
])('in %s', (language, rooms, direction) => {
  it('the_page_speaks_it_in_its_direction', async () => {
    await speak(language);
    await astrid.page.getByRole('heading', { name: rooms }).waitFor();
    await expect.poll(() => astrid.page.evaluate(() => [document.documentElement.lang, document.documentElement.dir])).toEqual([language, direction]);
    await expect.poll(() => astrid.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0);
  });
});

describe('from right to left', () => {
  it('the_list_of_rooms_stands_on_the_right_and_axe_finds_nothing', async () => {
    const [list, field] = [await astrid.page.locator('nav').boundingBox(), await astrid.composer.boundingBox()];
    expect((list?.x ?? 0) > (field?.x ?? 0)).toBe(true);
    await astrid.message('Hello').hover();
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.page.keyboard.press('Control+k');
    await astrid.page.getByRole('option').first().waitFor();
    expect(await violations(astrid.page)).toEqual([]);
    await astrid.page.keyboard.press('Escape');
  });

  it('words_of_the_other_direction_begin_beside_who_wrote_them_and_keep_their_order', async () => {
    const name = await astrid.message('Hello').locator('.byline .name').boundingBox();
    const body = await astrid.message('Hello').locator('.body > p').evaluate((paragraph) => {
      const range = document.createRange();
      range.selectNodeContents(paragraph);
      return { right: range.getBoundingClientRect().right, direction: getComputedStyle(paragraph).direction };
    });
    expect(body.direction).toBe('ltr');
    expect(Math.abs(body.right - (name?.x ?? 0) - (name?.width ?? 0))).toBeLessThan(2);
    await astrid.message('Hello').hover();
    await astrid.message('Hello').getByRole('button', { name: 'رد', exact: true }).click();
    await astrid.say('Seen.');
    const quote = astrid.message('Seen.').locator('.quote .cut');
    await quote.waitFor();
    expect(await quote.evaluate((element) => getComputedStyle(element).direction)).toBe('ltr');
  });

  it('code_among_words_keeps_its_signs_where_a_program_has_them', async () => {
    await bo.say('انظر `let x = [1];` هنا');
    const code = astrid.message('انظر').locator('code');
    await code.waitFor();
    // The last sign of the code stands at its right end.
    const ends = await code.evaluate((element) => {
      const letters = element.firstChild as Text;
      const rightOf = (index: number) => {
        const range = document.createRange();
        range.setStart(letters, index);
        range.setEnd(letters, index + 1);
        return range.getBoundingClientRect().right;
      };
      return { first: rightOf(0), last: rightOf(letters.length - 1) };
    });
    expect(ends.last).toBeGreaterThan(ends.first);
  });

  it('arrows_along_the_line_are_turned_round', async () => {
    const turned = () => astrid.page.locator('.quote svg').first().evaluate((icon) => new DOMMatrix(getComputedStyle(icon).transform).a);
    expect(await turned()).toBe(-1);
  });

  it('high_contrast_leaves_axe_nothing_to_find_in_either_direction', async () => {
    await astrid.page.evaluate(() => localStorage.setItem('folkmoot.preference.theme', JSON.stringify('contrast')));
    await speak('en');
    await expect.poll(() => astrid.page.evaluate(() => document.documentElement.dataset['theme'])).toBe('contrast');
    expect(await violations(astrid.page)).toEqual([]);
    await speak('ar');
    await expect.poll(() => astrid.page.evaluate(() => document.documentElement.dir)).toBe('rtl');
    expect(await violations(astrid.page)).toEqual([]);
    expect(astrid.errors).toEqual([]);
  });
});
