// Two people talk through the official JavaScript SDK, unmodified, in both formats: everything a chat client does
// while nothing goes wrong.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { FORMATS, Person, post, signUp, twoInARoom } from './person.mjs';
import { Server } from './server.mjs';

const OPTIONS = { timeout: 60_000 };

for (const format of FORMATS) {
  describe(`a conversation in ${format}`, OPTIONS, () => {
    let server, ada, bo, room, channel, adas, bos;

    before(async () => {
      server = await Server.start();
      ({ ada, bo, room, channel } = await twoInARoom(server, format));
      adas = await ada.subscribe(channel);
      bos = await bo.subscribe(channel);
    });

    after(async () => {
      ada?.close();
      bo?.close();
      await server?.stop();
    });

    test('the server subscribes each user to the own stream', async () => {
      const context = await bo.ownSubscribed.next();
      assert.equal(context.channel, `user:${bo.user.id}`);
      assert.equal(context.recoverable, true);
      const { data } = await bo.own.next(({ data }) => data.type === 'room_added', 'room_added');
      assert.equal(data.room.id, room.id);
      assert.equal(data.room.members, 2);
    });

    test('a published message reaches every subscriber with the same numbers', async () => {
      await adas.publish({ body: 'hello', key: 'first' });
      for (const stream of [adas, bos]) {
        const event = await stream.events.next(({ data }) => data.type === 'message', 'message');
        const { type, room: id, seq, offset, user, body, key } = event.data;
        assert.deepEqual({ type, id, seq, user, body, key },
          { type: 'message', id: room.id, seq: 1, user: ada.user.id, body: 'hello', key: 'first' });
        assert.equal(offset, event.offset);
      }
    });

    test('a retry with the same key is answered and not repeated', async () => {
      const send = { room: room.id, key: 'second', body: 'Grüße ☕\nsecond line' };
      const first = await bo.rpc('message.send', send);
      const again = await bo.rpc('message.send', send);
      assert.equal(first.seq, 2);
      assert.deepEqual(again, { ...first, duplicate: true });
      const event = await adas.events.next(({ data }) => data.type === 'message', 'message');
      assert.equal(event.data.body, send.body);
      const page = await ada.rpc('history.get', { room: room.id });
      assert.deepEqual(page.messages.map(({ seq }) => seq), [1, 2]);
    });

    test('edits, reactions and deletions reach the others in order', async () => {
      await bo.rpc('message.edit', { room: room.id, seq: 2, body: 'better' });
      await ada.rpc('message.react', { room: room.id, seq: 2, emoji: '🎉', on: true });
      await bo.rpc('message.delete', { room: room.id, seq: 2 });
      const events = await adas.events.take(3);
      assert.deepEqual(events.map(({ data }) => data.type), ['edited', 'reaction', 'deleted']);
      assert.equal(events[1].offset, events[0].offset + 1);
      assert.equal(events[2].offset, events[1].offset + 1);
      assert.equal(events[0].data.body, 'better');
    });

    test('history returns the stream, from either end', async () => {
      const position = await adas.history({ limit: 0 });
      assert.deepEqual(position.publications, []);
      const all = await adas.history({ limit: 100 });
      assert.equal(all.offset, position.offset);
      assert.deepEqual(all.events.map(({ offset }) => offset), [...all.events.keys()].map((index) => index + 1));
      const newest = await adas.history({ limit: 2, reverse: true });
      assert.deepEqual(newest.events.map(({ offset }) => offset), [all.offset, all.offset - 1]);
      const since = await adas.history({ limit: 100, since: { offset: all.offset - 1, epoch: all.epoch } });
      assert.deepEqual(since.events, all.events.slice(-1));
    });

    test('presence names the connections of the room', async () => {
      const clients = Object.values(await adas.presence());
      assert.deepEqual(new Set(clients.map(({ user }) => user)), new Set([ada.user.id, bo.user.id]));
      for (const info of clients) assert.equal(typeof bos.connInfo(info).name, 'string');
      assert.deepEqual(await bos.presenceStats(), { numClients: 2, numUsers: 2 });
    });

    test('who asks hears connections come and go', async () => {
      const again = async ({ user: { name } }) =>
        Person.connect((await post(server.port, 'sessions', { name, password: `${name}'s password` })).body, server.port, format);
      const watcher = await again(ada);
      const watched = await watcher.subscribe(channel, { joinLeave: true });
      const tablet = await again(bo);
      await tablet.subscribe(channel);
      const [came, client, name] = await watched.comings.next();
      assert.deepEqual([came, name], ['join', bo.user.name]);
      tablet.close();
      assert.deepEqual(await watched.comings.next(), ['leave', client, name]);
      watcher.close();
    });

    test('typing is told and has no place in the stream', async () => {
      const { offset } = await adas.history({ limit: 0 });
      await bo.rpc('typing.set', { room: room.id, on: true });
      const event = await adas.events.next(({ data }) => data.type === 'typing', 'typing');
      assert.deepEqual([event.offset, event.data.user, event.data.on], [0, bo.user.id, true]);
      assert.equal((await adas.history({ limit: 0 })).offset, offset);
    });

    test('a mention and the read cursor reach every device of a user', async () => {
      const { status, body } = await post(server.port, 'sessions',
        { name: bo.user.name, password: `${bo.user.name}'s password` });
      assert.equal(status, 201);
      const tablet = await Person.connect(body, server.port, format);
      const sent = await ada.rpc('message.send', { room: room.id, key: 'm', body: `look, @${bo.user.name}` });
      for (const device of [bo, tablet]) {
        const { data } = await device.own.next(({ data }) => data.type === 'mention', 'mention');
        assert.deepEqual([data.room, data.seq, data.user], [room.id, sent.seq, ada.user.id]);
      }
      const state = await tablet.rpc('read.set', { room: room.id, seq: sent.seq });
      assert.deepEqual(state, { read_seq: sent.seq, unread: 0, mentions: 0 });
      const { data } = await bo.own.next(({ data }) => data.type === 'read', 'read');
      assert.deepEqual([data.room, data.read_seq, data.unread], [room.id, sent.seq, 0]);
      tablet.close();
    });

    test('a device that is signed out loses its connection for good', async () => {
      const { body } = await post(server.port, 'sessions',
        { name: bo.user.name, password: `${bo.user.name}'s password`, device: 'lost phone' });
      const phone = await Person.connect(body, server.port, format);
      const { devices } = await bo.rpc('devices.list');
      const lost = devices.find(({ label }) => label === 'lost phone');
      assert.equal(lost.current, false);
      await bo.rpc('devices.revoke', { id: lost.id });
      assert.equal((await phone.lives('disconnected')).code, 3500);
      const again = new Person(body, server.port, format);
      again.client.connect();
      assert.equal((await again.lives('disconnected')).code, 3500);
    });

    test('who is removed from a room is told and hears no more of it', async () => {
      const carl = await Person.connect(await signUp(server, `carl.${format}`), server.port, format);
      const invite = await ada.rpc('invite.create', { room: room.id });
      await carl.rpc('invite.accept', { code: invite.code });
      const carls = await carl.subscribe(channel);
      await ada.rpc('room.kick', { room: room.id, user: carl.user.id });
      const { data } = await carl.own.next(({ data }) => data.type === 'room_removed', 'room_removed');
      assert.deepEqual([data.room, data.reason], [room.id, 'kicked']);
      await carls.ended.next();
      await assert.rejects(carl.publish(channel, { body: 'still here?' }), { code: 103 });
      carl.close();
    });
  });
}
