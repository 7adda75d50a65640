//! Three files at a time, each with a server and a browser of its own; then, alone, those that measure.

import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Minutes long, because they wait: for a slow line, and for what a client asks once a minute. Begun first, they take no time from the others. */
const LONG = ['slow.test.ts', 'many_rooms.test.ts'];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((name) => moduleId.endsWith(`/${name}`));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

// A test leaves its people where it failed, so it is not tried again by itself: `run.mjs` runs the whole file again.
// What is looked for again and again has as long as what is waited for once.
const patience = { testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } } };

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          ...patience,
          name: 'people',
          include: ['*.test.ts'],
          exclude: ['speed.test.ts'],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...patience, name: 'speed', include: ['speed.test.ts'], sequence: { groupOrder: 1 } } },
    ],
  },
});
