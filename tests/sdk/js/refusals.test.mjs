// What the server refuses, and that the SDK understands it: errors with the protocol's codes for one command,
// disconnects with its codes for a connection that is of no further use, and no harm to anyone else.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { FORMATS, Person, numbered, signUp, twoInARoom } from './person.mjs';
import { Proxy } from './proxy.mjs';
import { Server } from './server.mjs';

const OPTIONS = { timeout: 60_000 };
// 24 kB each, so 48 MB: far more than the server's queue of 1 MiB and any kernel's buffers for one connection.
const STALLED_MESSAGES_MAX = 2_000;

for (const format of FORMATS) {
  describe(`refusals in ${format}`, OPTIONS, () => {
    let server, proxy, ada, bo, room, channel;

    before(async () => {
      server = await Server.start();
      proxy = await Proxy.start(server);
      ({ ada, bo, room, channel } = await twoInARoom(server, format, proxy.port));
    });

    after(async () => {
      ada?.close();
      bo?.close();
      await proxy?.stop();
      await server?.stop();
    });

    test('errors carry the code and name the field, method or limit', async () => {
      const send = (fields) => ada.rpc('message.send', { room: room.id, key: 'k', body: 'b', ...fields });
      await assert.rejects(ada.rpc('room.explode'), { code: 104, message: /room\.explode/ });
      await assert.rejects(send({ key: undefined }), { code: 400, message: /key/ });
      await assert.rejects(send({ body: ' ' }), { code: 400, message: /body/ });
      await assert.rejects(send({ body: 'x'.repeat(8_001) }), { code: 413, message: /8000/ });
      await assert.rejects(send({ room: '0000000000001' }), ({ code }) => code === 404 || code === 103);
      await send({ key: 'taken' });
      await assert.rejects(send({ key: 'taken', body: 'other' }), { code: 409 });
      await assert.rejects(ada.rpc('invite.accept', { code: 'nonesuch' }), { code: 404 });
    });

    test('a stranger to a room can neither subscribe nor publish', async () => {
      const eve = await Person.connect(await signUp(server, `eve.${format}`), server.port, format);
      await assert.rejects(eve.publish(channel, { body: 'let me in' }), { code: 103 });
      await assert.rejects(eve.subscribe(channel));
      await assert.rejects(eve.publish('nonesuch', { body: 'x' }), { code: 102 });
      await assert.rejects(eve.publish(`user:${ada.user.id}`, { body: 'x' }), { code: 108 });
      eve.close();
    });

    test('a wrong token ends the connection for good', async () => {
      const mallory = new Person({ user: {} }, server.port, format, `fm_${'A'.repeat(43)}`);
      mallory.client.connect();
      const { code, reason } = await mallory.lives('disconnected');
      assert.deepEqual({ code, reason }, { code: 3500, reason: 'invalid token' });
    });

    test('an oversized frame ends its connection for good, and no other', async () => {
      const zoe = await Person.connect(await signUp(server, `zoe.${format}`), server.port, format);
      zoe.rpc('message.send', { room: room.id, key: 'k', body: 'x'.repeat(70_000) }).catch(() => {});
      const { code } = await zoe.lives('disconnected');
      assert.equal(code, 3, "the SDK's code for WebSocket's 1009, message too big");
      assert.equal((await ada.rpc('user.get', { user: ada.user.id })).id, ada.user.id);
    });

    test('who does not read is disconnected as slow, then finds everything in history', async () => {
      const bos = await bo.subscribe(channel);
      await bos.subscribed.next();
      proxy.stall();
      // 8,000 characters of three bytes each: few messages fill the queue, after what the kernel's buffers hold.
      const body = '☕'.repeat(8_000);
      const sent = [];
      while ((await ada.client.presenceStats(channel)).numClients > 0) {
        assert.ok(sent.length < STALLED_MESSAGES_MAX, 'the server buffers without end');
        const keys = numbered(`slow ${sent.length}`, 20);
        sent.push(...await Promise.all(keys.map((key) => ada.rpc('message.send', { room: room.id, key, body }))));
      }
      proxy.resume();
      const { code, reason } = await bo.lives('connecting');
      assert.deepEqual({ code, reason }, { code: 3008, reason: 'slow' });
      const { recovered, wasRecovering } = await bos.subscribed.next();
      assert.deepEqual({ recovered, wasRecovering }, { recovered: false, wasRecovering: true });
      const expected = sent.map(({ seq }) => seq).sort((left, right) => left - right);
      const found = [];
      for (let after = expected[0] - 1; after < expected.at(-1); after = found.at(-1)) {
        const page = await bo.rpc('history.get', { room: room.id, after, limit: 100 });
        found.push(...page.messages.map(({ seq }) => seq));
      }
      assert.deepEqual(found, expected);
    });
  });
}
