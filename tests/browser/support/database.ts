//! A real database of a test's own, started by the example `database` of the testkit.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { binary } from './server';

export class Database {
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(url: string, process: ChildProcess) {
    this.url = url;
    this.#process = process;
  }

  static async start(kind: 'postgres' | 'cassandra'): Promise<Database> {
    const program = path.join(path.dirname(binary()), 'examples/database');
    if (!existsSync(program)) throw new Error(`no ${program}: cargo build -p althing-testkit --features servers --example database`);
    const child = spawn(program, [kind], { stdio: ['pipe', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: child.stdout })) return new Database(line, child);
    throw new Error(`${kind} did not start`);
  }

  /** Ends it; nothing of it is left. */
  async stop(): Promise<void> {
    if (this.#process.exitCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await ended;
  }
}
