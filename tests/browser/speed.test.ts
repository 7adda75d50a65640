//! How fast the page is in a room of 100,000 messages: figures are printed, and only what would ruin the page fails, so
//! that a busy machine does not.

import { get } from 'node:http';

import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';

import { fillRoom } from './support/fill';
import { keyLatencies } from './support/key_latency';
import { astrid, bo, browser, server, withAstridAndBo } from './support/scene';
import { workPerKey } from './support/work_per_key';

const MESSAGES = Number(process.env['SPEED_MESSAGES'] ?? 100_000);
const FIRST_SCRIPT_KIB_MAX = 110;
const COLD_MS_MAX = 350;
const THROTTLED_MS_MAX = 2_200;
/** Between two rooms, one after the other; of fewer the slowest would be the percentile. */
const CHANGES = 40;
const KEY_MS_MAX = 12;
const HEAP_MIB_MAX = 12;
const BURST_S = 3;
/** As in web/compress.ts. */
const PACKED_BYTES_MIN = 512;

withAstridAndBo();
beforeAll(async () => {
  await astrid.signUp(server.url);
  await astrid.createRoom('Small');
  await astrid.say('a small room');
  await astrid.createRoom('Large');
  await bo.joinBy(await astrid.invite());
  await fillRoom(bo.page, { count: MESSAGES, batch: 200 });
  await astrid.page.reload();
  await astrid.message(`number ${MESSAGES - 1} `).waitFor({ timeout: 60_000 });
}, 600_000);

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) * 10) / 10;
}

function report(what: string, values: readonly number[], bound?: number): void {
  const figures = [0.5, 0.95, 0.99].map((part) => quantile(values, part)).join(' / ');
  console.info(`${what}: ${figures} ms (p50 / p95 / p99 of ${values.length}${bound === undefined ? '' : `; bound ${bound}`})`);
}

/** On a machine of its own (SPEED_STRICT=1) twice the bound fails; others paint without a graphics card and are busy with
 * something else, so that a key takes ten times as long there on a good day. */
function atMost(value: number, bound: number): void {
  expect(value).toBeLessThanOrEqual(bound * (process.env['SPEED_STRICT'] ? 2 : 50));
}

/** What goes over the wire for an address; the answer has to be packed as it was asked for. */
function servedBytes(url: string, encoding: string, packed = encoding): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { 'accept-encoding': encoding } }, (answer) => {
      const said = answer.headers['content-encoding'] ?? 'none';
      let bytes = 0;
      answer.on('data', (part: Buffer) => (bytes += part.length)).on('error', reject).on('end', () => {
        // The smallest files are not worth packing.
        const isTiny = said === 'none' && bytes < PACKED_BYTES_MIN;
        if (said === packed || isTiny) resolve(bytes);
        else reject(new Error(`${url} came as ${said}, not as ${packed}`));
      });
    }).on('error', reject);
  });
}

/** Scrolls by `step` once per frame and returns how long each frame took. */
function scrollFrames(page: Page, step: number, frames: number): Promise<number[]> {
  return page.evaluate(async ([by, count]) => {
    const feed = document.querySelector('[role=feed]');
    const took: number[] = [];
    let last = await new Promise<number>(requestAnimationFrame);
    for (let frame = 0; frame < count; frame += 1) {
      feed?.scrollBy(0, by);
      const now = await new Promise<number>(requestAnimationFrame);
      took.push(now - last);
      last = now;
    }
    return took;
  }, [step, frames] as const);
}

/** Types sixty letters while so many messages arrive; returns how long each letter took until it was painted, and how much of
 * that from the beginning of the frame that it is painted in. */
async function typeDuring(perSecond: number): Promise<{ took: number[]; ours: number[] }> {
  const { page, composer } = astrid;
  await page.getByRole('button', { name: /Jump to latest|new message/ }).click({ timeout: 5_000 }).catch(() => undefined);
  const burst = fillRoom(bo.page, { count: perSecond * BURST_S, batch: Math.max(1, perSecond / 20), everyMs: 50 });
  await composer.focus();
  await page.evaluate(() => {
    const took: number[] = [];
    const ours: number[] = [];
    const stop = new AbortController();
    Object.assign(window, { took, ours, stop });
    document.querySelector('#composer')?.addEventListener('keydown', (event) => {
      requestAnimationFrame((frame) => setTimeout(() => {
        const painted = performance.now();
        took.push(painted - event.timeStamp);
        ours.push(painted - Math.max(frame, event.timeStamp));
      }));
    }, { signal: stop.signal });
  });
  for (let key = 0; key < 60; key += 1) await page.keyboard.press('x', { delay: 20 });
  await burst;
  return page.evaluate(() => {
    const seen = window as unknown as { took: number[]; ours: number[]; stop: AbortController };
    seen.stop.abort();
    return { took: seen.took, ours: seen.ours };
  });
}

