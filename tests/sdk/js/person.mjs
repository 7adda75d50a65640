// A person with an account and one connection by the official SDK, in either format. Payloads are JSON in both;
// the protobuf build hands them over as bytes.

import { Centrifuge as JsonCentrifuge } from 'centrifuge';
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf';
import WebSocket from 'ws';

import { Inbox } from './inbox.mjs';

export const FORMATS = ['json', 'protobuf'];

// Node 20 once closed what a file of tests had left for ever. Ended like this it closes nothing; the report is out by then.
process.on('beforeExit', () => setImmediate(() => process.exit()));

/** `count` different texts that say their place. */
export const numbered = (word, count) => Array.from({ length: count }, (_, index) => `${word} ${index}`);

export async function post(port, path, body) {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

/** Signs a new account up over HTTP. */
export async function signUp(server, name) {
  const { status, body } = await post(server.port, 'accounts', { name, password: `${name}'s password`, device: 'test' });
  if (status !== 201) throw new Error(`sign-up of ${name}: ${status} ${JSON.stringify(body)}`);
  return body;
}

export class Person {
  /** What happened to the connection: `[event, context]`. */
  life = new Inbox('connection');
  /** Publications of the user's own stream. */
  own = new Inbox('own stream');
  /** Contexts of the user's own stream's subscriptions. */
  ownSubscribed = new Inbox('own subscriptions');

  constructor(account, port, format, token = account.token) {
    this.user = account.user;
    this.format = format;
    const Centrifuge = format === 'json' ? JsonCentrifuge : ProtobufCentrifuge;
    this.client = new Centrifuge(`ws://127.0.0.1:${port}/connection/websocket`, {
      token,
      websocket: WebSocket,
      name: 'sdk-test',
      minReconnectDelay: 20,
      maxReconnectDelay: 200,
    });
    for (const event of ['connecting', 'connected', 'disconnected']) {
      this.client.on(event, (context) => this.life.put([event, context]));
    }
    this.client.on('subscribed', (context) => this.ownSubscribed.put(context));
    this.client.on('publication', (context) => this.own.put({ ...context, data: this.#decode(context.data) }));
  }

  static async connect(account, port, format) {
    const person = new Person(account, port, format);
    person.client.connect();
    await person.lives('connected');
    return person;
  }

  /** The context of the next connection event of this name; others are skipped. */
  async lives(event) {
    const [, context] = await this.life.next(([name]) => name === event, event);
    return context;
  }

  #encode(value) {
    return this.format === 'json' ? value : new TextEncoder().encode(JSON.stringify(value));
  }

  #decode(value) {
    return this.format === 'json' ? value : JSON.parse(new TextDecoder().decode(value));
  }

  async rpc(method, data = {}) {
    return this.#decode((await this.client.rpc(method, this.#encode(data))).data);
  }

  /** Subscribes to a channel; resolves once subscribed. */
  async subscribe(channel, options = {}) {
    const subscription = this.client.newSubscription(channel, options);
    const stream = {
      events: new Inbox(channel),
      comings: new Inbox(`${channel} comings`),
      subscribed: new Inbox(`${channel} subscriptions`),
      ended: new Inbox(`${channel} ends`),
      publish: (data) => subscription.publish(this.#encode(data)),
      history: async (options) => {
        const page = await subscription.history(options);
        return { ...page, events: page.publications.map((it) => ({ offset: it.offset, ...this.#decode(it.data) })) };
      },
      presence: async () => (await subscription.presence()).clients,
      presenceStats: () => subscription.presenceStats(),
      connInfo: (info) => this.#decode(info.connInfo),
      unsubscribe: () => subscription.unsubscribe(),
    };
    subscription.on('publication', (context) => {
      stream.events.put({ offset: context.offset ?? 0, data: this.#decode(context.data) });
    });
    for (const event of ['join', 'leave']) {
      subscription.on(event, ({ info }) => stream.comings.put([event, info.client, this.#decode(info.connInfo).name]));
    }
    subscription.on('subscribed', (context) => stream.subscribed.put(context));
    subscription.on('unsubscribed', (context) => stream.ended.put(context));
    subscription.subscribe();
    await subscription.ready(5_000);
    return stream;
  }

  /** Publishes to a channel without being subscribed to it. */
  publish(channel, data) {
    return this.client.publish(channel, this.#encode(data));
  }

  close() {
    this.client.disconnect();
  }
}

/** Two people in one room, connected in `format`; `second` connects through `port`. */
export async function twoInARoom(server, format, port = server.port) {
  const unique = `${format}${Math.random().toString(36).slice(2, 8)}`;
  const ada = await Person.connect(await signUp(server, `ada.${unique}`), server.port, format);
  const bo = await Person.connect(await signUp(server, `bo.${unique}`), port, format);
  const room = await ada.rpc('room.create', { name: 'Tea' });
  const invite = await ada.rpc('invite.create', { room: room.id });
  await bo.rpc('invite.accept', { code: invite.code });
  return { ada, bo, room, channel: `room:${room.id}` };
}
