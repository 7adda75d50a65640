//! A session that ends: for all tabs of its browser and for the server, at once, and for nobody else.

import type { Page } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { archivedRooms } from './support/archive';
import { PASSWORD } from './support/person';
import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';

withAstridAndBo();
beforeAll(async () => {
  await meetIn('Harbour');
});

/** Another tab of Bo's. */
async function anotherTab(prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const page = await bo.context.newPage();
  await prepare?.(page);
  await page.goto(server.url);
  await page.locator('[data-connection="online"]').waitFor({ state: 'attached' });
  await page.locator('#composer').waitFor();
  return page;
}

async function signOut(): Promise<void> {
  await bo.page.getByRole('button', { name: /^Account:/ }).click();
  const dialog = bo.page.getByRole('dialog', { name: 'Account' });
  await dialog.getByRole('button', { name: 'Sign out' }).first().click();
  await bo.page.getByText('Welcome back').waitFor();
}

async function token(): Promise<string> {
  return bo.page.evaluate(() => (JSON.parse(localStorage.getItem('folkmoot.session') ?? '{}') as { token: string }).token);
}

/** The keys of what this browser keeps with these words in it. */
async function kept(words: string): Promise<string[]> {
  return bo.page.evaluate((wanted) => Object.entries(localStorage).flatMap(([key, value]) => (`${key} ${String(value)}`.includes(wanted) ? key : [])), words);
}

async function statusOf(session: string): Promise<number> {
  const { status } = await fetch(`${server.url}/api/v1/limits`, { headers: { authorization: `Bearer ${session}` } });
  return status;
}

describe('signing out', () => {
  beforeEach(async () => {
    await bo.context.setOffline(false);
    await bo.page.goto(server.url);
    const userName = bo.page.getByLabel('User name');
    await userName.or(bo.composer).first().waitFor();
    if (await userName.isVisible()) await bo.signIn(server.url, 'bo', PASSWORD);
    await bo.isOnline();
  });

  it('reaches_the_server_though_the_page_is_left_at_once', async () => {
    const session = await token();
    expect(await statusOf(session)).toBe(200);
    await bo.page.getByRole('button', { name: /^Account:/ }).click();
    await bo.page.getByRole('dialog', { name: 'Account' }).waitFor();
    // As fast as a page can be left: in the same turn.
    await bo.page.evaluate(() => {
      [...document.querySelectorAll<HTMLElement>('dialog button')].find((button) => button.textContent.trim() === 'Sign out')?.click();
      location.href = 'about:blank';
    });
    await bo.page.waitForURL('about:blank');
    await expect.poll(() => statusOf(session)).toBe(401);
  });

  it('ends_the_other_tabs_though_there_is_no_network', async () => {
    const other = await anotherTab();
    await bo.context.setOffline(true);
    for (const page of [bo.page, other]) await page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await signOut();
    await other.getByText('You were signed out').waitFor();
    await other.close();
  });

  it('without_a_network_ends_the_session_at_the_server_once_there_is_one_again', async () => {
    const session = await token();
    await bo.context.setOffline(true);
    await bo.page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
    await signOut();
    expect(await statusOf(session)).toBe(200);
    await bo.context.setOffline(false);
    await expect.poll(() => statusOf(session)).toBe(401);
    await expect.poll(() => kept(session)).toEqual([]);
  });

  it('without_a_network_ends_the_session_at_the_next_start_and_signs_nobody_in', async () => {
    const session = await token();
    const ending = '**/api/v1/sessions/current';
    await bo.context.route(ending, (route) => route.abort());
    await signOut();
    await bo.page.goto('about:blank');
    await bo.context.unroute(ending);
    expect(await statusOf(session)).toBe(200);
    await bo.page.goto(server.url);
    await bo.page.getByLabel('User name').waitFor();
    expect(await bo.page.locator('#composer').count()).toBe(0);
    await expect.poll(() => statusOf(session)).toBe(401);
    await expect.poll(() => kept(session)).toEqual([]);
  });

  it('is_told_to_a_server_that_is_too_busy_until_it_has_heard', async () => {
    const session = await token();
    let refusals = 0;
    await bo.context.route('**/api/v1/sessions/current', async (route) => {
      refusals += 1;
      if (refusals > 2) await route.continue();
      else await route.fulfill({ status: 503, body: '' });
    });
    await signOut();
    await expect.poll(() => statusOf(session)).toBe(401);
    await expect.poll(() => kept(session)).toEqual([]);
    await bo.context.unroute('**/api/v1/sessions/current');
  });

  it('leaves_nothing_of_what_others_said_and_drafts_still_answer_it', async () => {
    await astrid.say('A word of mine alone.');
    await bo.message('A word of mine').waitFor();
    await bo.act('A word of mine', 'Reply');
    await bo.composer.fill('My answer to it.');
    await bo.page.getByText('Replying to Astrid Holm').waitFor();
    await signOut();
    expect(await kept('A word of mine')).toEqual([]);
    expect(await kept('Astrid')).toEqual([]);
    await bo.signIn(server.url, 'bo', PASSWORD);
    await bo.page.getByText('Replying to Astrid Holm').waitFor();
    await expect.poll(() => bo.page.locator('form .answering').textContent()).toContain('A word of mine alone.');
    await bo.composer.press('Enter');
    await astrid.message('My answer to it').getByRole('button', { name: /Go to the message by/ }).waitFor();
  });

  it('leaves_who_has_signed_in_meanwhile_signed_in_when_a_tab_hears_late_of_it', async () => {
    let hear = () => {};
    const late = new Promise<void>((resolve) => (hear = resolve));
    const other = await anotherTab(async (page) => {
      // As a tab that the browser had put aside: it is told nothing, neither by the storage nor by the server.
      await page.addInitScript(() => window.addEventListener('storage', (event) => event.stopImmediatePropagation()));
      await page.routeWebSocket(/\/connection\/websocket/, (socket) => {
        socket.connectToServer().onClose((code, reason) => void late.then(() => socket.close({ code: code ?? 1000, reason: reason ?? '' })));
      });
    });
    await signOut();
    await bo.signIn(server.url, 'bo', PASSWORD);
    await bo.composer.waitFor();
    expect(await other.locator('#composer').count()).toBe(1);
    hear();
    await other.getByText('You were signed out').waitFor();
    await other.close();
    await bo.page.reload();
    await bo.composer.waitFor();
  });
});

describe('a link by which somebody else signs in', () => {
  it('ends_the_session_of_who_was_here_and_leaves_nothing_of_what_was_said_to_them', async () => {
    const session = await token();
    await expect.poll(() => archivedRooms(bo)).toContainEqual(expect.stringContaining('A word of mine alone'));
    const { page } = bo;
    await page.goto(await server.setupLink());
    await page.getByLabel('User name').fill('chief');
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create administrator' }).click();
    await page.getByRole('link', { name: 'Administration' }).waitFor();
    await expect.poll(() => statusOf(session)).toBe(401);
    expect(await archivedRooms(bo)).not.toContainEqual(expect.stringContaining('A word of mine alone'));
    expect(await statusOf(await token())).toBe(200);
  });
});
