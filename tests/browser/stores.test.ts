//! The same conversation on each database that a server can keep its data in. The embedded store has it in the other files,
//! and PostgreSQL under several nodes in `nodes.test.ts`.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, it } from 'vitest';

import { launchBrowser } from './support/browser';
import { Database } from './support/database';
import { Person } from './support/person';
import { Server } from './support/server';
import { loseNothing } from './support/storm';

const KILLS = 2;

describe.each(['postgres', 'cassandra'] as const)('two people on %s', (kind) => {
  let database: Database;
  let server: Server;
  let browser: Browser;
  let astrid: Person;
  let bo: Person;

  beforeAll(async () => {
    // One after the other: whichever fails to start, the one before it is known and ended.
    database = await Database.start(kind);
    server = await Server.start('--store', kind === 'cassandra' ? `${database.url}/chat?replicas=1` : database.url);
    browser = await launchBrowser();
    astrid = await Person.arrive(browser, 'astrid');
    bo = await Person.arrive(browser, 'bo');
    await astrid.signUp(server.url, 'Astrid Holm');
    await astrid.createRoom('Storm');
    await bo.joinBy(await astrid.invite(), 'Bo Lind');
  });

  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await database?.stop();
  });

  it('lose_no_message_and_see_none_twice_though_the_server_is_killed', async () => {
    await loseNothing(server, astrid, bo, KILLS);
  });

  it('edit_delete_answer_and_react', async () => {
    await bo.say('The boat is reed.');
    await bo.act('boat is reed', 'Edit');
    await bo.page.getByLabel('Edit message').fill('The boat is red.');
    await bo.page.keyboard.press('Enter');
    await astrid.message('boat is red').getByText('(edited)').waitFor();
    await astrid.act('boat is red', 'Reply');
    await astrid.say('Then bring the long rope.');
    await bo.act('long rope', 'React');
    await bo.page.getByRole('dialog', { name: 'Emoji' }).getByRole('button', { name: '👍' }).click();
    await astrid.message('long rope').getByRole('button', { name: /👍, 1 person/ }).waitFor();
    await bo.say('Never mind this one.');
    await astrid.message('Never mind').waitFor();
    await bo.act('Never mind', 'Delete');
    await astrid.message('This message was deleted').waitFor({ timeout: 15_000 });
  });
});
