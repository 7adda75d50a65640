//! Pictures of messages as addresses that an image element can show. They live in this tab's memory only, the last ones
//! seen; signing out forgets them with everything else.

import { download } from '../net/files';

/** About 40 KiB each. */
const KEPT_MAX = 200;

export class Media {
  readonly #token: string;
  /** In the order of use, the oldest first. */
  readonly #kept = new Map<string, Promise<string>>();

  constructor(token: string) {
    this.#token = token;
  }

  /** An address in memory for one of the server's. */
  show(url: string): Promise<string> {
    const known = this.#kept.get(url);
    this.#kept.delete(url);
    const shown = known ?? download(this.#token, url).then((blob) => URL.createObjectURL(blob));
    this.#kept.set(url, shown);
    // A failure is not worth remembering: the connection may be back the next time.
    if (!known) shown.catch(() => this.#kept.delete(url));
    this.#dropOldest();
    return shown;
  }

  /** One that is too large to be kept: whoever shows it lets it go. */
  async load(url: string): Promise<string> {
    return URL.createObjectURL(await download(this.#token, url));
  }

  /** What somebody sees here already, because they sent it. */
  keep(url: string, shown: string): void {
    this.#kept.set(url, Promise.resolve(shown));
  }

  /** Lets the person save a file. */
  async save(url: string, name: string): Promise<void> {
    const address = URL.createObjectURL(await download(this.#token, url));
    const link = document.createElement('a');
    link.href = address;
    link.download = name;
    link.click();
    // The browser has taken its own hold of the bytes by the next turn.
    setTimeout(() => URL.revokeObjectURL(address));
  }

  forget(): void {
    for (const shown of this.#kept.values()) void shown.then((address) => URL.revokeObjectURL(address), () => undefined);
    this.#kept.clear();
  }

  #dropOldest(): void {
    for (const [url, shown] of this.#kept) {
      if (this.#kept.size <= KEPT_MAX) return;
      this.#kept.delete(url);
      void shown.then((address) => URL.revokeObjectURL(address), () => undefined);
    }
  }
}
