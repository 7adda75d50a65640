//! A list that grows page by page and starts anew when the search changes. Answers that come after a newer question are
//! dropped.

export interface Fetched<Row, After> {
  rows: Row[];
  next: After | undefined;
}

export class Listing<Row, After> {
  rows = $state.raw<Row[]>([]);
  next = $state.raw<After>();
  loaded = $state(false);
  failure = $state.raw<unknown>();
  readonly #fetch: (search: string, after: After | undefined) => Promise<Fetched<Row, After>>;
  #search = '';
  #question = 0;

  constructor(fetch: (search: string, after: After | undefined) => Promise<Fetched<Row, After>>) {
    this.#fetch = fetch;
  }

  begin(search: string): Promise<void> {
    this.#search = search;
    return this.#ask(undefined, () => []);
  }

  more(): Promise<void> {
    return this.#ask(this.next, () => this.rows);
  }

  replace(same: (row: Row) => boolean, row: Row): void {
    this.rows = this.rows.map((old) => (same(old) ? row : old));
  }

  async #ask(after: After | undefined, before: () => Row[]): Promise<void> {
    this.#question += 1;
    const question = this.#question;
    try {
      const { rows, next } = await this.#fetch(this.#search, after);
      if (question !== this.#question) return;
      this.rows = [...before(), ...rows];
      this.next = next;
      this.failure = undefined;
    } catch (failure) {
      if (question === this.#question) this.failure = failure;
    }
    this.loaded = true;
  }
}
