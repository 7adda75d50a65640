//! Several nodes of one server, as `make cluster` starts them, and an address before them, as a balancer has one: who
//! connects to it comes to the first node that answers.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';

import { binary } from './server';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const START_MS_MAX = 120_000;
const LOOK_EVERY_MS = 250;

export class Nodes {
  readonly #script: ChildProcess;
  readonly #ports: readonly number[];
  readonly #balancers: net.Server[] = [];

  private constructor(script: ChildProcess, ports: readonly number[]) {
    this.#script = script;
    this.#ports = ports;
  }

  /** Starts so many, with a PostgreSQL of their own, and waits until each serves. */
  static async start(count: number): Promise<Nodes> {
    const first = await freePorts(count);
    const ports = Array.from({ length: count }, (_, index) => first + index);
    const script = spawn(path.join(ROOT, 'deploy/cluster'), {
      // A group of its own, so that all of it can be ended.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, FOLKMOOT: binary(), N: String(count), PORT: String(first), STORE: '', DATA: '', FOLKMOOT_MESSAGES_PER_SECOND: '0' },
    });
    const nodes = new Nodes(script, ports);
    for (let number = 1; number <= count; number += 1) await nodes.serves(number);
    return nodes;
  }

  /** An address that leads to node `preferred` while that one answers, and to another one otherwise. */
  async balancer(preferred: number): Promise<string> {
    const at = preferred - 1;
    const order = [...this.#ports.slice(at), ...this.#ports.slice(0, at)];
    const server = net.createServer((client) => void lead(client, order));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#balancers.push(server);
    return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  }

  /** The machine of a node loses power; another process of that name starts soon. */
  kill(number: number): void {
    const pids = execFileSync('pgrep', ['-f', '--', `--listen 127.0.0.1:${this.#port(number)} `], { encoding: 'utf8' });
    for (const pid of pids.trim().split('\n')) process.kill(Number(pid), 'SIGKILL');
  }

  /** Resolves once a node answers. */
  async serves(number: number): Promise<void> {
    for (const until = Date.now() + START_MS_MAX; Date.now() < until; ) {
      if (this.#script.exitCode !== null) throw new Error(`the nodes have ended with ${this.#script.exitCode}`);
      const answer = await fetch(`http://127.0.0.1:${this.#port(number)}/healthz`).catch(() => undefined);
      if (answer?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
    throw new Error(`node ${number} does not answer`);
  }

  async stop(): Promise<void> {
    for (const balancer of this.#balancers) balancer.close();
    if (this.#script.exitCode !== null || this.#script.pid === undefined) return;
    const ended = once(this.#script, 'exit');
    this.#script.kill('SIGTERM');
    await ended;
  }

  #port(number: number): number {
    const port = this.#ports[number - 1];
    if (port === undefined) throw new Error(`there is no node ${number}`);
    return port;
  }
}

/** Hands a connection to the first of these ports that takes it. */
async function lead(client: net.Socket, order: readonly number[]): Promise<void> {
  client.on('error', () => client.destroy());
  for (const port of order) {
    const node = net.connect(port, '127.0.0.1');
    const taken = await new Promise<boolean>((resolve) => {
      node.once('connect', () => resolve(true));
      node.once('error', () => resolve(false));
    });
    if (!taken) continue;
    node.on('error', () => client.destroy());
    node.on('close', () => client.destroy());
    client.on('close', () => node.destroy());
    client.pipe(node).pipe(client);
    return;
  }
  client.destroy();
}

/** The first of so many ports in a row that nobody listens at. */
async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = 20_000 + Math.floor(Math.random() * 10_000);
    const tried = await Promise.all(Array.from({ length: count }, (_, index) => isFree(first + index)));
    if (tried.every(Boolean)) return first;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
