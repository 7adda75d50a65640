// What has arrived and not been looked at yet. Waiting is for an event, never for a time; the limit only turns
// a promise that is never kept into a failure that says what was missing.

const WAIT_MS_MAX = 20_000;

export class Inbox {
  #items = [];
  #waiting = [];

  constructor(name) {
    this.name = name;
  }

  put(item) {
    this.#items.push(item);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const retry of waiting) retry();
  }

  /** Takes the first item that fits, dropping those before it; waits for at most `waitMs`. */
  next(fits = () => true, wanted = 'an item', waitMs = WAIT_MS_MAX) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`${this.name}: no ${wanted} within ${waitMs} ms`)), waitMs);
      const attempt = () => {
        const index = this.#items.findIndex(fits);
        if (index < 0) return void this.#waiting.push(attempt);
        clearTimeout(late);
        const [item] = this.#items.splice(0, index + 1).slice(-1);
        resolve(item);
      };
      attempt();
    });
  }

  /** Takes the next `count` items, whatever they are. */
  async take(count) {
    const items = [];
    while (items.length < count) items.push(await this.next(() => true, `item ${items.length + 1} of ${count}`));
    return items;
  }

  /** What has arrived and was not taken. */
  get rest() {
    return [...this.#items];
  }
}
