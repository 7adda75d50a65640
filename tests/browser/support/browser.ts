//! Debian's Chromium, headless. Installed on the spot where the system allows it; otherwise one line says what is missing.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

import { chromium, type Browser } from 'playwright-core';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

export async function launchBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) install();
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

function install(): void {
  try {
    execFileSync('apt-get', ['install', '--yes', '--no-install-recommends', 'chromium', 'fonts-noto-core', 'fonts-noto-color-emoji'], { stdio: 'ignore' });
  } catch {
    throw new Error('Chromium is missing: install the package `chromium`, or set CHROMIUM to a browser');
  }
}
