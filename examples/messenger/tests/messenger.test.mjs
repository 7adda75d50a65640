// Two people talk, in each of the four ways in which news can reach the relay, and nothing is lost, doubled or out of
// order when the relay is killed.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { chromium } from 'playwright-core';

import { Messenger, Person } from './support.mjs';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'];
const KILLS = 2;
let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
});
after(() => browser.close());

for (const mode of ['api', 'outbox', 'cdc', 'api_cdc']) {
  describe(`the messenger in mode ${mode}`, { timeout: 180_000 }, () => {
    let messenger, ada, bo;
    const expected = [];

    const talk = async (text) => {
      for (const [person, name] of [[ada, 'ada'], [bo, 'bo']]) {
        await person.say(`${text} of ${name}`);
        expected.push(`${name} ${text} of ${name}`);
      }
      for (const person of [ada, bo]) await person.hears(`${text} of bo`);
    };

    before(async () => {
      messenger = await Messenger.start(mode);
      ada = await Person.arrive(browser, messenger, 'ada');
      await ada.createRoom('Harbour');
      bo = await Person.arrive(browser, messenger, 'bo');
      await bo.join('Harbour');
    });
    after(async () => {
      await ada?.context.close();
      await bo?.context.close();
      await messenger?.stop();
    });

    it('brings_what_one_says_to_the_other', async () => {
      await talk('good morning');
      assert.deepEqual(await bo.said(), expected);
    });

    it('loses_doubles_and_reorders_nothing_when_the_relay_is_killed', async () => {
      for (let kill = 1; kill <= KILLS; kill++) {
        const killed = messenger.killRelay();
        await talk(`through kill ${kill}`);
        await killed;
      }
      await talk('all well');
      assert.deepEqual(await ada.said(), expected);
      assert.deepEqual(await bo.said(), expected);
      assert.deepEqual([...ada.errors, ...bo.errors], []);
    });

    it('shows_after_a_reload_what_it_showed_before', async () => {
      await bo.page.reload();
      await bo.page.getByRole('button', { name: 'Harbour' }).click();
      await bo.hears('all well of bo');
      assert.deepEqual(await bo.said(), expected);
    });

    it('keeps_rooms_and_personal_channels_from_others', async () => {
      const eve = await Person.arrive(browser, messenger, 'eve');
      const outcome = await eve.page.evaluate(async () => {
        const get = async (path) => (await fetch(`/api/${path}`)).json();
        const { url, channel, connection } = await get('tokens');
        const client = new Centrifuge(url, { token: connection });
        const refused = (subscription) => new Promise((resolve) => {
          subscription.on('unsubscribed', ({ code }) => resolve(code)).on('subscribed', () => resolve('subscribed'));
          subscription.subscribe();
        });
        client.connect();
        const own = Number(channel.split(':')[1]);
        const codes = await refused(client.newSubscription(`personal:${own - 1}`));
        client.disconnect();
        const { rooms: [room] } = await get('rooms');
        return { codes, status: (await fetch(`/api/rooms/${room.id}/messages`)).status };
      });
      assert.deepEqual(outcome, { codes: 103, status: 403 });
      await eve.context.close();
    });
  });
}
