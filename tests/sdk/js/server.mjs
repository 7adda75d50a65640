// The real folkmoot binary on a free port with a data directory of its own. The address changes with every
// start; clients that must survive a restart go through a Proxy, whose address stays.

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const BINARY = process.env.FOLKMOOT_BINARY;
// A start replays the log; a cold machine needs a while, a broken server never says the line.
const START_MS_MAX = 20_000;

export class Server {
  #process;
  #exited;

  constructor(data, flags) {
    this.data = data;
    this.flags = flags;
  }

  static async start() {
    const data = await mkdtemp(join(tmpdir(), 'folkmoot-sdk-'));
    return Server.#launched(data, ['--listen', '127.0.0.1:0', '--data', data, '--messages-per-second', '0']);
  }

  /** A relay of another backend's channels, with these settings. */
  static async startRelay(settings) {
    const data = await mkdtemp(join(tmpdir(), 'folkmoot-relay-'));
    const file = join(data, 'relay.json');
    await writeFile(file, JSON.stringify(settings));
    return Server.#launched(data, ['relay', '--at', '127.0.0.1:0', '--settings', file]);
  }

  static async #launched(data, flags) {
    if (!BINARY) throw new Error('FOLKMOOT_BINARY must name the server; run tests/sdk/run');
    const server = new Server(data, flags);
    await server.launch();
    return server;
  }

  /** Starts the process on the data directory; resolves once it listens. */
  async launch() {
    const child = spawn(BINARY, this.flags, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#process = child;
    this.#exited = new Promise((resolve) => child.once('exit', resolve));
    const said = [];
    this.port = await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`no address after ${START_MS_MAX} ms:\n${said.join('\n')}`)),
        START_MS_MAX);
      child.once('exit', (code) => reject(new Error(`exited with ${code}:\n${said.join('\n')}`)));
      child.once('error', reject);
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on('line', (line) => {
          said.push(line);
          const address = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line);
          if (!address) return;
          clearTimeout(late);
          resolve(Number(address[1]));
        });
      }
    });
  }

  /** Ends the process, SIGKILL by default; resolves once it is gone. */
  async kill(signal = 'SIGKILL') {
    this.#process.kill(signal);
    await this.#exited;
  }

  async stop() {
    await this.kill();
    await rm(this.data, { recursive: true, force: true });
  }
}
