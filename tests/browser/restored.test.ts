//! A server is put back to an older state while people have their pages open: they show what it has, and nothing of what it
//! has lost, and count what is said next.

import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Person } from './support/person';
import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';

let copy: string;

withAstridAndBo();
beforeAll(async () => {
  copy = await mkdtemp(path.join(tmpdir(), 'folkmoot-copy-'));
  await meetIn('Harbour');
  await astrid.say('Kept.');
  await bo.message('Kept').waitFor();
});
afterAll(() => rm(copy, { recursive: true, force: true }));

/** What a page shows of what the server has lost. */
function lost({ page }: Person): Promise<number> {
  return page.locator('article[data-seq]').filter({ hasText: 'Lost' }).count();
}

describe('a server that was put back to an older state', () => {
  it('has_its_open_pages_show_nothing_that_it_has_lost', async () => {
    await server.kill();
    await cp(server.data, copy, { recursive: true });
    await server.run();
    await Promise.all([astrid.isOnline(), bo.isOnline()]);
    for (const text of ['Lost one.', 'Lost two.', 'Lost three.']) await astrid.say(text);
    await astrid.allSent();
    await bo.message('Lost three').waitFor();

    await server.kill();
    await rm(server.data, { recursive: true });
    await cp(copy, server.data, { recursive: true });
    await server.run('--restored');
    await Promise.all([astrid.isOnline(), bo.isOnline()]);
    for (const person of [astrid, bo]) {
      await expect.poll(() => lost(person)).toBe(0);
      await person.message('Kept').waitFor();
    }
  });

  it('has_what_is_said_next_counted_as_unread', async () => {
    await bo.page.getByRole('link', { name: 'Harbour', exact: true }).waitFor();
    await bo.createRoom('Elsewhere');
    await astrid.say('Said anew.');
    await bo.page.getByRole('link', { name: /Harbour.*1 unread/ }).click();
    await bo.message('Said anew').waitFor();
    expect((await bo.everything()).map(({ text }) => text)).toEqual(['Kept.', 'Said anew.']);
  });

  it('causes_no_error_in_either_page', () => {
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
