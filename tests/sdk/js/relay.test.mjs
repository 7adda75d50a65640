// A backend publishes by the server API and its users listen by the official JavaScript SDK, unmodified, in both
// formats and by each transport: what Centrifugo's documentation promises of tokens, namespaces, history, recovery and
// presence.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, describe, test } from 'node:test';

import { Centrifuge as JsonCentrifuge } from 'centrifuge';
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf';
import { EventSource } from 'eventsource';
import WebSocket from 'ws';

import { Inbox } from './inbox.mjs';
import { Proxy } from './proxy.mjs';
import { Server } from './server.mjs';

const OPTIONS = { timeout: 60_000 };
const TRANSPORTS = [
  ['json', 'websocket'], ['protobuf', 'websocket'], ['json', 'http_stream'], ['protobuf', 'http_stream'], ['json', 'sse'],
];
const SECRET = 'a secret of the backend';
const KEY = 'an api key';
const HISTORY = { history_size: 100, history_ttl: '300s', force_recovery: true };
const SETTINGS = {
  client: { token: { hmac_secret_key: SECRET }, expired_close_delay: '0s', expired_sub_close_delay: '0s' },
  http_api: { key: KEY },
  uni_sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_websocket: { enabled: true },
  channel: {
    without_namespace: { allow_user_limited_channels: true },
    namespaces: [
      { name: 'news', allow_subscribe_for_client: true, allow_history_for_subscriber: true, ...HISTORY },
      {
        name: 'chat', allow_subscribe_for_client: true, allow_publish_for_subscriber: true,
        presence: true, join_leave: true, force_push_join_leave: true, allow_presence_for_subscriber: true,
      },
      { name: 'closed', ...HISTORY },
      {
        name: 'score', allow_subscribe_for_client: true, allowed_delta_types: ['fossil'], delta_publish: true, ...HISTORY,
      },
      { name: 'weather', allow_subscribe_for_client: true, allow_tags_filter: true, ...HISTORY },
      { name: 'latest', allow_subscribe_for_client: true, force_recovery_mode: 'cache', ...HISTORY },
    ],
  },
};

const base64url = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

function token(claims, secret = SECRET) {
  const signed = `${base64url({ alg: 'HS256', typ: 'JWT' })}.${base64url(claims)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

const inSeconds = (seconds) => Math.floor(Date.now() / 1000) + seconds;

/** Calls the server API; returns what it answers. */
async function api(server, method, params, key = KEY) {
  const response = await fetch(`http://127.0.0.1:${server.port}/api/${method}`, {
    method: 'POST', headers: { 'X-API-Key': key }, body: JSON.stringify(params),
  });
  return response.status === 200 ? response.json() : { status: response.status };
}

class Client {
  life = new Inbox('connection');
  /** Publications of subscriptions that the server made. */
  pushed = new Inbox('server-side publications');

  constructor(port, [format, transport], options) {
    this.format = format;
    const Centrifuge = format === 'json' ? JsonCentrifuge : ProtobufCentrifuge;
    const scheme = transport === 'websocket' ? 'ws' : 'http';
    this.client = new Centrifuge([{ transport, endpoint: `${scheme}://127.0.0.1:${port}/connection/${transport}` }], {
      websocket: WebSocket, eventsource: EventSource, emulationEndpoint: `http://127.0.0.1:${port}/emulation`,
      minReconnectDelay: 20, maxReconnectDelay: 200, ...options,
    });
    for (const event of ['connected', 'disconnected', 'subscribed', 'unsubscribed']) {
      this.client.on(event, (context) => this.life.put([event, context]));
    }
    this.client.on('publication', (it) => this.pushed.put({ ...it, data: this.decode(it.data) }));
    this.client.connect();
  }

  async lives(event) {
    const [, context] = await this.life.next(([name]) => name === event, event);
    return context;
  }

  decode(value) {
    return this.format === 'json' ? value : JSON.parse(new TextDecoder().decode(value));
  }

  encode(value) {
    return this.format === 'json' ? value : new TextEncoder().encode(JSON.stringify(value));
  }

