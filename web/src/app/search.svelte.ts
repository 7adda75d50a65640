//! What is being searched for and what was found. It outlives the panel: going to a hit in another room keeps the list.

import type { RoomId } from '../protocol/generated/chat';
import type { SearchHit } from '../protocol/generated/methods';
import type { Link } from './link.svelte';

const PAGE_LEN = 30;

export type SearchState = 'idle' | 'busy' | 'done' | 'failed';

/** What a list of hits answers; asked again for the next page. */
interface Asked {
  query: string;
  room?: RoomId;
}

export class Search {
  query = $state('');
  everywhere = $state(false);
  state = $state<SearchState>('idle');
  hits = $state.raw<readonly SearchHit[]>([]);
  /** Set while there are more pages. */
  next = $state<string>();
  /** Changes that the server's index has yet to look at: something may be missing. */
  behind = $state(0);
  failure = $state.raw<unknown>();
  /** The hit gone to last; the keyboard goes on from there. */
  selected = $state(-1);
  readonly #link: Link;
  #asked: Asked | undefined;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Searches for what is in the field: in a room, or everywhere. */
  async run(room: RoomId): Promise<void> {
    const query = this.query.trim();
    if (query === '') return;
    this.hits = [];
    this.next = undefined;
    this.selected = -1;
    await this.#ask(this.everywhere ? { query } : { query, room });
  }

  async more(): Promise<void> {
    if (this.#asked && this.next !== undefined && this.state !== 'busy') await this.#ask(this.#asked, this.next);
  }

  async #ask(asked: Asked, cursor?: string): Promise<void> {
    this.#asked = asked;
    this.state = 'busy';
    try {
      const page = await this.#link.call('search', { ...asked, limit: PAGE_LEN, ...(cursor === undefined ? {} : { cursor }) });
      // Another search was begun meanwhile: its answer counts.
      if (this.#asked !== asked) return;
      this.hits = [...this.hits, ...page.hits];
      this.next = page.next;
      this.behind = page.behind ?? 0;
      this.state = 'done';
    } catch (failure) {
      if (this.#asked !== asked) return;
      this.failure = failure;
      this.state = 'failed';
    }
  }
}
