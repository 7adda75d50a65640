//! How the client is built: hashed files only, nothing inline, so that the strictest content security policy holds.

import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

const server = process.env['FOLKMOOT_URL'] ?? 'http://127.0.0.1:8000';

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // Data URLs and inline scripts would need exceptions in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/api': server,
      '/connection': { target: server, ws: true },
    },
  },
});
