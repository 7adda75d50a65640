//! Two files at a time, each with a server and a browser of its own; then, alone, those that measure.

import { defineConfig } from 'vitest/config';

// A test leaves its people where it failed, so it is not tried again by itself: `run.mjs` runs the whole file again.
// What is looked for again and again has as long as what is waited for once.
const patience = { testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } } };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...patience,
          name: 'people',
          include: ['*.test.ts'],
          exclude: ['speed.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...patience, name: 'speed', include: ['speed.test.ts'], sequence: { groupOrder: 1 } } },
    ],
  },
});
