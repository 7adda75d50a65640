//! Packs every built file that shrinks, once and as small as it gets: the server answers with the packed file and never
//! compresses while somebody waits.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

import type { Plugin } from 'vite';

/** Pictures are packed already; these are text. */
const TEXT = /\.(?:js|css|html|svg|json|webmanifest)$/;
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
      await Promise.all(names.filter((name) => TEXT.test(name)).map((name) => pack(path.join(folder, name))));
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
