//! Two files at a time, each with a server and a browser of its own; then, alone, those that measure.

import { defineConfig } from 'vitest/config';

// A test that fails is run once more, and the report says so: Chromium paints in software,
// beside another one and two servers.
const patience = { testTimeout: 120_000, hookTimeout: 180_000, retry: 1 };

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
