//! Two people write while their server is killed and started again.

import { expect } from 'vitest';

import type { Person } from './person';
import type { Server } from './server';

const MESSAGES_PER_ROUND = 12;

async function write(person: Person, round: number): Promise<string[]> {
  const texts: string[] = [];
  for (let index = 0; index < MESSAGES_PER_ROUND; index += 1) {
    const text = `${person.name} ${round}.${index}`;
    await person.say(text);
    texts.push(text);
  }
  return texts;
}

/** Kills the server so many times while both write: in the end both see every message once and in order. */
export async function loseNothing(server: Server, astrid: Person, bo: Person, kills: number): Promise<void> {
  const written = { astrid: [] as string[], bo: [] as string[] };
  for (let round = 0; round < kills; round += 1) {
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
  const last = `astrid ${kills - 1}.${MESSAGES_PER_ROUND - 1}`;
  await bo.message(last).waitFor();

  const [seenByAstrid, seenByBo] = [await astrid.everything(), await bo.everything()];
  expect(seenByBo).toEqual(seenByAstrid);
  expect(seenByAstrid.map(({ seq }) => seq)).toEqual(seenByAstrid.map((_, index) => index + 1));
  for (const person of [astrid, bo] as const) {
    const own = seenByAstrid.map(({ text }) => text).filter((text) => text.startsWith(person.name));
    expect(own).toEqual(written[person.name as 'astrid' | 'bo']);
  }
}