  subscribe(channel, options = {}) {
    const subscription = this.client.newSubscription(channel, options);
    const seen = new Inbox(channel);
    for (const event of ['subscribed', 'unsubscribed', 'error', 'join', 'leave']) {
      subscription.on(event, (context) => seen.put([event, context]));
    }
    subscription.on('publication', (it) => seen.put(['publication', { ...it, data: this.decode(it.data) }]));
    subscription.subscribe();
    const next = async (event) => (await seen.next(([name]) => name === event, event))[1];
    const publications = async (count) => {
      const items = [];
      while (items.length < count) items.push((await next('publication')).data);
      return items;
    };
    return { subscription, next, publications };
  }
}

for (const way of TRANSPORTS) {
  describe(`a relay in ${way.join(' by ')}`, OPTIONS, () => {
    let server, proxy;
    const clients = [];
    const connect = async (claims, port = server.port, options = {}) => {
      const client = new Client(port, way, { token: token(claims), ...options });
      clients.push(client);
      client.connected = await client.lives('connected');
      return client;
    };

    before(async () => {
      server = await Server.startRelay(SETTINGS);
      proxy = await Proxy.start(server);
    });

    after(async () => {
      for (const { client } of clients) client.disconnect();
      await proxy?.stop();
      await server?.stop();
    });

    test('what a backend publishes reaches who is subscribed, in order and once', async () => {
      const ada = await connect({ sub: 'ada' });
      const { next, publications } = ada.subscribe('news:today');
      assert.equal((await next('subscribed')).recoverable, true);
      for (let number = 1; number <= 50; number += 1) {
        const { result } = await api(server, 'publish', { channel: 'news:today', data: { number } });
        assert.equal(result.offset, number);
      }
      assert.deepEqual((await publications(50)).map(({ number }) => number),
        Array.from({ length: 50 }, (_, index) => index + 1));
    });

    test('who was away gets what it missed, once', async () => {
      const ada = await connect({ sub: 'ada' }, proxy.port);
      const { next, publications } = ada.subscribe('news:away');
      await next('subscribed');
      await api(server, 'publish', { channel: 'news:away', data: { number: 1 } });
      await publications(1);
      proxy.cut();
      for (const number of [2, 3]) await api(server, 'publish', { channel: 'news:away', data: { number } });
      proxy.restore();
      const again = await next('subscribed');
      assert.equal(again.wasRecovering && again.recovered, true);
      await api(server, 'publish', { channel: 'news:away', data: { number: 4 } });
      assert.deepEqual(await publications(3), [{ number: 2 }, { number: 3 }, { number: 4 }]);
    });

    test('history is paged from a position', async () => {
      const ada = await connect({ sub: 'ada' });
      const { subscription, next } = ada.subscribe('news:pages');
      await next('subscribed');
      for (const number of [1, 2, 3]) await api(server, 'publish', { channel: 'news:pages', data: number });
      const first = await subscription.history({ limit: 2 });
      assert.deepEqual(first.publications.map(({ data }) => ada.decode(data)), [1, 2]);
      const since = { offset: 2, epoch: first.epoch };
      const second = await subscription.history({ limit: 10, since });
      assert.deepEqual(second.publications.map(({ data }) => ada.decode(data)), [3]);
      await assert.rejects(subscription.history({ limit: 1, since: { offset: 2, epoch: 'other' } }), { code: 112 });
      const removed = await api(server, 'history_remove', { channel: 'news:pages' });
      assert.deepEqual(removed, { result: {} });
      assert.equal((await subscription.history({ limit: 10 })).publications.length, 0);
    });

    test('the newest publication is enough where the namespace says so', async () => {
      const ada = await connect({ sub: 'ada' });
      for (const number of [1, 2]) await api(server, 'publish', { channel: 'latest:price', data: number });
      const { next, publications } = ada.subscribe('latest:price', { since: { offset: 0, epoch: '' } });
      assert.equal((await next('subscribed')).recovered, true);
      assert.deepEqual(await publications(1), [2]);
    });

    test('who asks for deltas gets what has changed, and reads the whole', async () => {
      const names = Array.from({ length: 70 }, (_, number) => [`player ${number} \u{1f3c0}`, `team ${number * 7919}`]);
      const document = (points) => ({ points, ...Object.fromEntries(names) });
      const publish = (points) => api(server, 'publish', { channel: 'score:final', data: document(points) });
      const ada = await connect({ sub: 'ada' }, proxy.port);
      const { subscription, next, publications } = ada.subscribe('score:final', { delta: 'fossil' });
      await next('subscribed');
      const plain = (await connect({ sub: 'bo' })).subscribe('score:final');
      await plain.next('subscribed');
      for (let points = 1; points <= 30; points += 1) await publish(points);
      const all = Array.from({ length: 30 }, (_, index) => document(index + 1));
      assert.deepEqual(await publications(30), all);
      assert.deepEqual(await plain.publications(30), all);
      const stats = subscription.deltaStats();
      assert.equal(stats.numDeltaPayloads, 29);
      assert.ok(stats.compressionRatio > 0.9, JSON.stringify(stats));
      proxy.cut();
      await publish(31);
      proxy.restore();
      await publish(32);
      assert.deepEqual(await publications(2), [document(31), document(32)]);
      await publish(33);
      assert.deepEqual(await publications(1), [document(33)]);
    });

    test('a filter by tags holds back what is not wanted, also of what was missed', async () => {
      const publish = (number, city, degrees) =>
        api(server, 'publish', { channel: 'weather:x', data: number, tags: { city, degrees } });
      const ada = await connect({ sub: 'ada' }, proxy.port);
      const warm = { key: 'degrees', cmp: 'gte', val: '20' };
      const tagsFilter = { op: 'and', nodes: [{ key: 'city', cmp: 'in', vals: ['Oslo', 'Rome'] }, warm] };
      const { subscription, next, publications } = ada.subscribe('weather:x', { tagsFilter });
      await next('subscribed');
      await publish(1, 'Oslo', '9.5');
      await publish(2, 'Oslo', '20.0');
      await publish(3, 'Bern', '25');
      await publish(4, 'Rome', '30');
      assert.deepEqual(await publications(2), [2, 4]);
      proxy.cut();
      await publish(5, 'Bern', '30');
      await publish(6, 'Rome', '21');
      await publish(7, 'Rome', '2');
      proxy.restore();
      const again = await next('subscribed');
      assert.equal(again.wasRecovering && again.recovered, true);
      assert.deepEqual(await publications(1), [6]);
      subscription.unsubscribe();
      await next('unsubscribed');
      subscription.setTagsFilter({ key: 'city', cmp: 'like', val: 'O' });
      subscription.subscribe();
      const { code, reason } = await next('unsubscribed');
      assert.equal(code, 107);
      assert.ok(reason.includes('like'), reason);
    });

    test('users publish, and see who comes and goes', async () => {
      const ada = await connect({ sub: 'ada', info: { name: 'Ada' } });
      const adas = ada.subscribe('chat:tea');
      await adas.next('subscribed');
      assert.equal((await adas.next('join')).info.user, 'ada');
      const bo = await connect({ sub: 'bo' });
      const bos = bo.subscribe('chat:tea');
      await bos.next('subscribed');
      assert.equal((await adas.next('join')).info.user, 'bo');
      await adas.subscription.publish(ada.encode({ text: 'hello' }));
      const heard = await bos.next('publication');
      assert.deepEqual([heard.data, heard.info.user], [{ text: 'hello' }, 'ada']);
      const { clients } = await bos.subscription.presence();
      assert.deepEqual(Object.values(clients).map(({ user }) => user).sort(), ['ada', 'bo']);
      const present = await api(server, 'presence', { channel: 'chat:tea' });
      const infos = Object.values(present.result.presence).map(({ conn_info: info }) => info);
      assert.ok(infos.some((info) => info?.name === 'Ada'), JSON.stringify(present));
      bo.client.disconnect();
      assert.equal((await adas.next('leave')).info.user, 'bo');
      assert.deepEqual(await adas.subscription.presenceStats(), { numClients: 1, numUsers: 1 });
    });

    test('a namespace without permission is opened by a subscription token only', async () => {
      const ada = await connect({ sub: 'ada' });
      const denied = ada.subscribe('closed:plans');
      assert.equal((await denied.next('unsubscribed')).code, 103);
      ada.client.removeSubscription(denied.subscription);
      const forAda = { sub: 'ada', channel: 'closed:plans' };
      for (const wrong of [token({ ...forAda, sub: 'bo' }), token({ ...forAda, channel: 'closed:other' }),
        token(forAda, 'a guess')]) {
        const { subscription, next } = ada.subscribe('closed:plans', { token: wrong });
        assert.equal((await next('unsubscribed')).code, 103);
        ada.client.removeSubscription(subscription);
      }
      await ada.subscribe('closed:plans', { token: token(forAda) }).next('subscribed');
    });

    test('a channel that names its users is closed to all others', async () => {
      const ada = await connect({ sub: 'ada' });
      await ada.subscribe('dialog#ada,bo').next('subscribed');
      assert.equal((await ada.subscribe('dialog#bo,cy').next('unsubscribed')).code, 103);
      assert.equal((await ada.subscribe('nowhere:x').next('unsubscribed')).code, 102);
    });

    test('a token that has expired is renewed without a word to the user', async () => {
      let asked = 0;
      const getToken = async () => token({ sub: 'ada', exp: inSeconds((asked += 1) === 1 ? 2 : 600) });
      const ada = await connect({ sub: 'ada', exp: 1 }, server.port, { getToken });
      const { next, publications } = ada.subscribe('news:renewed');
      await next('subscribed');
      while (asked < 2) await new Promise((resolve) => setTimeout(resolve, 20));
      await api(server, 'publish', { channel: 'news:renewed', data: 'still here' });
      assert.deepEqual(await publications(1), ['still here']);
    });

    test('a subscription that is not renewed ends, and is made again with a new token', async () => {
      const ada = await connect({ sub: 'ada' });
      const claims = (seconds) => ({ sub: 'ada', channel: 'closed:short', exp: inSeconds(seconds) });
      const getToken = async () => token(claims(600));
      const { next, publications } = ada.subscribe('closed:short', { token: token(claims(1)), getToken });
      await next('subscribed');
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      await api(server, 'publish', { channel: 'closed:short', data: 1 });
      assert.deepEqual(await publications(1), [1]);
    });

    test('a forged token and none are refused', async () => {
      for (const [bad, code] of [[token({ sub: 'ada' }, 'a guess'), 3500], ['', 3501]]) {
        const client = new Client(server.port, way, { token: bad });
        clients.push(client);
        assert.equal((await client.lives('disconnected')).code, code);
      }
    });

    test('a token subscribes its connection, and the backend does and undoes it', async () => {
      const ada = await connect({ sub: 'ada', channels: ['news:personal'] });
      assert.equal((await ada.lives('subscribed')).channel, 'news:personal');
      await api(server, 'publish', { channel: 'news:personal', data: 1 });
      assert.equal((await ada.pushed.next()).data, 1);
      await api(server, 'subscribe', { user: 'ada', channel: 'chat:by-server', client: ada.connected.client });
      assert.equal((await ada.lives('subscribed')).channel, 'chat:by-server');
      await api(server, 'publish', { channel: 'chat:by-server', data: 2 });
      assert.equal((await ada.pushed.next()).data, 2);
      await api(server, 'unsubscribe', { user: 'ada', channel: 'chat:by-server', client: ada.connected.client });
      assert.equal((await ada.lives('unsubscribed')).channel, 'chat:by-server');
    });

    test('the backend ends connections with its own code and reason', async () => {
      const cy = await connect({ sub: 'cy' });
      const disconnect = { code: 4501, reason: 'account closed' };
      assert.deepEqual(await api(server, 'disconnect', { user: 'cy', disconnect }), { result: {} });
      const { code, reason } = await cy.lives('disconnected');
      assert.deepEqual({ code, reason }, disconnect);
    });

    test('the same idempotency key publishes once', async () => {
      const publish = () => api(server, 'publish', { channel: 'news:keys', data: 1, idempotency_key: 'k' });
      assert.deepEqual(await publish(), await publish());
      const page = await api(server, 'history', { channel: 'news:keys', limit: 10 });
      assert.equal(page.result.publications.length, 1);
    });

    test('a broadcast answers for each channel, a batch for each command', async () => {
      const channels = ['news:b1', 'nowhere:b2', 'chat:b3'];
      const { result } = await api(server, 'broadcast', { channels, data: 'all' });
      assert.equal(result.responses[0].result.offset, 1);
      assert.equal(result.responses[1].error.code, 102);
      assert.deepEqual(result.responses[2], { result: {} });
      const commands = [{ publish: { channel: 'news:b1', data: 2 } }, { nothing: {} }];
      for (const parallel of [false, true]) {
        const { replies } = await api(server, 'batch', { commands, parallel });
        assert.ok(replies[0].publish.offset > 1);
        assert.equal(replies[1].error.code, 104);
      }
    });

    test('bad requests of a backend are refused by name', async () => {
      assert.deepEqual(await api(server, 'publish', { channel: 'news:x', data: 1 }, 'guess'), { status: 401 });
      const refusals = [
        ['publish', { channel: 'news:x' }, 107, 'data'],
        ['publish', { data: 1 }, 107, 'channel'],
        ['publish', { channel: 'nowhere:x', data: 1 }, 102, 'nowhere'],
        ['publish', { channel: 'news:x', b64data: '!' }, 107, 'b64data'],
        ['broadcast', { channels: [], data: 1 }, 107, 'channels'],
        ['disconnect', { user: 'x', disconnect: { code: 1 } }, 107, 'disconnect.code'],
        ['presence', { channel: 'news:x' }, 108, ''],
        ['nothing', {}, 104, 'nothing'],
      ];
      for (const [method, params, code, word] of refusals) {
        const { error } = await api(server, method, params);
        assert.equal(error?.code, code, method);
        assert.ok(error.message.includes(word), error.message);
      }
    });
  });
}

