//! Walking through the list by keyboard: which row Tab reaches, and where each key leads.

import { tick } from 'svelte';

import type { Timeline } from '../../model/timeline';
import { messageKey } from './message_keys';
import type { Placing } from './placing.svelte';

export class Walking {
  /** The number of the message that last had the focus. */
  focused = $state<number>();
  readonly #placing: Placing;
  readonly #timeline: Timeline;
  /** The row that Tab reaches: where the person last was, or the newest. */
  readonly tabStop = $derived.by(() => {
    const { focused } = this;
    return focused !== undefined && this.#exists(focused) ? focused : this.#placing.last + 1;
  });

  constructor(placing: Placing, timeline: Timeline) {
    this.#placing = placing;
    this.#timeline = timeline;
  }

  readonly onKeydown = (event: KeyboardEvent): void => {
    if (!(event.target instanceof HTMLElement) || event.target.tagName !== 'ARTICLE') return;
    const move = messageKey(event, Number(event.target.dataset['seq']), this.#timeline.lastSeq);
    if (move === undefined) return;
    event.preventDefault();
    void this.#focus(move);
  };

  #exists(seq: number): boolean {
    return seq - 1 >= this.#placing.first && seq - 1 <= this.#placing.last;
  }

  async #focus(seq: number): Promise<void> {
    const wanted = Math.max(this.#timeline.firstSeq, Math.min(this.#timeline.lastSeq, seq));
    this.focused = wanted;
    if (!this.#exists(wanted)) await this.#placing.jumpTo(wanted);
    await tick();
    const row = this.#placing.rowsBox.querySelector<HTMLElement>(`[data-seq="${wanted}"]`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: 'nearest' });
  }
}
