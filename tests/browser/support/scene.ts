//! The scene that a file of tests plays in: a server and a browser of its own, and Astrid and Bo, each at a window. A file
//! says at its top what it needs; all of it is up before the file's own `beforeAll`, and ends after its last test.
//!
//! What is handed out are live bindings: they hold nothing until the hooks have run, so only hooks and tests may read them.

import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';

import { launchBrowser } from './browser';
import { Person } from './person';
import { Server } from './server';

export let server: Server;
export let browser: Browser;
export let astrid: Person;
export let bo: Person;

interface Staging {
  /** Of the server's command line. */
  flags?: readonly string[];
  /** What is special about a person's window. */
  astrid?: BrowserContextOptions;
  bo?: BrowserContextOptions;
}

/** For files with people of their own. */
export function withServer(...flags: readonly string[]): void {
  beforeAll(async () => {
    // One after the other: whichever fails to start, the one before it is known and ended.
    server = await Server.start(...flags);
    browser = await launchBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
}

/** Nobody has an account yet: what a file tests may begin there. */
export function withAstridAndBo(staging: Staging = {}): void {
  withServer(...(staging.flags ?? []));
  beforeAll(async () => {
    astrid = await Person.arrive(browser, 'astrid', staging.astrid);
    bo = await Person.arrive(browser, 'bo', staging.bo);
  });
}

/** Astrid signs up and makes a room; Bo signs up by her invitation and joins it. Returns the invitation's link. */
export async function meetIn(room: string, topic = ''): Promise<string> {
  await astrid.signUp(server.url, 'Astrid Holm');
  await astrid.createRoom(room, topic);
  const link = await astrid.invite();
  await bo.joinBy(link, 'Bo Lind');
  return link;
}
