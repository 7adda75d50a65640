//! Browsers and lines that lack something: a database that is refused or never answers, parts of the client that do not come.
//! The chat goes on, and says what is missing.

import type { BrowserContext, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, browser, meetIn, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
  await astrid.say('Nothing but words here.');
  await bo.message('Nothing but words').waitFor();
});

/** Astrid at another browser, who is signed in there. */
async function elsewhere(prepare: (page: Page) => Promise<unknown>): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({ storageState: await astrid.context.storageState(), serviceWorkers: 'block', locale: 'en-GB' });
  const page = await context.newPage();
  await prepare(page);
  await page.goto(astrid.page.url());
  return { context, page };
}

const said = (page: Page, words: string) => page.locator('article[data-seq]').filter({ hasText: words });

const DATABASES = {
  never_answers: () => {
    const silent = { addEventListener: () => undefined };
    IDBFactory.prototype.open = () => silent as unknown as IDBOpenDBRequest;
    IDBFactory.prototype.databases = () => new Promise(() => undefined);
  },
  is_refused: () => {
    IDBFactory.prototype.open = () => {
      throw new DOMException('The user denied permission to access the database.', 'SecurityError');
    };
    IDBFactory.prototype.databases = () => Promise.reject(new DOMException('denied', 'SecurityError'));
  },
  is_not_there: () => Object.defineProperty(window, 'indexedDB', { value: undefined }),
};

describe.each(Object.keys(DATABASES) as (keyof typeof DATABASES)[])('a browser whose database %s', (how) => {
  it('shows_the_chat_says_what_is_lost_and_signs_out', async () => {
    const { context, page } = await elsewhere((each) => each.addInitScript(DATABASES[how]));
    await said(page, 'Nothing but words').waitFor({ timeout: 20_000 });
    await page.getByText('This browser keeps nothing for Folkmoot').waitFor();
    await page.locator('#composer').fill(`Said although it ${how}.`);
    await page.locator('#composer').press('Enter');
    await bo.message(`Said although it ${how}`).waitFor();
    // The session of this browser alone.
    await page.getByRole('button', { name: /^Account:/ }).click();
    await page.route('**/api/v1/sessions/current', (route) => route.fulfill({ status: 204 }));
    await page.getByRole('dialog', { name: 'Account' }).getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByText('Welcome back').waitFor();
    await context.close();
  });
});

describe('formatting that does not come', () => {
  it('leaves_messages_as_they_were_typed_says_so_and_formats_them_once_it_comes', async () => {
    await astrid.say('Bring **two** ropes, <b>please</b>.');
    await bo.message('two ropes').locator('strong').waitFor();
    let isAway = true;
    const { context, page } = await elsewhere((each) => each.route('**/assets/markdown-*.js', (route) => (isAway ? route.abort() : route.continue())));
    await said(page, 'Bring **two** ropes, <b>please</b>.').waitFor();
    await page.getByText('Formatting could not be loaded yet').waitFor();
    await said(page, 'Nothing but words').waitFor();
    isAway = false;
    await said(page, 'Bring two ropes').locator('strong').waitFor({ timeout: 20_000 });
    await page.getByText('Formatting could not be loaded yet').waitFor({ state: 'detached' });
    await context.close();
  });

  it('is_waited_for_where_it_is_on_its_way_so_that_nothing_jumps', async () => {
    let arrive = (): void => undefined;
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const { context, page } = await elsewhere((each) => each.route('**/assets/markdown-*.js', async (route) => {
      await arrived;
      await route.continue();
    }));
    await page.locator('#composer').waitFor();
    await page.locator('[data-connection="online"]').waitFor({ state: 'attached' });
    expect(await page.locator('article .body').count()).toBe(0);
    arrive();
    await said(page, 'Bring two ropes').locator('strong').waitFor();
    await context.close();
  });

  it('is_not_waited_for_in_a_room_of_words_alone', async () => {
    await astrid.createRoom('Words');
    await astrid.say('As plain as can be');
    await astrid.allSent();
    const { context, page } = await elsewhere((each) => each.route('**/assets/markdown-*.js', () => new Promise(() => undefined)));
    await said(page, 'As plain as can be').waitFor();
    await context.close();
    await astrid.open('Harbour');
  });
});