/** The scripts that a browser which was never here has loaded when the first element of this kind appears. */
async function scriptsUntil(selector: string, storageState?: Awaited<ReturnType<typeof astrid.context.storageState>>): Promise<string[]> {
  const context = await browser.newContext(storageState ? { storageState } : {});
  const page = await context.newPage();
  await page.addInitScript((wanted) => {
    const seen = new MutationObserver(() => {
      if (!document.querySelector(wanted)) return;
      seen.disconnect();
      Object.assign(window, { appearedAt: performance.now() });
    });
    seen.observe(document, { childList: true, subtree: true });
  }, selector);
  await page.goto(server.url);
  await page.locator(selector).first().waitFor();
  const files = await page.evaluate(() => {
    const { appearedAt } = window as unknown as { appearedAt: number };
    const loaded = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
    return loaded.filter(({ name, responseEnd }) => /\.js$/.test(name) && responseEnd <= appearedAt).map(({ name }) => name);
  });
  await context.close();
  return files;
}

/** A machine four times as slow, on a line of a slow mobile network. */
async function slow(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  const bytesPerSecond = 1_600_000 / 8;
  await devtools.send('Network.enable');
  await devtools.send('Network.emulateNetworkConditions', {
    offline: false, latency: 150, downloadThroughput: bytesPerSecond, uploadThroughput: bytesPerSecond,
  });
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 });
}

/** How long it takes until the first message is painted, for a browser that knows who one is and holds nothing else. */
async function coldVisits(visits: number, prepare: (page: Page) => Promise<void> = async () => undefined): Promise<number[]> {
  const took: number[] = [];
  for (let visit = 0; visit < visits; visit += 1) {
    const context = await browser.newContext({ storageState: await astrid.context.storageState(), serviceWorkers: 'block' });
    const page = await context.newPage();
    await prepare(page);
    await page.addInitScript(() => {
      // Looked at from inside: a question from outside would wait for a busy page, and be part of the figure.
      const shown = new MutationObserver(() => {
        if (!document.querySelector('article .body')) return;
        shown.disconnect();
        requestAnimationFrame(() => setTimeout(() => Object.assign(window, { paintedAt: performance.now() })));
      });
      shown.observe(document, { childList: true, subtree: true });
    });
    await page.goto(astrid.page.url());
    const painted = await page.waitForFunction(() => (window as unknown as { paintedAt?: number }).paintedAt);
    took.push((await painted.jsonValue()) ?? Number.NaN);
    await context.close();
  }
  return took;
}

describe('the first visit', () => {
  it('loads_little_script', async () => {
    const kib = async (files: readonly string[], encoding: string) => {
      const sizes = await Promise.all(files.map((url) => servedBytes(url, encoding)));
      return sizes.reduce((sum, size) => sum + size, 0) / 1024;
    };
    // Nobody is signed in: what came until one can type one's name. Then until the first message is there.
    const first = await scriptsUntil('#name');
    const whole = await scriptsUntil('article[data-seq]', await astrid.context.storageState());
    for (const [what, files, bound] of [['the first visit', first, FIRST_SCRIPT_KIB_MAX], ['the first message', whole, 2 * FIRST_SCRIPT_KIB_MAX]] as const) {
      const [brotli, gzip] = [await kib(files, 'br'), await kib(files, 'gzip')];
      console.info(`script until ${what} as served: ${brotli.toFixed(1)} KiB brotli, ${gzip.toFixed(1)} KiB gzip (bound ${bound})`);
      expect(files.length).toBeGreaterThan(0);
      expect(gzip).toBeLessThanOrEqual(bound);
      expect(brotli).toBeLessThan(gzip);
    }
    // Nothing that a room of words alone can do without, whatever machine this is.
    expect(await kib(whole, 'br')).toBeLessThanOrEqual(FIRST_SCRIPT_KIB_MAX);
  });

  it('is_served_plain_to_whoever_reads_nothing_else', async () => {
    expect(await servedBytes(server.url, 'identity', 'none')).toBeGreaterThan(0);
    expect(await servedBytes(server.url, 'br;q=0', 'none')).toBeGreaterThan(0);
  });
});

