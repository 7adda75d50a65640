//! Browsers and lines that lack something: a database that is refused or never answers. The chat goes on,
//! and says what is missing.

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
