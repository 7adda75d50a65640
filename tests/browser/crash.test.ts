//! The server is killed while two people write. Every acknowledged message is there once and in order, in both windows;
//! what was not acknowledged is sent after the restart under the same key.

import { beforeAll, describe, expect, it } from 'vitest';

import type { Person } from './support/person';
import { astrid, bo, meetIn, server, withAstridAndBo } from './support/scene';

const KILLS = 3;
const MESSAGES_PER_ROUND = 12;

withAstridAndBo();
beforeAll(() => meetIn('Storm'));

async function write(person: Person, round: number): Promise<string[]> {
  const texts: string[] = [];
  for (let index = 0; index < MESSAGES_PER_ROUND; index += 1) {
    const text = `${person.name} ${round}.${index}`;
    await person.say(text);
    texts.push(text);
  }
  return texts;
}

describe('a killed server', () => {
  it('loses_no_acknowledged_message_and_doubles_none', async () => {
    const written = { astrid: [] as string[], bo: [] as string[] };
    for (let round = 0; round < KILLS; round += 1) {
      const writing = Promise.all([write(astrid, round), write(bo, round)]);
      // The kill falls among the messages: the first of this round is acknowledged, the last is not yet written.
      await astrid.message(`astrid ${round}.0`).waitFor();
      await server.kill();
      const [ofAstrid, ofBo] = await writing;
      written.astrid.push(...ofAstrid);
      written.bo.push(...ofBo);
      await server.run();
      await Promise.all([astrid.allSent(), bo.allSent()]);
    }
    const last = `astrid ${KILLS - 1}.${MESSAGES_PER_ROUND - 1}`;
    await bo.message(last).waitFor();

    const [seenByAstrid, seenByBo] = [await astrid.everything(), await bo.everything()];
    expect(seenByBo).toEqual(seenByAstrid);
    expect(seenByAstrid.map(({ seq }) => seq)).toEqual(seenByAstrid.map((_, index) => index + 1));
    for (const person of [astrid, bo] as const) {
      const own = seenByAstrid.map(({ text }) => text).filter((text) => text.startsWith(person.name));
      expect(own).toEqual(written[person.name as 'astrid' | 'bo']);
    }
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
