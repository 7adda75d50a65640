//! The network goes and comes back while people write: nothing is lost, nothing doubled, and the page says how things stand.

import { beforeAll, describe, expect, it } from 'vitest';

import { archivedRooms } from './support/archive';
import type { Person } from './support/person';
import { astrid, bo, browser, meetIn, server, withAstridAndBo } from './support/scene';

const CUTS = 4;
const MESSAGES_PER_CUT = 6;

withAstridAndBo();
beforeAll(() => meetIn('Ferry'));

async function offline(person: Person): Promise<void> {
  await person.context.setOffline(true);
  await person.page.locator('[data-connection="offline"]').waitFor({ state: 'attached' });
}

async function online(person: Person): Promise<void> {
  await person.context.setOffline(false);
  await person.isOnline();
}

describe('a network that comes and goes', () => {
  it('loses_and_doubles_nothing', async () => {
    const written: string[] = [];
    for (let cut = 0; cut < CUTS; cut += 1) {
      for (let index = 0; index < MESSAGES_PER_CUT; index += 1) {
        // Half are on their way when the network goes, half are written without one.
        if (index === MESSAGES_PER_CUT / 2) await offline(astrid);
        written.push(`${cut}.${index}`);
        await astrid.say(`${cut}.${index}`);
      }
      await online(astrid);
    }
    await astrid.allSent();
    await bo.message(written.at(-1) ?? '').waitFor();
    const seen = (await astrid.everything()).map(({ text }) => text);
    expect(seen).toEqual(written);
    expect((await bo.everything()).map(({ text }) => text)).toEqual(written);
  });

  it('says_so_and_keeps_what_was_loaded_readable', async () => {
    await offline(astrid);
    await astrid.page.getByText(/No network/).waitFor();
    await astrid.say('for later');
    await astrid.page.getByText('Waiting for the connection').waitFor();
    await astrid.message('0.0').waitFor();
    await online(astrid);
    await bo.message('for later').waitFor();
    expect(await astrid.page.getByText(/No network/).count()).toBe(0);
  });

  it('brings_what_was_missed_without_doubling_what_was_seen', async () => {
    await offline(bo);
    for (const text of ['missed one', 'missed two']) await astrid.say(text);
    await astrid.allSent();
    await online(bo);
    await bo.message('missed two').waitFor();
    expect(await bo.everything()).toEqual(await astrid.everything());
  });

  it('opens_without_a_network_with_what_was_loaded', async () => {
    await bo.page.evaluate(async () => navigator.serviceWorker.ready);
    await expect.poll(() => archivedRooms(bo), { timeout: 10_000 }).toContainEqual(expect.stringContaining('missed two'));
    await bo.context.setOffline(true);
    await bo.page.reload();
    await bo.message('missed two').waitFor();
    await bo.say('written in the tunnel');
    await online(bo);
    await astrid.message('written in the tunnel').waitFor();
  });
});

describe('a page of the server that is not the client', () => {
  it('does_not_take_the_place_of_the_client_without_a_network', async () => {
    const other = await bo.context.newPage();
    await other.goto(`${server.url}/healthz`);
    await other.close();
    await expect.poll(() => archivedRooms(bo), { timeout: 10_000 }).toContainEqual(expect.stringContaining('written in the tunnel'));
    await bo.context.setOffline(true);
    await bo.page.reload();
    await bo.message('written in the tunnel').waitFor();
    await online(bo);
  });
});

describe('a browser that holds nothing yet', () => {
  it('shows_the_room_of_the_address_or_the_last_one_before_there_is_a_connection', async () => {
    for (const address of [astrid.page.url(), server.url]) {
      const context = await browser.newContext({ storageState: await astrid.context.storageState(), serviceWorkers: 'block' });
      const page = await context.newPage();
      // Nobody takes the connection.
      await page.routeWebSocket(/\/connection\/websocket/, () => undefined);
      await page.goto(address);
      await page.locator('article[data-seq]').filter({ hasText: 'written in the tunnel' }).waitFor({ timeout: 60_000 });
      await context.close();
    }
  });
});

describe('without a network, what the client is made of', () => {
  const kept = () => bo.page.evaluate(async () => {
    const urls = (await (await caches.open('folkmoot-client')).keys()).map(({ url }) => url);
    return ['markdown', 'SignIn'].filter((part) => urls.some((url) => url.includes(`/assets/${part}-`) && url.endsWith('.js')));
  });

  it('is_at_hand_whole_so_that_messages_are_formatted_and_one_can_sign_out', async () => {
    await astrid.say('a **bold** word');
    await bo.message('a bold word').locator('strong').waitFor();
    await expect.poll(kept, { timeout: 30_000 }).toEqual(['markdown', 'SignIn']);
    await expect.poll(() => archivedRooms(bo), { timeout: 10_000 }).toContainEqual(expect.stringContaining('bold'));
    await bo.context.setOffline(true);
    await bo.page.reload();
    await bo.message('a bold word').locator('strong').waitFor();
    await bo.page.getByRole('button', { name: /^Account:/ }).click();
    await bo.page.getByRole('dialog', { name: 'Account' }).getByRole('button', { name: 'Sign out' }).first().click();
    await bo.page.getByLabel('User name').waitFor();
    await bo.context.setOffline(false);
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});

describe('a server that the sign-in page cannot reach', () => {
  it('is_said_to_be_so_only_until_it_can_be_reached_again', async () => {
    const context = await browser.newContext({ locale: 'en-GB' });
    const page = await context.newPage();
    const told = page.getByText('The server cannot be reached');
    // As soon as the browser says that there is a network.
    await page.goto(server.url);
    await page.getByLabel('User name').fill('nobody_yet');
    await page.getByLabel('Password', { exact: true }).fill('of no account');
    await context.setOffline(true);
    await page.locator('button[type=submit]').click();
    await told.waitFor();
    await context.setOffline(false);
    await told.waitFor({ state: 'detached', timeout: 3_000 });
    expect(await page.getByLabel('User name').inputValue()).toBe('nobody_yet');

    // And where only the server was gone.
    await page.route('**/api/v1/**', (route) => route.abort());
    await page.reload();
    await told.waitFor();
    await page.unroute('**/api/v1/**');
    await told.waitFor({ state: 'detached', timeout: 15_000 });
    await context.close();
  });
});
