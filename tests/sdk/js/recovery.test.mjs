// Connections break and servers die; the SDK reconnects by itself, and what was missed arrives in order, each
// event exactly once.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { FORMATS, numbered, twoInARoom } from './person.mjs';
import { Proxy } from './proxy.mjs';
import { Server } from './server.mjs';

const OPTIONS = { timeout: 60_000 };

async function send(person, room, bodies) {
  for (const body of bodies) await person.rpc('message.send', { room: room.id, key: `${body}`.slice(0, 32), body });
}

/** Takes as many messages as were sent and checks that they are these, in order, without a gap in the stream. */
async function expectExactly(stream, bodies) {
  const events = await stream.events.take(bodies.length);
  assert.deepEqual(events.map(({ data }) => data.body), bodies);
  events.forEach(({ offset }, index) => assert.equal(offset, events[0].offset + index));
}

for (const format of FORMATS) {
  describe(`recovery in ${format}`, OPTIONS, () => {
    let server, proxy, ada, bo, room, channel, bos;

    before(async () => {
      server = await Server.start();
      proxy = await Proxy.start(server);
      ({ ada, bo, room, channel } = await twoInARoom(server, format, proxy.port));
      bos = await bo.subscribe(channel);
      await bos.subscribed.next();
    });

    after(async () => {
      ada?.close();
      bo?.close();
      await proxy?.stop();
      await server?.stop();
    });

    test('events missed while the connection was cut arrive once and in order', async () => {
      await send(ada, room, ['before']);
      await expectExactly(bos, ['before']);
      proxy.cut();
      await bo.lives('connecting');
      await send(ada, room, numbered('missed', 20));
      proxy.restore();
      const { recovered, wasRecovering } = await bos.subscribed.next();
      assert.deepEqual({ recovered, wasRecovering }, { recovered: true, wasRecovering: true });
      await send(ada, room, ['after']);
      await expectExactly(bos, [...numbered('missed', 20), 'after']);
      assert.deepEqual(bos.events.rest, []);
    });

    test('the own stream recovers as a room does', async () => {
      const before = await bo.own.next(({ data }) => data.type === 'room_added', 'room_added');
      proxy.cut();
      await bo.lives('connecting');
      await send(ada, room, [`you missed this, @${bo.user.name}`]);
      proxy.restore();
      const mention = await bo.own.next(({ data }) => data.type === 'mention', 'mention');
      assert.ok(mention.offset > before.offset);
      assert.equal((await bos.events.next()).data.body, `you missed this, @${bo.user.name}`);
    });

    test('a killed server loses nothing that it acknowledged', async () => {
      proxy.cut();
      await send(ada, room, numbered('acknowledged', 20));
      await server.kill('SIGKILL');
      await server.launch();
      proxy.restore();
      await expectExactly(bos, numbered('acknowledged', 20));
      // The restarted server is at another port, which ada's SDK cannot know; bo's goes through the proxy.
      await send(bo, room, ['still alive']);
      await expectExactly(bos, ['still alive']);
      assert.deepEqual(bos.events.rest, []);
    });

    test('a server that stops says so, and is found again', async () => {
      await server.kill('SIGTERM');
      await bo.life.next(([event, { code }]) => event === 'connecting' && code === 3001, 'shutdown');
      await server.launch();
      assert.equal((await bos.subscribed.next(({ recovered }) => recovered, 'recovery')).recovered, true);
      await send(bo, room, ['after the stop']);
      await expectExactly(bos, ['after the stop']);
    });
  });
}
