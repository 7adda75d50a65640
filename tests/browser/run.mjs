//! Runs the files of tests; those that fail are run once more, alone, each from its beginning with a
//! server and a browser of its own, and the last lines say which. Chromium paints in software here:
//! beside another one and two servers a page may be slower than people's patience. What fails alone
//! as well has failed.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** More than this many are no bad luck. */
const AGAIN_MAX = 3;

/** A run that takes longer hangs: twice what all files take beside the tests of the SDKs, in milliseconds. */
const RUN_MAX = 20 * 60_000;

/** Runs vitest; returns its exit code and the files in which something failed. */
function run(args) {
  const directory = mkdtempSync(path.join(tmpdir(), 'browser-tests-'));
  const report = path.join(directory, 'report.json');
  const vitest = path.join(import.meta.dirname, 'node_modules/vitest/vitest.mjs');
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--reporter=default', '--reporter=json', `--outputFile=${report}`, ...args], {
    cwd: import.meta.dirname,
    stdio: 'inherit',
    timeout: RUN_MAX,
    killSignal: 'SIGKILL',
  });
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
    const failed = testResults.filter(({ status: of }) => of === 'failed').map(({ name }) => path.relative(import.meta.dirname, name));
    return { status: status ?? 1, failed };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const first = run(process.argv.slice(2));
if (first.status === 0) process.exit(0);
if (first.failed.length === 0 || first.failed.length > AGAIN_MAX) process.exit(first.status);
console.log(`\nonce more, alone: ${first.failed.join(', ')}\n`);
const again = run([...first.failed, '--maxWorkers=1']);
if (again.status === 0) console.log(`\nfailed beside others and passed alone: ${first.failed.join(', ')}`);
process.exit(again.status);
