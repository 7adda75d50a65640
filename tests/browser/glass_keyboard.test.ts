//! A keyboard of glass: it never covers what is written in, something of the conversation stays in view above it, and
//! the page does not jump. Android makes the page smaller; iOS lays the keyboard over it and moves it up.

import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, withAstridAndBo } from './support/scene';

const PHONE = { width: 390, height: 844 };
const ON_ITS_SIDE = { width: 740, height: 360 };
const TABLET = { width: 1024, height: 768 };
/** What the highest keyboards leave of a phone on its side. */
const LEFT_PX = 130;
/** About a line of text. */
const LINE_PX = 20;

withAstridAndBo({ bo: { viewport: PHONE, hasTouch: true, isMobile: true } });
beforeAll(async () => {
  await meetIn('Harbour');
  for (let number = 1; number <= 30; number += 1) await astrid.say(`line ${number}`);
  await bo.message('line 30').waitFor();
});

/** What is seen, as parts of the page: the field, and the last message. */
function places(text: string) {
  return bo.page.evaluate((words) => {
    const seen = window.visualViewport ?? { offsetTop: 0, height: window.innerHeight };
    const [top, bottom] = [seen.offsetTop, seen.offsetTop + seen.height];
    const form = document.querySelector('form.composer')?.getBoundingClientRect();
    const list = document.querySelector('.scroller')?.getBoundingClientRect();
    const row = [...document.querySelectorAll('article[data-seq]')].findLast((each) => each.textContent.includes(words))?.getBoundingClientRect();
    if (!form || !list || !row) throw new Error('nothing to measure');
    const from = Math.max(top, list.top, row.top);
    const to = Math.min(bottom, list.bottom, row.bottom, form.top);
    const x = form.left + form.width / 2;
    const field = document.elementFromPoint(x, form.top + form.height / 2);
    return {
      composerInView: form.top >= top && form.bottom <= bottom + 1 && field?.closest('form.composer') !== null,
      gapPx: Math.round(bottom - form.bottom), messagePx: to - from,
    };
  }, text);
}

/** As iOS does: the window stays as it is, less of it is seen, and the page has moved up. */
async function coverAsOnIos(height: number, offsetTop: number): Promise<void> {
  await bo.page.evaluate(([left, above]) => {
    const seen = window.visualViewport;
    if (!seen) throw new Error('this browser has no visual viewport');
    Object.defineProperty(seen, 'height', { value: left, configurable: true });
    Object.defineProperty(seen, 'offsetTop', { value: above, configurable: true });
    seen.dispatchEvent(new Event('resize'));
    seen.dispatchEvent(new Event('scroll'));
  }, [height, offsetTop] as const);
}

async function uncover(): Promise<void> {
  await bo.page.evaluate(() => {
    const seen = window.visualViewport;
    for (const name of ['height', 'offsetTop']) if (seen) Reflect.deleteProperty(seen, name);
    seen?.dispatchEvent(new Event('resize'));
  });
}

describe('a phone on its side', () => {
  it('shows_the_last_message_and_the_field_above_a_high_keyboard', async () => {
    await bo.page.setViewportSize(ON_ITS_SIDE);
    await bo.composer.tap();
    await bo.page.setViewportSize({ ...ON_ITS_SIDE, height: LEFT_PX });
    await expect.poll(async () => (await places('line 30')).messagePx).toBeGreaterThanOrEqual(LINE_PX);
    expect((await places('line 30')).composerInView).toBe(true);
    await bo.composer.fill('one\ntwo\nthree\nfour\nfive');
    await expect.poll(async () => (await places('line 30')).messagePx).toBeGreaterThanOrEqual(LINE_PX);
    expect((await places('line 30')).composerInView).toBe(true);
    await bo.composer.fill('');
    await bo.page.setViewportSize(ON_ITS_SIDE);
    await bo.page.getByRole('heading', { name: 'Harbour', level: 1 }).waitFor();
    await bo.page.setViewportSize(PHONE);
  });

  it('shows_what_is_offered_there_and_all_of_it_can_be_chosen', async () => {
    await bo.page.setViewportSize({ ...ON_ITS_SIDE, height: LEFT_PX });
    await bo.composer.tap();
    await bo.page.keyboard.type(':sm');
    const option = bo.page.getByRole('option');
    await option.nth(5).waitFor();
    await expect.poll(async () => (await bo.page.getByRole('listbox').boundingBox())?.y, { timeout: 5_000 }).toBeGreaterThanOrEqual(0);
    await option.nth(5).tap();
    await expect.poll(() => bo.composer.inputValue()).not.toContain(':');
    await bo.composer.fill('');
    await bo.page.setViewportSize(PHONE);
  });
});

