//! How the client is built: hashed files only, nothing inline, so that the strictest content security policy holds.

import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

import { compress } from './compress';
import { emoji } from './emoji';
import { inFiles, preload } from './preload';

const server = process.env['FOLKMOOT_URL'] ?? 'http://127.0.0.1:8000';

export default defineConfig({
  plugins: [svelte(), emoji(), preload(), compress()],
  build: {
    target: 'es2022',
    // Data URLs and inline scripts would need exceptions in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { index: 'index.html', service_worker: 'src/service_worker.ts' },
      output: {
        codeSplitting: inFiles,
        // A worker rules the addresses beside it: it has to stand at the root, under a name that stays.
        entryFileNames: (chunk) => (chunk.name === 'service_worker' ? '[name].js' : 'assets/[name]-[hash].js'),
      },
    },
  },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/api': server,
      '/connection': { target: server, ws: true },
    },
  },
});
