//! A slow line: what is said goes through it once and in order, files too, and the page says what it waits for.

import { readFile } from 'node:fs/promises';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { attach } from './support/attach';
import { fillRoom } from './support/fill';
import { Person } from './support/person';
import { text } from './support/picture';
import { astrid, browser, server, withAstridAndBo, meetIn } from './support/scene';
import { SlowLine, type Speed } from './support/slow_line';

/** A phone at the edge of its network. */
const EDGE: Speed = { bytesPerSecond: 50_000 / 8, delayMs: 1_000 };
const QUEUE: Speed = { ...EDGE, oneQueue: true };
const GOOD: Speed = { bytesPerSecond: 1_600_000 / 8, delayMs: 75 };
const STILL: Speed = { bytesPerSecond: 0, delayMs: 0 };
const STILL_MS = 30_000;
const FREE: Speed = { bytesPerSecond: 100_000_000, delayMs: 0 };

withAstridAndBo();
let line: SlowLine;
let speed: Speed;
let far: Person;

beforeAll(async () => {
  await meetIn('Harbour');
  await fillRoom(astrid.page, { count: 300, batch: 60 });
  speed = FREE;
  line = await SlowLine.before(server.url, () => speed);
  far = await Person.arrive(browser, 'far');
  await far.joinBy((await astrid.invite()).replace(server.url, line.url), 'Far Away');
  await far.createRoom('Beach');
  await far.open('Harbour');
});
afterAll(async () => {
  await far?.context.close();
  line?.end();
});

describe.each([['1600_kbit', GOOD], ['50_kbit', EDGE]])('a line of %s', (name, of) => {
  it('carries_what_is_said_once_and_in_order_both_ways', async () => {
    speed = of;
    const began = Date.now();
    for (let n = 0; n < 4; n += 1) await far.say(`${name} ${n} from far.`);
    for (let n = 0; n < 4; n += 1) await astrid.say(`${name} ${n} to far.`);
    await astrid.message(`${name} 3 from far`).waitFor();
    await far.message(`${name} 3 to far`).waitFor();
    await far.allSent();
    console.info(`${name}: four messages each way took ${Date.now() - began} ms`);
    const said = (await astrid.everything()).map(({ text: words }) => words).filter((words) => words.startsWith(`${name} `));
    expect(said.filter((words) => words.endsWith('from far.'))).toEqual([0, 1, 2, 3].map((n) => `${name} ${n} from far.`));
    expect(said).toHaveLength(8);
  });

  it('shows_the_history_that_is_scrolled_to', async () => {
    const began = Date.now();
    await far.page.reload();
    await far.isOnline();
    console.info(`${name}: online after a reload in ${Date.now() - began} ms`);
    await far.page.getByRole('feed').evaluate((feed) => feed.scrollTo(0, 0));
    await far.page.waitForFunction(() => {
      document.querySelector('[role=feed]')?.scrollTo(0, 0);
      return document.querySelector('article[data-seq="1"]')?.textContent.includes('number 0') === true;
    }, undefined, { timeout: 90_000 });
    console.info(`${name}: the beginning of the room after ${Date.now() - began} ms`);
  });

  // The limits, and the part of the client that knows of files, are still on their way when the message is sent.
  it('carries_a_file_while_messages_pass', async () => {
    const began = Date.now();
    await attach(far, text(`${name}.txt`, 'tide\n'.repeat(of === EDGE ? 16_000 : 200_000)));
    await far.say(`${name} with a file.`);
    await astrid.say(`${name} meanwhile.`);
    await far.message(`${name} meanwhile`).waitFor();
    console.info(`${name}: heard beside the upload after ${Date.now() - began} ms`);
    await astrid.message(`${name} with a file`).getByText(`${name}.txt`).waitFor({ timeout: 120_000 });
    console.info(`${name}: the file after ${Date.now() - began} ms`);
    const dropped = await far.page.evaluate(() => document.querySelectorAll('[data-pending="failed"]').length);
    expect(dropped).toBe(0);
    expect(far.errors).toEqual([]);
  });
});

