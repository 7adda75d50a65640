// Two people on different nodes of one server, through the official JavaScript SDK. The node that one of them is
// connected to is killed while both talk; the SDK finds another node behind the same address and goes on there.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { FORMATS, numbered, twoInARoom } from './person.mjs';
import { Nodes } from './nodes.mjs';

const NODES = 3;
const MESSAGES = 60;
const KILLED_AFTER = 20;
// A node that is lost is missed for a lease; then its rooms and users are loaded elsewhere.
const OPTIONS = { timeout: 180_000 };
const TAKE_OVER_MS_MAX = 60_000;
/** Codes of the SDK itself: the connection was lost, or the answer did not come in time. */
const LOST = 11;
const TIMEOUT = 1;

/** Sends a text under its key until it is acknowledged, as an application does; resolves to the answer. */
async function acknowledged(person, room, body) {
  for (const until = Date.now() + TAKE_OVER_MS_MAX; ;) {
    try {
      await person.client.ready(TAKE_OVER_MS_MAX);
      return await person.rpc('message.send', { room: room.id, key: body, body });
    } catch (error) {
      const isWorthAnother = error.temporary || error.code === LOST || error.code === TIMEOUT;
      if (!isWorthAnother || Date.now() > until) throw new Error(`${body}: ${JSON.stringify(error)}`);
    }
  }
}

/** One after the other; `said(index)` hears of each acknowledgement. Resolves to the sequence numbers. */
async function talk(person, room, bodies, said = () => {}) {
  const seqs = [];
  for (const [index, body] of bodies.entries()) {
    seqs.push((await acknowledged(person, room, body)).seq);
    said(index);
  }
  return seqs;
}

/** The next so many events of the room's stream: without a gap, none twice. */
async function heard(stream, count) {
  const events = [];
  while (events.length < count) events.push(await stream.events.next(({ offset }) => offset > 0, 'event', TAKE_OVER_MS_MAX));
  events.forEach(({ offset }, index) => assert.equal(offset, events[0].offset + index));
  return events.map(({ data }) => data);
}

describe('a node dies amid a conversation', OPTIONS, () => {
  let nodes;

  before(async () => {
    nodes = await Nodes.start(NODES);
  });

  after(async () => {
    await nodes?.stop();
  });

  for (const [index, format] of FORMATS.entries()) {
    test(`nothing acknowledged is lost, doubled or out of order in ${format}`, OPTIONS, async () => {
      const [killed, other] = [1 + index, 2 + index];
      const adas = await nodes.balancer(other);
      const bos = await nodes.balancer(killed);
      const { ada, bo, room, channel } = await twoInARoom({ port: adas.port }, format, bos.port);
      try {
        const streams = [await ada.subscribe(channel), await bo.subscribe(channel)];
        for (const stream of streams) await stream.subscribed.next();
        const said = { ada: numbered('ada', MESSAGES), bo: numbered('bo', MESSAGES) };
        const seqs = await Promise.all([
          talk(ada, room, said.ada),
          talk(bo, room, said.bo, (index) => index === KILLED_AFTER && nodes.kill(killed)),
        ]);
        for (const own of seqs) assert.deepEqual(own, [...own].sort((one, two) => one - two));

        const both = await Promise.all(streams.map((stream) => heard(stream, 2 * MESSAGES)));
        const [events] = both;
        assert.deepEqual(both[1], events);
        assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index + 1));
        for (const [name, bodies] of Object.entries(said)) {
          assert.deepEqual(events.map(({ body }) => body).filter((body) => body.startsWith(`${name} `)), bodies);
        }
        // The acknowledgements name the places where the messages are.
        assert.deepEqual(seqs.flat().sort((one, two) => one - two), events.map(({ seq }) => seq));

        // Bo's connection died with its node, and what was missed came by recovery; no stream has more to say.
        assert.equal((await streams[1].subscribed.next()).recovered, true);
        await acknowledged(bo, room, 'goodbye');
        for (const stream of streams) assert.equal((await heard(stream, 1))[0].body, 'goodbye');
        for (const stream of streams) assert.deepEqual(stream.events.rest, []);
      } finally {
        ada.close();
        bo.close();
      }
      await nodes.serves(killed);
    });
  }
});