describe('a relay without an SDK', OPTIONS, () => {
  let server;
  const connect = (claims) => JSON.stringify({ token: token(claims) });
  const claims = { sub: 'ada', channels: ['closed:x'] };

  before(async () => { server = await Server.startRelay(SETTINGS); });
  after(() => server?.stop());

  /** What a page is told, each way of listening as a browser has it. */
  const WAYS = {
    EventSource(url, told) {
      const source = new EventSource(`${url}/connection/uni_sse?cf_connect=${encodeURIComponent(connect(claims))}`);
      source.onmessage = ({ data }) => told.put(JSON.parse(data));
      return () => source.close();
    },
    fetch(url, told) {
      const over = new AbortController();
      const listen = async () => {
        const response = await fetch(`${url}/connection/uni_http_stream`, {
          method: 'POST', body: connect(claims), signal: over.signal,
        });
        let text = '';
        for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
          const lines = (text + chunk).split('\n');
          text = lines.pop();
          for (const line of lines) told.put(JSON.parse(line));
        }
      };
      listen().catch(() => {});
      return () => over.abort();
    },
    WebSocket(url, told) {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/connection/uni_websocket`);
      socket.onopen = () => socket.send(connect(claims));
      socket.onmessage = ({ data }) => told.put(JSON.parse(data));
      return () => socket.close();
    },
  };

  for (const [way, listen] of Object.entries(WAYS)) {
    test(`a page listens by ${way}`, async () => {
      const told = new Inbox(way);
      const stop = listen(`http://127.0.0.1:${server.port}`, told);
      const { connect: opened } = await told.next(({ connect: it }) => it, 'connect');
      assert.deepEqual(Object.keys(opened.subs), ['closed:x']);
      for (const number of [1, 2]) await api(server, 'publish', { channel: 'closed:x', data: { number } });
      for (const number of [1, 2]) {
        const { channel, pub } = await told.next(({ pub: it }) => it, 'a publication');
        assert.deepEqual([channel, pub.data], ['closed:x', { number }]);
      }
      await api(server, 'disconnect', { user: 'ada', disconnect: { code: 4501, reason: 'enough' } });
      const { disconnect } = await told.next(({ disconnect: it }) => it, 'disconnect');
      assert.deepEqual([disconnect.code, disconnect.reason], [4501, 'enough']);
      stop();
    });
  }
});
