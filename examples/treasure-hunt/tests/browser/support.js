// The real server on a free port, bots to fill it, and Debian's Chromium to look at it.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { chromium } from 'playwright-core';

const ROOT = path.resolve(import.meta.dirname, '../../../..');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'];

/** Where to put the picture; without it the picture is taken and dropped. */
export const SCREENSHOT = process.env.SCREENSHOT;

function program() {
  const target = process.env.CARGO_TARGET_DIR ?? path.join(ROOT, 'target');
  const built = ['release', 'debug'].map((kind) => path.join(target, kind, 'treasure-hunt')).filter((file) => existsSync(file));
  const [found] = built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  if (!found) throw new Error('no treasure-hunt binary: run `cargo build -p treasure-hunt` first');
  return found;
}

/** A server; `stop` ends it and forgets its log. `restart` kills it without warning and starts it on the same address. */
export async function serve(...flags) {
  const data = await mkdtemp(path.join(tmpdir(), 'hunt-'));
  const server = { url: '', address: '127.0.0.1:0', process: null };
  const start = async () => {
    server.process = spawn(program(), ['serve', '--address', server.address, '--data', data, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface(server.process.stdout)) {
      server.url = line.slice(line.indexOf('http://'));
      server.address = new URL(server.url).host;
      return;
    }
    throw new Error('the server did not start');
  };
  const kill = () => new Promise((resolve) => {
    server.process.once('exit', resolve);
    server.process.kill('SIGKILL');
  });
  server.restart = async () => { await kill(); await start(); };
  server.stop = async () => { await kill(); await rm(data, { recursive: true, force: true }); };
  await start();
  return server;
}

/** Bots; resolves with the exit code of their run. */
export function play(address, ...flags) {
  const bots = spawn(program(), ['load', '--address', address, ...flags], { stdio: ['ignore', 'ignore', 'inherit'] });
  return new Promise((resolve) => bots.once('exit', resolve));
}

export async function launch() {
  if (!existsSync(CHROMIUM)) {
    try {
      execFileSync('apt-get', ['install', '--yes', '--no-install-recommends', 'chromium'], { stdio: 'ignore' });
    } catch {
      throw new Error('Chromium is missing: install the package `chromium`, or set CHROMIUM to a browser');
    }
  }
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}
