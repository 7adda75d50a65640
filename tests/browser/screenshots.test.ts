//! The pictures of docs/images, taken from a real conversation. Only on request: SCREENSHOTS=1.

import path from 'node:path';

import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { holdConversation } from './support/conversation';
import { Person } from './support/person';
import { astrid, bo, browser, server, withAstridAndBo } from './support/scene';
import { Server } from './support/server';

const FOLDER = path.resolve(import.meta.dirname, '../../docs/images');
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 800 };

/** A phone is held in a hand: what is there for a keyboard or a mouse alone is not on it. */
async function hold(page: Page, size: typeof PHONE): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Emulation.setTouchEmulationEnabled', { enabled: size === PHONE });
  await page.setViewportSize(size);
}

/** Longer than any finger that taps. */
const REST_MS = 700;

/** A finger rests on it, which brings up what can be done with it. */
async function longPress(page: Page, on: Locator): Promise<void> {
  await on.scrollIntoViewIfNeeded();
  const box = await on.boundingBox();
  if (!box) throw new Error('nothing to touch');
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [{ x: box.x + 20, y: box.y + 8 }] });
  await page.waitForTimeout(REST_MS);
  await devtools.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  await page.getByRole('menu').waitFor();
}

describe.runIf(process.env['SCREENSHOTS'])('pictures', () => {
  withAstridAndBo();
  beforeAll(async () => {
    const chidi = await Person.arrive(browser, 'chidi');
    await astrid.signUp(server.url, 'Astrid Holm');
    for (const name of ['Announcements', 'Workshop', 'Boat share']) await astrid.createRoom(name);
    await astrid.createRoom('Harbour', 'Boats, tides and who brings the coffee');
    const link = await astrid.invite();
    await bo.joinBy(link, 'Bo Lind');
    await chidi.joinBy(link, 'Chidi Okafor');
    await holdConversation({ astrid, bo, chidi });
    await astrid.page.getByRole('button', { name: 'New direct message' }).click();
    await astrid.page.getByLabel('Find a person').fill('chi');
    await astrid.page.getByRole('dialog').getByRole('button', { name: /Chidi Okafor/ }).click();
    await astrid.page.getByRole('heading', { name: 'Chidi Okafor', level: 1 }).waitFor();
    await astrid.say('Do you have the keys of the boat house?');
    await astrid.allSent();
    await astrid.open('Harbour');
    await chidi.page.getByRole('link', { name: /Astrid Holm/ }).click();
    await chidi.say('Yes, on my way.');
    await chidi.allSent();
    await chidi.composer.fill('');
    await bo.composer.pressSequentially('Cinnamon buns it is');
    await astrid.page.getByText('Bo Lind is typing').waitFor();
  });

  async function picture(name: string): Promise<void> {
    // The pointer points at nothing, and no button keeps the ring of a focus that came back from a dialog.
    await astrid.page.mouse.move(0, 0);
    await astrid.page.evaluate(() => {
      const { activeElement } = document;
      if (activeElement instanceof HTMLButtonElement && !activeElement.closest('dialog')) activeElement.blur();
    });
    await astrid.page.screenshot({ path: path.join(FOLDER, `${name}.png`), animations: 'disabled' });
  }

  it('show_a_room_in_both_themes', async () => {
    await picture('chat');
    await astrid.page.emulateMedia({ colorScheme: 'dark' });
    await picture('chat-dark');
    await astrid.page.emulateMedia({ colorScheme: 'light' });
  });

  it('show_a_thread_beside_the_room', async () => {
    const { page } = astrid;
    await page.getByTitle('Show thread').last().click();
    await page.locator('[data-thread-seq]').nth(3).waitFor();
    await page.getByRole('feed').evaluate((feed) => feed.scrollTo(0, feed.scrollHeight));
    await picture('thread');
    await page.getByRole('complementary', { name: 'Thread' }).getByRole('button', { name: 'Close' }).click();
  });

  it('show_it_from_right_to_left', async () => {
    const { page } = astrid;
    const speak = async (language: string): Promise<void> => {
      await page.evaluate((chosen) => localStorage.setItem('folkmoot.preference.language', JSON.stringify(chosen)), language);
      await page.reload();
      await astrid.message('The north berth').locator('img').waitFor();
      await page.locator('.pill').waitFor({ state: 'detached' });
    };
    await speak('ar');
    await picture('chat-arabic');
    await speak('en');
  });

  it('show_what_lies_beside_and_over_it', async () => {
    const { page } = astrid;
    await page.getByRole('button', { name: 'Members' }).click();
    await page.getByText('@chidi').waitFor();
    await picture('members');
    await page.getByRole('complementary').getByRole('button', { name: 'Close' }).click();
    for (const [button, name] of [[/^Jump to/, 'switcher'], [/Account:/, 'account']] as const) {
      await page.getByRole('button', { name: button }).first().click();
      await page.getByRole('dialog').waitFor();
      await picture(name);
      await page.keyboard.press('Escape');
    }
  });

  it('show_a_phone', async () => {
    const context = await browser.newContext({
      viewport: PHONE, hasTouch: true, isMobile: true, locale: 'en-GB', storageState: await astrid.context.storageState(),
    });
    const page = await context.newPage();
    const take = async (name: string): Promise<void> => {
      await page.screenshot({ path: path.join(FOLDER, `${name}.png`), animations: 'disabled' });
    };
    await page.goto(server.url);
    await page.getByRole('link', { name: /Chidi Okafor/ }).waitFor();
    await page.locator('.pill').waitFor({ state: 'detached' });
    for (const [colorScheme, ending] of [['light', ''], ['dark', '-dark']] as const) {
      await page.emulateMedia({ colorScheme });
      await take(`phone-rooms${ending}`);
    }
    await page.getByRole('link', { name: /Harbour/ }).tap();
    const last = page.locator('article[data-seq]').filter({ hasText: 'The north berth' }).last();
    await last.locator('img').waitFor();
    await page.waitForTimeout(500);
    await take('phone-dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await take('phone');
    await longPress(page, last.locator('.body'));
    await take('phone-menu');
    await context.close();
    expect(astrid.errors).toEqual([]);
  });

  it('show_a_month_of_life_and_who_runs_it', async () => {
    const demo = await Server.start('--demo');
    const admin = await Person.arrive(browser, 'astrid');
    const { page } = admin;
    const shoot = async (name: string): Promise<void> => {
      for (const [width, size] of [['', DESK], ['-phone', PHONE]] as const) {
        await hold(page, size);
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          await page.mouse.move(0, 0);
          await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
          await page.screenshot({ path: path.join(FOLDER, `${name}${width}${colorScheme === 'dark' ? '-dark' : ''}.png`), animations: 'disabled' });
        }
      }
      await hold(page, DESK);
      await page.emulateMedia({ colorScheme: 'light' });
    };
    await page.goto(await demo.setupLink());
    await page.getByRole('heading', { name: 'Set up your server' }).waitFor();
    await shoot('setup');
    await admin.setUp(await demo.setupLink(), 'Astrid Holm');
    await admin.open('Code corner');
    await admin.message('port').first().waitFor();
    await shoot('demo');
    await admin.open('Garden');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('cake');
    await page.getByRole('button', { name: 'Everywhere' }).click();
    // A month of messages is not in the index at once; how many speak of cake depends on the day.
    await expect.poll(async () => {
      await page.getByRole('searchbox').press('Enter');
      await page.waitForTimeout(1_000);
      return page.locator('[data-hit]').count();
    }).toBeGreaterThan(1);
    await page.mouse.move(0, 0);
    await page.screenshot({ path: path.join(FOLDER, 'search-dark.png'), animations: 'disabled' });
    await page.emulateMedia({ colorScheme: 'light' });
    await page.getByRole('complementary', { name: 'Search' }).getByRole('button', { name: 'Close' }).click();
    await page.getByRole('link', { name: 'Inbox' }).click();
    await page.getByRole('heading', { name: 'Inbox', level: 1 }).waitFor();
    await page.locator('[data-row]').nth(2).waitFor({ timeout: 60_000 });
    await page.screenshot({ path: path.join(FOLDER, 'inbox.png'), animations: 'disabled' });
    await page.getByRole('link', { name: 'Administration' }).click();
    // Until half a minute is drawn: an empty curve shows nothing.
    await page.waitForFunction(() => (document.querySelector('polyline')?.points.length ?? 0) > 30, undefined, { timeout: 60_000 });
    await shoot('administration');
    await demo.stop();
  });
});
