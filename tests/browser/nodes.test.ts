//! Two people on different nodes of one server, while the nodes are killed one after the other: they talk on, and every
//! acknowledged message is there once and in order, in both windows.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { launchBrowser } from './support/browser';
import { Nodes } from './support/nodes';
import { Person } from './support/person';

const NODES = 3;
const MESSAGES_PER_ROUND = 6;
/** A node that is lost is missed for a lease; then its rooms are loaded elsewhere. */
const TAKE_OVER = { timeout: 90_000 };

let nodes: Nodes;
let browser: Browser;
let astrid: Person;
let bo: Person;

beforeAll(async () => {
  nodes = await Nodes.start(NODES);
  browser = await launchBrowser();
  astrid = await Person.arrive(browser, 'astrid');
  bo = await Person.arrive(browser, 'bo');
  const [first, second] = [await nodes.balancer(1), await nodes.balancer(2)];
  await astrid.signUp(first, 'Astrid Holm');
  await astrid.createRoom('Harbour');
  const invite = new URL(await astrid.invite());
  await bo.joinBy(`${second}${invite.pathname}`, 'Bo Lind');
});

afterAll(async () => {
  await browser?.close();
  await nodes?.stop();
});

/** Each writes so many; returns what was written. */
async function bothWrite(round: number): Promise<string[]> {
  const texts: string[] = [];
  for (let index = 0; index < MESSAGES_PER_ROUND; index += 1) {
    for (const person of [astrid, bo]) {
      const text = `${person.name} ${round}.${index}`;
      await person.say(text);
      texts.push(text);
    }
  }
  return texts;
}

describe('two people on different nodes', () => {
  it('hear_each_other', async () => {
    await astrid.say('from the first node');
    await bo.message('from the first node').waitFor();
    await bo.say('from the second node');
    await astrid.message('from the second node').waitFor();
  });

  it('talk_on_while_the_nodes_are_killed_one_after_the_other', async () => {
    const written: string[] = [];
    for (let round = 1; round <= NODES; round += 1) {
      const writing = bothWrite(round);
      await bo.message(`bo ${round}.0`).waitFor();
      nodes.kill(round);
      const texts = await writing;
      written.push(...texts);
      const last = `bo ${round}.${MESSAGES_PER_ROUND - 1}`;
      await Promise.all([astrid, bo].map((person) => person.allSent(TAKE_OVER)));
      await Promise.all([astrid, bo].map((person) => person.message(last).waitFor(TAKE_OVER)));
      await nodes.serves(round);
    }
    const [seenByAstrid, seenByBo] = [await astrid.everything(), await bo.everything()];
    expect(seenByBo).toEqual(seenByAstrid);
    expect(seenByAstrid.map(({ seq }) => seq)).toEqual(seenByAstrid.map((_, index) => index + 1));
    for (const { name } of [astrid, bo]) {
      const own = (texts: string[]) => texts.filter((text) => text.startsWith(`${name} `));
      expect(own(seenByAstrid.map(({ text }) => text))).toEqual(own(written));
    }
    expect([...astrid.errors, ...bo.errors]).toEqual([]);
  });
});
