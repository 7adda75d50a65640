//! What is being searched for and what was found. It outlives the panel: going to a hit in another room keeps the list.

import { typedQuery } from '../model/typed_query';
import type { RoomId } from '../protocol/generated/chat';
import type { SearchHit } from '../protocol/generated/methods';
import type { Link } from './link.svelte';

const PAGE_LEN = 30;
/** A pause in typing after which is asked. */
const PAUSE_MS = 150;

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
  #pause: ReturnType<typeof setTimeout> | undefined;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Whether what was answered was asked of one room. */
  get isOfRoom(): boolean {
    return this.#asked?.room !== undefined;
  }

  /** Whether what was answered is the answer to these words, as typed or as if the last word went on. */
  answers(words: string): boolean {
    const asked = this.#asked?.query;
    return asked !== undefined && (asked === words.trim() || asked === typedQuery(words));
  }

  /** Searches for what is in the field: in a room, or everywhere. */
  async run(room: RoomId): Promise<void> {
    clearTimeout(this.#pause);
    await this.#begin(this.query.trim(), room);
  }

  /** Searches in a pause of typing, as if the last word went on. What was found stays until the answer is there. */
  typed(room: RoomId): void {
    clearTimeout(this.#pause);
    if (this.query.trim() === '') return this.#reset();
    const query = typedQuery(this.query);
    if (query !== undefined) this.#pause = setTimeout(() => void this.#begin(query, room), PAUSE_MS);
  }

  async #begin(query: string, room: RoomId): Promise<void> {
    if (query !== '') await this.#ask(this.everywhere ? { query } : { query, room });
  }

  #reset(): void {
    this.#asked = undefined;
    this.hits = [];
    this.next = undefined;
    this.selected = -1;
    this.state = 'idle';
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
      this.hits = cursor === undefined ? page.hits : [...this.hits, ...page.hits];
      if (cursor === undefined) this.selected = -1;
      this.next = page.next;
      this.behind = page.behind ?? 0;
      this.state = 'done';
    } catch (failure) {
      if (this.#asked !== asked) return;
      this.hits = [];
      this.next = undefined;
      this.failure = failure;
      this.state = 'failed';
    }
  }
}
