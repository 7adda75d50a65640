// A TCP proxy between a client and the server, to do to the connection what networks do: cut it, keep it away,
// let it stall.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

export class Proxy {
  #listener = createServer({ pauseOnConnect: true }, (client) => this.#accept(client));
  #pairs = new Set();
  #open = true;

  /** Forwards to `target.port` as it is at the time of each connection. */
  static async start(target) {
    const proxy = new Proxy();
    proxy.target = target;
    proxy.#listener.listen(0, '127.0.0.1');
    await once(proxy.#listener, 'listening');
    proxy.port = proxy.#listener.address().port;
    return proxy;
  }

  #accept(client) {
    client.on('error', () => {});
    if (!this.#open) return void client.destroy();
    const server = connect(this.target.port, '127.0.0.1');
    const pair = { client, server };
    this.#pairs.add(pair);
    const end = () => {
      client.destroy();
      server.destroy();
      this.#pairs.delete(pair);
    };
    server.on('error', end).on('close', () => client.end());
    client.on('close', end);
    client.pipe(server, { end: false });
    server.pipe(client);
    client.resume();
  }

  /** Cuts every connection without a goodbye and refuses new ones until `restore`. */
  cut() {
    this.#open = false;
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  restore() {
    this.#open = true;
  }

  /** Stops reading what the server sends, as a client does that is too slow. */
  stall() {
    for (const { client, server } of this.#pairs) {
      server.unpipe(client);
      server.pause();
    }
  }

  /** Reads on. */
  resume() {
    for (const { client, server } of this.#pairs) server.pipe(client);
  }

  async stop() {
    this.cut();
    this.#listener.close();
    await once(this.#listener, 'close');
  }
}
