//! What lies over the page where it covers it: a panel, a dialog, a menu. Each is a step of the browser's history, so
//! that Back closes the top one and leaves the page where it is, as people expect of a phone.
//!
//! What is closed in another way leaves its step behind: a browser goes back later than it is asked to, by when the page
//! may have gone elsewhere. The step is taken by whatever is opened next, and stepped over by Back.

/** Kept with a step: its place in the history of this tab, and how many layers lay over the page. */
interface Step {
  at: number;
  over: number;
  /** The place of the latest step before this one that showed the page above all others, if one did. */
  top?: number | undefined;
}

/** Wider pages show a panel beside the room, and Back leads to another page there. */
const COVERS = '(max-width: 1000px)';

/** The page above all others: the list of rooms. */
const TOP = '/';

export class Layers {
  readonly #open: { close: () => void }[] = [];
  readonly #moved: () => void;
  #path = location.pathname;
  #here: Step;
  /** The browser was asked to go back to the page above all others, and has not arrived yet. */
  #rising = false;

  /** `moved` is told that Back or Forward have led to another page. */
  constructor(moved: () => void) {
    this.#moved = moved;
    // After a reload nothing lies over the page, whatever its step says.
    this.#here = stepOf(history.state) ?? { at: 0, over: 0 };
    this.#replace(this.#here, location.href);
    window.addEventListener('popstate', () => this.#arrive());
  }

  /** Something lies over the page now, and `close` takes it away; returns what is called when it is gone. */
  open(close: () => void): () => void {
    if (!matchMedia(COVERS).matches) return () => undefined;
    const layer = { close };
    this.#open.push(layer);
    if (this.#open.length > this.#here.over) this.#push(this.#next(), location.href);
    return () => {
      const index = this.#open.indexOf(layer);
      if (index >= 0) this.#open.splice(index, 1);
    };
  }

  /** Goes to another page: what lay over this one goes. */
  go(path: string): void {
    this.#closeDownTo(0);
    if (this.#here.over > 0) this.#replace({ ...this.#here, over: 0 }, path);
    else this.#push(this.#next(), path);
  }

  /** Goes up to the page above all others, as the arrow at the top of a native app does: what lies between is left, and
   *  Back does not lead into it again. If none was seen in this tab, the tab's first page becomes it. */
  up(): void {
    if (this.#rising) return;
    this.#closeDownTo(0);
    const { at, top = 0 } = this.#here;
    const steps = at - top;
    this.#rising = true;
    // A browser forgets steps that are too long ago, and goes nowhere then.
    if (steps > 0 && steps < history.length) history.go(-steps);
    else this.#risen();
  }

  /** This page has another address. */
  replace(path: string): void {
    this.#replace(this.#here, path);
  }

  #risen(): void {
    this.#rising = false;
    this.#closeDownTo(0);
    if (location.pathname !== TOP) this.#replace({ ...this.#here, over: 0 }, TOP);
    this.#path = location.pathname;
    this.#moved();
  }

  #arrive(): void {
    const before = this.#here;
    const step = stepOf(history.state);
    // A link to a place within the page makes a step of its own.
    if (step) this.#here = step;
    else this.#replace(this.#next(), location.href);
    if (this.#rising) return this.#risen();
    if (location.pathname !== this.#path) {
      this.#path = location.pathname;
      this.#closeDownTo(0);
      this.#moved();
    } else if (!this.#closeDownTo(this.#here.over) && step) {
      // The step of something that is closed already.
      history.go(Math.sign(this.#here.at - before.at));
    }
  }

  /** Returns whether there was anything to close. */
  #closeDownTo(count: number): boolean {
    const closing = this.#open.splice(count);
    for (const layer of closing.reverse()) layer.close();
    return closing.length > 0;
  }

  /** The step after this one. */
  #next(): Step {
    const { at, top } = this.#here;
    return { at: at + 1, over: this.#open.length, top: this.#path === TOP ? at : top };
  }

  #push(step: Step, path: string): void {
    history.pushState(step, '', path);
    this.#stand(step);
  }

  #replace(step: Step, path: string): void {
    history.replaceState(step, '', path);
    this.#stand(step);
  }

  #stand(step: Step): void {
    this.#here = step;
    this.#path = location.pathname;
  }
}

function stepOf(state: unknown): Step | undefined {
  if (typeof state !== 'object' || state === null || !('at' in state) || !('over' in state)) return undefined;
  const { at, over } = state;
  if (typeof at !== 'number' || typeof over !== 'number') return undefined;
  return { at, over, top: 'top' in state && typeof state.top === 'number' ? state.top : undefined };
}
