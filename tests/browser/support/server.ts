//! The real server binary with a data directory of its own, on a free port, killed and started again at will.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const START_MS_MAX = 30_000;
const LISTENING = /http:\/\/(127\.0\.0\.1:\d+)/;
const SETUP = /http:\S+\/setup#\S+/;

/** The binary named by FOLKMOOT_BINARY, else the one built last. */
export function binary(): string {
  const target = process.env['CARGO_TARGET_DIR'] ?? path.join(ROOT, 'target');
  const built = ['debug', 'release'].map((profile) => path.join(target, profile, 'folkmoot')).filter((file) => existsSync(file));
  const newest = built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
  const found = process.env['FOLKMOOT_BINARY'] ?? newest;
  if (found === undefined) throw new Error('no folkmoot binary: run `make test-browser`, or set FOLKMOOT_BINARY');
  return found;
}

export class Server {
  readonly data: string;
  #address = '127.0.0.1:0';
  #process: ChildProcess | undefined;
  #setup: Promise<string> | undefined;
  readonly #flags: readonly string[];

  private constructor(data: string, flags: readonly string[]) {
    this.data = data;
    this.#flags = flags;
  }

  static async start(...flags: string[]): Promise<Server> {
    const server = new Server(await mkdtemp(path.join(tmpdir(), 'folkmoot-')), flags);
    await server.run();
    return server;
  }

  get url(): string {
    return `http://${this.#address}`;
  }

  /** Starts it; after the first time on the same port as before. `more` flags count until it ends. */
  async run(...more: readonly string[]): Promise<void> {
    const child = spawn(binary(), ['--listen', this.#address, '--data', this.data, '--messages-per-second', '0', ...this.#flags, ...more], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, FOLKMOOT_LOG: 'info', NO_COLOR: '1' },
    });
    this.#process = child;
    this.#setup = wordOf(child, SETUP);
    // Only a test that needs the link waits for it; a server that is set up prints none.
    this.#setup.catch(() => undefined);
    const listening = await wordOf(child, LISTENING);
    this.#address = new URL(listening).host;
  }

  /** The link by which the first administrator is made. */
  async setupLink(): Promise<string> {
    if (!this.#setup) throw new Error('the server has not been started');
    return this.#setup;
  }

  /** The machine loses power: no goodbye, no flush. */
  async kill(): Promise<void> {
    await ended(this.#process, 'SIGKILL');
  }

  async stop(): Promise<void> {
    await ended(this.#process, 'SIGTERM');
    await rm(this.data, { recursive: true, force: true });
  }
}

/** The first text of this form that the server prints. */
function wordOf(child: ChildProcess, form: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    const timer = setTimeout(() => reject(new Error(`the server did not print ${form.source}:\n${lines.join('\n')}`)), START_MS_MAX).unref();
    const read = (line: string) => {
      lines.push(line);
      const word = form.exec(line)?.[0];
      if (word === undefined) return;
      clearTimeout(timer);
      resolve(word);
    };
    for (const stream of [child.stdout, child.stderr]) if (stream) createInterface({ input: stream }).on('line', read);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${lines.join('\n')}`)));
  });
}

function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill(signal);
  });
}
