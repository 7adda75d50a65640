// Several nodes of one server over one PostgreSQL, as `make cluster` starts them, and an address before them, as a
// load balancer has one. A node that is killed is started again by the script.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';

import { Proxy } from './proxy.mjs';

const SCRIPT = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../../deploy/cluster');
// The first start makes the database; a machine that builds at the same time is slow.
const START_MS_MAX = 120_000;
const LOOK_EVERY_MS = 100;

export class Nodes {
  #script;
  #balancers = [];
  /** Numbers of the nodes that a balancer leads to. */
  #healthy = new Set();

  /** Starts so many nodes, numbered from 1, and waits until each serves. */
  static async start(count) {
    if (!process.env.FOLKMOOT_BINARY) throw new Error('FOLKMOOT_BINARY must name the server; run tests/sdk/run');
    const nodes = new Nodes();
    const first = await freePorts(count);
    nodes.ports = Array.from({ length: count }, (_, index) => first + index);
    nodes.#script = spawn(SCRIPT, {
      // A group of its own, so that all of it can be ended.
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...process.env, FOLKMOOT: process.env.FOLKMOOT_BINARY, N: String(count), PORT: String(first), STORE: '', DATA: '',
        FOLKMOOT_MESSAGES_PER_SECOND: '0',
      },
    });
    for (let number = 1; number <= count; number += 1) await nodes.serves(number);
    return nodes;
  }

  /** The port of node 1, for what any node answers. */
  get port() {
    return this.ports[0];
  }

  /** A proxy that leads to the node `preferred` while that one is healthy, and to the next one otherwise. */
  async balancer(preferred) {
    const inOrder = this.ports.map((_, index) => ((preferred - 1 + index) % this.ports.length) + 1);
    const chosen = () => inOrder.find((number) => this.#healthy.has(number)) ?? preferred;
    const portOf = (number) => this.ports[number - 1];
    const proxy = await Proxy.start({ get port() { return portOf(chosen()); } });
    this.#balancers.push(proxy);
    return proxy;
  }

  /** SIGKILL; the balancers lead elsewhere until it `serves` again. */
  kill(number) {
    this.#healthy.delete(number);
    const listening = `--listen 127.0.0.1:${this.ports[number - 1]} `;
    const pids = execFileSync('pgrep', ['-f', '--', listening], { encoding: 'utf8' });
    for (const pid of pids.trim().split('\n')) process.kill(Number(pid), 'SIGKILL');
  }

  /** Resolves once a node answers that it is ready. */
  async serves(number) {
    for (const until = Date.now() + START_MS_MAX; Date.now() < until;) {
      if (this.#script.exitCode !== null) throw new Error(`the nodes have ended with ${this.#script.exitCode}`);
      const answer = await fetch(`http://127.0.0.1:${this.ports[number - 1]}/healthz`).catch(() => undefined);
      if (answer?.ok) return void this.#healthy.add(number);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
    throw new Error(`node ${number} does not answer`);
  }

  async stop() {
    for (const balancer of this.#balancers) await balancer.stop();
    if (this.#script.exitCode !== null) return;
    const ended = once(this.#script, 'exit');
    this.#script.kill('SIGTERM');
    await ended;
  }
}

/** The first of so many ports in a row that nobody listens at. */
async function freePorts(count) {
  for (;;) {
    const first = 20_000 + Math.floor(Math.random() * 10_000);
    const tried = await Promise.all(Array.from({ length: count }, (_, index) => isFree(first + index)));
    if (tried.every(Boolean)) return first;
  }
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