describe('a keyboard that lies over the page', () => {
  it('covers_neither_the_field_nor_the_last_message_and_leaves_the_page_where_it_was', async () => {
    await bo.composer.tap();
    for (const [height, above] of [[510, 0], [510, 334], [510, 120], [480, 334]] as const) {
      await coverAsOnIos(height, above);
      await expect.poll(async () => (await places('line 30')).composerInView).toBe(true);
      await expect.poll(async () => (await places('line 30')).messagePx).toBeGreaterThanOrEqual(LINE_PX);
      // Nothing empty between the field and the keyboard.
      expect((await places('line 30')).gapPx).toBe(0);
      const header = await bo.page.getByRole('heading', { name: 'Harbour', level: 1 }).boundingBox();
      expect(header?.y).toBeGreaterThanOrEqual(above);
    }
    await astrid.say('said meanwhile');
    await bo.message('said meanwhile').waitFor();
    await expect.poll(async () => (await places('said meanwhile')).messagePx).toBeGreaterThanOrEqual(LINE_PX);
    await uncover();
    await expect.poll(async () => (await places('said meanwhile')).gapPx).toBe(0);
    await expect.poll(() => bo.page.evaluate(() => document.getElementById('app')?.getBoundingClientRect().height)).toBe(PHONE.height);
  });

  it('leaves_what_is_chosen_from_in_view', async () => {
    await bo.page.setViewportSize(TABLET);
    await bo.composer.tap();
    await coverAsOnIos(420, 334);
    await bo.page.getByRole('button', { name: 'Emoji' }).tap();
    const picker = bo.page.locator('[popover]:popover-open');
    await picker.waitFor();
    await expect.poll(async () => (await picker.boundingBox())?.y).toBeGreaterThanOrEqual(334);
    await bo.page.keyboard.press('Escape');
    await uncover();
    await bo.page.setViewportSize(PHONE);
  });

  it('is_over_a_page_on_its_side_as_well', async () => {
    await bo.page.setViewportSize(ON_ITS_SIDE);
    await bo.composer.tap();
    await coverAsOnIos(LEFT_PX, 200);
    await expect.poll(async () => (await places('said meanwhile')).messagePx).toBeGreaterThanOrEqual(LINE_PX);
    expect((await places('said meanwhile')).composerInView).toBe(true);
    await uncover();
    await bo.page.setViewportSize(PHONE);
  });
});

describe('the edges of a phone', () => {
  it('that_are_cut_out_or_round_cover_nothing_that_is_pressed_or_read', async () => {
    const devtools = await bo.context.newCDPSession(bo.page);
    const edges = { top: 0, left: 50, right: 50, bottom: 21 };
    await bo.page.setViewportSize(ON_ITS_SIDE);
    await devtools.send('Emulation.setSafeAreaInsetsOverride', { insets: edges });
    const within = () => bo.page.evaluate(({ left, right, top, bottom }) => {
      const found: string[] = [];
      for (const element of document.querySelectorAll<HTMLElement>('button, a[href], input, textarea, h1, article .body')) {
        const box = element.getBoundingClientRect();
        if (box.width <= 1 || box.height <= 1 || element.closest('.scroller') && box.bottom > innerHeight) continue;
        const isOut = box.left < left || box.right > innerWidth - right || (box.bottom > 0 && box.top < top && !element.closest('.scroller')) || (!element.closest('.scroller') && box.bottom > innerHeight - bottom + 1);
        if (isOut) found.push(`${element.outerHTML.slice(0, 80)} ${box.left},${box.top} ${box.width}x${box.height}`);
      }
      return found;
    }, edges);
    await expect.poll(within).toEqual([]);
    edges.top = 47;
    await bo.page.setViewportSize(PHONE);
    await devtools.send('Emulation.setSafeAreaInsetsOverride', { insets: edges });
    await expect.poll(within).toEqual([]);
    await devtools.send('Emulation.setSafeAreaInsetsOverride', { insets: {} });
    expect(bo.errors).toEqual([]);
  });
});
