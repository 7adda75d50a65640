//! Unit tests of the pure parts. What needs a page is tested in a real browser, under tests/browser.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