describe('a line of 50_kbit with one queue for all', () => {
  // A message waits behind what an upload has put there, longer than an answer is waited for otherwise.
  it('has_messages_pass_beside_an_upload_each_sent_once', async () => {
    speed = FREE;
    const sent: string[] = [];
    const devtools = await far.context.newCDPSession(far.page);
    await devtools.send('Network.enable');
    devtools.on('Network.webSocketFrameSent', ({ response: { payloadData } }) => {
      sent.push(...[...payloadData.matchAll(/"body":"(queued \d)"/g)].map(([, body]) => body ?? ''));
    });
    let closed = 0;
    devtools.on('Network.webSocketClosed', () => (closed += 1));
    await attach(far, text('long.txt', 'tide\n'.repeat(60_000)));
    speed = QUEUE;
    await far.say('with a long file.');
    await far.page.locator('[data-pending] progress').waitFor();
    // In another room, where nothing waits for the file.
    await far.page.getByRole('link', { name: 'Beach' }).click();
    const began = Date.now();
    const words = [0, 1, 2, 3].map((n) => `queued ${n}`);
    for (const word of words) await far.say(word);
    for (const word of words) await far.message(word).waitFor({ timeout: 120_000 });
    console.info(`one queue: four messages beside an upload after ${Date.now() - began} ms`);
    speed = FREE;
    await far.allSent({ timeout: 60_000 });
    await far.open('Harbour');
    expect(sent).toEqual(words);
    expect(closed).toBe(0);
  });
});

describe('a line of 50_kbit with a megabyte on its way', () => {
  // What a message waits for is the piece that has the line, whose length the client chooses.
  it('carries_each_message_within_moments_and_the_file_whole', async () => {
    speed = FREE;
    await far.open('Beach');
    const long = text('tide table.txt', Array.from({ length: 100_000 }, (_, n) => `tide ${n}\n`).join(''));
    expect(long.buffer.length).toBeGreaterThan(1_000_000);
    speed = { ...QUEUE, delayMs: 50 };
    await attach(far, long);
    const progress = far.page.getByRole('progressbar', { name: 'Uploading tide table.txt' });
    await progress.waitFor();
    // In another room, where nothing waits for the file.
    await far.open('Harbour');
    const waits: number[] = [];
    for (const n of [0, 1, 2, 3, 4, 5]) {
      const began = Date.now();
      await far.say(`beside ${n}`);
      await astrid.message(`beside ${n}`).waitFor();
      waits.push(Date.now() - began);
    }
    console.info(`beside a megabyte at 50 kbit/s: messages after ${waits.join(', ')} ms`);
    await far.open('Beach');
    expect(await progress.evaluate((bar: HTMLProgressElement) => bar.value)).toBeLessThan(0.9);
    // Two seconds on a machine that does nothing else; the file alone would take three minutes.
    expect(Math.max(...waits)).toBeLessThan(8_000);
    speed = FREE;
    await far.say('the whole of it');
    await far.message('the whole of it').getByText('tide table.txt').waitFor();
    await far.allSent();
    const saving = far.page.waitForEvent('download');
    await far.message('the whole of it').getByRole('button', { name: /tide table.txt/ }).click();
    expect((await readFile(await (await saving).path())).equals(long.buffer)).toBe(true);
    await far.open('Harbour');
    expect([...astrid.errors, ...far.errors]).toEqual([]);
  });
});

describe('a line that stands still for half a minute', () => {
  it('loses_and_doubles_nothing_of_what_was_under_way', async () => {
    speed = GOOD;
    await attach(far, text('still.txt', 'tide\n'.repeat(200_000)));
    await far.say('Still, with a file.');
    await far.page.locator('[data-pending] progress').waitFor();
    speed = STILL;
    // Nobody is told that the network is gone.
    await far.say('Still, without one.');
    await astrid.say('To whom it may concern.');
    await new Promise((resolve) => setTimeout(resolve, STILL_MS));
    speed = GOOD;
    await astrid.message('Still, without one').waitFor({ timeout: 120_000 });
    await far.message('To whom').waitFor();
    await far.allSent();
    const said = (await astrid.everything()).map(({ text: words }) => words).filter((words) => words.startsWith('Still'));
    expect(said).toEqual(['Still, with a file.', 'Still, without one.']);
    await astrid.message('Still, with a file').getByText('still.txt').waitFor();
    expect([...astrid.errors, ...far.errors]).toEqual([]);
  });
});
