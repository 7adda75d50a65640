//! The page of parts in their states, as `make web-gallery` serves it: it needs no server, and nobody signed in.

import { createRequire } from 'node:module';
import path from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { launchBrowser } from './support/browser';
import { Person } from './support/person';

const WEB = path.resolve(import.meta.dirname, '../../web');

/** What is needed of the development server, which belongs to the client's packages. */
interface DevServer {
  listen(): Promise<DevServer>;
  close(): Promise<void>;
  resolvedUrls: { local: string[] } | null;
}

let server: DevServer;
let browser: Awaited<ReturnType<typeof launchBrowser>>;
beforeAll(async () => {
  const vite = createRequire(path.join(WEB, 'package.json')).resolve('vite');
  const { createServer } = (await import(vite)) as { createServer(config: object): Promise<DevServer> };
  server = await (await createServer({ root: WEB, configFile: path.join(WEB, 'vite.config.ts'), logLevel: 'error', server: { port: 0 } })).listen();
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

it('every_part_is_shown_in_its_states', async () => {
  const anybody = await Person.arrive(browser, 'anybody');
  const { page } = anybody;
  await page.goto(`${server.resolvedUrls?.local[0] ?? ''}gallery.html`);
  for (const part of ['Buttons', 'Faces', 'Writing', 'Empty places']) await page.getByRole('heading', { name: part, exact: true }).waitFor();
  await page.getByRole('group', { name: 'Preview' }).getByText('tide').waitFor();
  await page.getByRole('button', { name: 'Toast' }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  expect(anybody.errors).toEqual([]);
});