describe(`a room of ${MESSAGES} messages`, () => {
  it('keeps_few_elements_however_long_it_is', async () => {
    expect(await astrid.page.locator('article').count()).toBeLessThan(80);
  });

  it('scrolls_frame_by_frame', async () => {
    const reading = await scrollFrames(astrid.page, -60, 300);
    const flicking = await scrollFrames(astrid.page, -600, 200);
    report('frame while reading (60 px)', reading, 17);
    report('frame while flicking (600 px)', flicking);
    atMost(quantile(reading, 0.95), 17);
  });

  it('shows_any_place_of_its_history', async () => {
    const took: number[] = [];
    for (const part of [0.1, 0.5, 0.9, 0.3]) {
      took.push(
        await astrid.page.evaluate(async (where) => {
          const feed = document.querySelector('[role=feed]');
          const begin = performance.now();
          feed?.scrollTo(0, feed.scrollHeight * where);
          await new Promise(requestAnimationFrame);
          while (feed?.getAttribute('aria-busy') === 'true') await new Promise(requestAnimationFrame);
          return performance.now() - begin;
        }, part),
      );
    }
    report('history at a far place shown', took);
    expect(await astrid.page.locator('article .body').count()).toBeGreaterThan(10);
  });

  it('changes_to_a_room_seen_before', async () => {
    const took: number[] = [];
    await astrid.open('Small');
    await astrid.open('Large');
    for (let change = 0; change < CHANGES; change += 1) {
      const room = change % 2 === 0 ? 'Small' : 'Large';
      took.push(
        await astrid.page.evaluate(async (name) => {
          const link = [...document.querySelectorAll<HTMLElement>('nav a')].find((each) => each.textContent.includes(name));
          const begin = performance.now();
          link?.click();
          const shown = () => document.querySelector('h1')?.textContent === name && document.querySelector('article .body') !== null;
          while (!shown()) await new Promise((resolve) => setTimeout(resolve));
          document.body.getBoundingClientRect();
          return performance.now() - begin;
        }, room),
      );
    }
    report('change of room', took, 25);
    atMost(quantile(took, 0.95), 25);
  });

  // In silence too: so long a key waits for the display's next frame, whatever the page does. A display of 60 frames a
  // second has one key in twenty wait for most of a frame.
  let silent = 0;
  it.each([0, 100, 500])('answers_typing_during_%i_messages_a_second', async (perSecond) => {
    const { took, ours } = await typeDuring(perSecond);
    report(`key to paint during ${perSecond} messages a second`, took, perSecond === 100 ? KEY_MS_MAX : undefined);
    report('  of that, from the beginning of its frame', ours);
    if (perSecond === 0) silent = quantile(took, 0.95);
    else console.info(`  of that, beyond what it takes in silence: ${(quantile(took, 0.95) - silent).toFixed(1)} ms (p95)`);
    if (perSecond === 100) atMost(quantile(took, 0.95), KEY_MS_MAX);
    expect(astrid.errors).toEqual([]);
  });

  // A page that holds nothing but a text field, in the same browser: by the clock no page is faster there.
  it('shows_a_key_hardly_later_than_a_page_with_a_bare_text_field', async () => {
    const show = (what: string, keys: Awaited<ReturnType<typeof keyLatencies>>): void => {
      report(`key to picture ${what}`, keys.map(({ total }) => total));
      report('  of that, waiting for the frame of the display', keys.map(({ waiting }) => waiting));
      report('  and all the rest', keys.map(({ total, waiting }) => total - waiting), KEY_MS_MAX);
      expect(keys.length).toBeGreaterThan(30);
    };
    const bare = await astrid.context.newPage();
    await bare.setContent('<textarea autofocus rows="3" cols="60"></textarea>');
    await bare.locator('textarea').focus();
    show('in a bare text field', await keyLatencies(browser, async () => {
      for (let key = 0; key < 60; key += 1) await bare.keyboard.press('x', { delay: 20 });
    }));
    await bare.close();
    await astrid.page.bringToFront();
    for (const perSecond of [0, 100]) {
      const keys = await keyLatencies(browser, () => typeDuring(perSecond));
      show(`during ${perSecond} messages a second`, keys);
      atMost(quantile(keys.map(({ total, waiting }) => total - waiting), 0.95), KEY_MS_MAX);
    }
  });

  // By the processor's time, in which neither a display nor other programs are waited for: a busy machine changes it little.
  it.each([0, 100])('works_less_than_a_frame_for_a_key_during_%i_messages_a_second', async (perSecond) => {
    const work = await workPerKey(browser, () => typeDuring(perSecond));
    report(`work from a key to its frame during ${perSecond} messages a second`, work, KEY_MS_MAX);
    expect(work.length).toBeGreaterThan(50);
    expect(quantile(work, 0.95)).toBeLessThanOrEqual(2 * KEY_MS_MAX);
  });

  it('keeps_its_memory_after_ten_thousand_messages', async () => {
    await fillRoom(bo.page, { count: 10_000, batch: 200 });
    // What has come is worked off: on its way to the page, each message is there several times.
    await astrid.message('number 9999 ').waitFor();
    await astrid.page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));
    const session = await astrid.context.newCDPSession(astrid.page);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    const mib = usedSize / 1024 / 1024;
    console.info(`heap after 10,000 messages: ${mib.toFixed(1)} MiB (bound ${HEAP_MIB_MAX})`);
    // What the tests before have shown of the large room is in it too; the code that the browser made of ours is a third.
    expect(mib).toBeLessThan(2 * HEAP_MIB_MAX);
  });

  it('shows_the_first_message_to_somebody_who_comes_cold', async () => {
    const took = await coldVisits(5);
    report('first message painted, cold', took, COLD_MS_MAX);
    atMost(quantile(took, 0.5), COLD_MS_MAX);
  });

  it('shows_it_on_a_slow_machine_and_a_slow_line_too', async () => {
    const took = await coldVisits(3, slow);
    report('first message painted, cold, throttled (4x CPU, 1.6 Mbit/s, 150 ms)', took, THROTTLED_MS_MAX);
    atMost(quantile(took, 0.5), THROTTLED_MS_MAX);
  });
});
