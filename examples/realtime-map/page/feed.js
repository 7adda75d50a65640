// @ts-check
// The event stream of one viewport. A moved map opens a new stream and closes the old one once the new one speaks; a lost one
// is opened again with growing pauses, and everyone is told.

/** @typedef {"wait" | "live" | "lost"} LinkState */
/** @typedef {[string, number, number, number, number, number, string, string, number, number]} Sighting id, lat, lon, heading, cm/s, delay, mode, line, direction, ms */
/**
 * @typedef {object} Listener
 * @property {(sightings: Sighting[]) => void} positions
 * @property {(ids: string[]) => void} asleep
 * @property {(crossing: any) => void} crossing
 * @property {(overview: any) => void} overview
 * @property {(state: LinkState) => void} link
 */

const PAUSE_MIN_MS = 500;
const PAUSE_MAX_MS = 8_000;
const SETTLE_MS = 220;

export class Feed {
  /** @type {EventSource | undefined} */ #source;
  /** @type {number | undefined} */ #timer;
  #bbox = "";
  #pause = PAUSE_MIN_MS;
  #listener;

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener;
  }

  /** Looks at another box, once it has settled. @param {string} bbox */
  look(bbox) {
    if (bbox === this.#bbox) return;
    this.#bbox = bbox;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#open(), this.#source ? SETTLE_MS : 0);
  }

  #open() {
    const before = this.#source;
    const source = new EventSource(`/events?bbox=${this.#bbox}`);
    this.#source = source;
    const on = (/** @type {string} */ name, /** @type {(data: any) => void} */ act) =>
      source.addEventListener(name, (event) => act(JSON.parse(event.data)));
    source.onopen = () => {
      before?.close();
      this.#pause = PAUSE_MIN_MS;
      this.#listener.link("live");
    };
    on("positions", (data) => this.#listener.positions(data));
    on("asleep", (data) => this.#listener.asleep(data));
    on("crossing", (data) => this.#listener.crossing(data));
    on("overview", (data) => this.#listener.overview(data));
    source.onerror = () => {
      source.close();
      before?.close();
      if (this.#source !== source) return;
      this.#listener.link("lost");
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#open(), this.#pause);
      this.#pause = Math.min(PAUSE_MAX_MS, this.#pause * 2);
    };
  }
}
