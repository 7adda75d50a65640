//! The server is killed while two people write. Every acknowledged message is there once and in order, in both windows;
//! what was not acknowledged is sent after the restart under the same key.

import { beforeAll, describe, expect, it } from 'vitest';

import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';
import { loseNothing } from './support/storm';

const KILLS = 3;

withAstridAndBo();
beforeAll(() => meetIn('Storm'));

describe('a killed server', () => {
  it('loses_no_acknowledged_message_and_doubles_none', async () => {
    await loseNothing(server, astrid, bo, KILLS);
  });

  it('tells_the_truth_about_the_connection_and_comes_back_by_itself', async () => {
    await server.kill();
    await astrid.page.getByText(/Connection lost/).waitFor();
    await astrid.say('written while away');
    await astrid.page.getByText('Waiting for the connection').waitFor();
    await server.run();
    await bo.message('written while away').waitFor({ timeout: 60_000 });
    await astrid.isOnline();
    expect(await astrid.page.getByText(/Connection lost/).count()).toBe(0);
  });

  it('keeps_unsent_messages_through_a_reload', async () => {
    await server.kill();
    await astrid.say('written before the reload');
    await server.run();
    await astrid.page.reload();
    await bo.message('written before the reload').waitFor({ timeout: 60_000 });
    const all = await astrid.everything();
    expect(all.filter(({ text }) => text === 'written before the reload')).toHaveLength(1);
  });
});
