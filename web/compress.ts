//! Names every built file that the client may need later, for its worker to keep at hand, and packs every built file that
//! shrinks, once and as small as it gets: the server answers with the packed file and never compresses while somebody waits.

import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

import type { Plugin } from 'vite';

/** Pictures are packed already; these are text. */
const TEXT = /\.(?:js|css|html|svg|json|webmanifest)$/;
/** What only administrators open is fetched when it is wanted. */
const NOT_KEPT = /^assets\/(?:AdminPage|administration|SetupPage|ResetPage)-/;
/** The client, the chat and what formats it, whatever they weigh. */
const KEPT = /^assets\/(?:client|chat|markdown)-/;
/** So are lists of emoji and colours for code: they are large, and a journey does without. */
const KEPT_BYTES_MAX = 64 * 1024;
/** Below this the headers of the answer weigh more than what is saved. */
const BYTES_MIN = 512;

const brotli = promisify(brotliCompress);
const gzipped = promisify(gzip);

export function compress(): Plugin {
  let folder = '';
  return {
    name: 'compress',
    apply: 'build',
    configResolved(config) {
      folder = path.resolve(config.root, config.build.outDir);
    },
    async closeBundle() {
      const names = await readdir(folder, { recursive: true });
      const parts = names.filter((name) => /^assets\/.*\.(?:js|css)$/.test(name) && !NOT_KEPT.test(name));
      const sizes = await Promise.all(parts.map(async (name) => (await stat(path.join(folder, name))).size));
      const kept = parts.filter((name, index) => KEPT.test(name) || (sizes[index] ?? 0) <= KEPT_BYTES_MAX);
      await writeFile(path.join(folder, 'offline.json'), JSON.stringify(kept.map((name) => `/${name}`)));
      await Promise.all([...names, 'offline.json'].filter((name) => TEXT.test(name)).map((name) => pack(path.join(folder, name))));
    },
  };
}

async function pack(file: string): Promise<void> {
  const content = await readFile(file);
  if (content.length < BYTES_MIN) return;
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  await writeFile(`${file}.br`, await brotli(content, { params }));
  await writeFile(`${file}.gz`, await gzipped(content, { level: 9 }));
}
