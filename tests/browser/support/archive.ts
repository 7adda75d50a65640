//! What a browser keeps of rooms for reading offline, as a test sees it: by looking into the page's own database.

import type { Person } from './person';

/** Every room that is kept, as the text of its record. */
export function archivedRooms({ page }: Person): Promise<string[]> {
  return page.evaluate(async () => {
    const kept: string[] = [];
    for (const { name } of await indexedDB.databases()) {
      const rooms = await new Promise<unknown[]>((resolve, reject) => {
        const opening = indexedDB.open(name ?? '');
        opening.onerror = () => reject(new Error('no archive'));
        opening.onsuccess = () => {
          const reading = opening.result.transaction('rooms').objectStore('rooms').getAll();
          reading.onsuccess = () => resolve(reading.result);
          opening.result.close();
        };
      });
      for (const room of rooms) kept.push(JSON.stringify(room));
    }
    return kept;
  });
}