describe('a part of the client that does not come', () => {
  it.each([
    ['EmojiPicker', async (page: Page) => page.getByRole('button', { name: 'Emoji', exact: true }).click(), 'Emoji'],
    ['AccountDialog', async (page: Page) => page.getByRole('button', { name: /^Account:/ }).click(), 'Account'],
  ] as const)('is_told_and_asked_for_again_as_of_%s', async (file, open, name) => {
    let isAway = true;
    const problems: string[] = [];
    const { context, page } = await elsewhere(async (each) => {
      each.on('pageerror', ({ message }) => problems.push(message));
      await each.route(`**/assets/${file}-*.js`, (route) => (isAway ? route.abort() : route.continue()));
    });
    await said(page, 'Nothing but words').waitFor();
    await open(page);
    await page.getByText('This part of the page could not be loaded.').waitFor();
    isAway = false;
    await open(page);
    await page.getByRole('dialog', { name }).waitFor();
    expect(problems).toEqual([]);
    await context.close();
  });
});

describe('a server that has a newer client', () => {
  it('has_the_old_one_say_so_when_a_part_is_gone_and_a_reload_keeps_what_was_begun', async () => {
    const { context, page } = await elsewhere(() => Promise.resolve());
    await said(page, 'Nothing but words').waitFor();
    await page.locator('#composer').fill('Begun in the old client.');
    await page.route('**/assets/Switcher-*.js', (route) => route.fulfill({ status: 404 }));
    await page.keyboard.press('Control+k');
    await page.getByText('This part of the page could not be loaded.').waitFor();
    // The same client: a line that fails is all.
    expect(await page.getByText('Folkmoot was updated').count()).toBe(0);
    await page.route((url) => url.pathname === '/', async (route) => {
      const page = await (await route.fetch()).text();
      await route.fulfill({ contentType: 'text/html', body: page.replace(/assets\/index-[^"]+\.js/, 'assets/index-newer.js') });
    });
    await page.keyboard.press('Control+k');
    await page.getByText('Folkmoot was updated').waitFor();
    await page.unrouteAll();
    await Promise.all([page.waitForEvent('load'), page.locator('[data-toast]').getByRole('button', { name: 'Reload' }).click()]);
    await expect.poll(() => page.locator('#composer').inputValue()).toBe('Begun in the old client.');
    await page.locator('#composer').fill('');
    await context.close();
  });
});

/** What signing in consists of. */
const ENTRANCE = ['SignIn', 'Entrance', 'AccountFields', 'PasswordField', 'Form'];

describe('whoever is signed out while there is no network', () => {
  it('sees_where_to_sign_in_again', async () => {
    const { context, page } = await elsewhere(async () => undefined);
    await said(page, 'Nothing but words').waitFor();
    // What is not shown yet has come by itself, in whole.
    await page.waitForFunction((parts) => {
      const loaded = performance.getEntriesByType('resource').map(({ name }) => name);
      return parts.every((part) => loaded.some((name) => name.includes(`/assets/${part}-`) && name.endsWith('.js')));
    }, ENTRANCE);
    await context.setOffline(true);
    await page.evaluate(() => {
      const session = localStorage.getItem('folkmoot.session') ?? '';
      localStorage.removeItem('folkmoot.session');
      window.dispatchEvent(new StorageEvent('storage', { key: 'folkmoot.session', oldValue: session, newValue: null }));
    });
    await page.getByText('You were signed out').waitFor();
    await page.getByLabel('User name').waitFor();
    await context.close();
  });
});
