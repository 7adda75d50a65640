//! Which messages answer which, of those that are held: a thread is a message and all that grew out of it.

export interface Grown {
  count: number;
  /** The newest of them. */
  last: number;
}

export class Answers {
  readonly #answered = new Map<number, number>();
  readonly #answers = new Map<number, Set<number>>();

  /** What a message answers now; what is deleted answers nothing. */
  set(seq: number, answered: number | undefined): void {
    const before = this.#answered.get(seq);
    if (before === answered) return;
    if (before !== undefined) this.#answers.get(before)?.delete(seq);
    if (answered === undefined) {
      this.#answered.delete(seq);
      return;
    }
    this.#answered.set(seq, answered);
    const others = this.#answers.get(answered);
    if (others) others.add(seq);
    else this.#answers.set(answered, new Set([seq]));
  }

  /** All that grew out of a message; undefined where nothing did. */
  of(root: number): Grown | undefined {
    const found: Grown = { count: 0, last: root };
    const open = [root];
    for (let seq = open.pop(); seq !== undefined; seq = open.pop()) {
      for (const answer of this.#answers.get(seq) ?? []) {
        // An answer is newer than what it answers, so that this comes to an end.
        if (answer <= seq) continue;
        found.count += 1;
        found.last = Math.max(found.last, answer);
        open.push(answer);
      }
    }
    return found.count === 0 ? undefined : found;
  }
}
