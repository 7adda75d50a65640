//! One file on its way in pieces, each a request of its own, so that a message waits for a piece at most. What the network
//! interrupts goes on where the server says that it stopped; what the server does not know any more begins anew.

import type { Pace } from '../model/pace';
import { sentName } from '../model/upload';
import type { Attachment, UploadProgress } from '../protocol/generated/chat';
import { sendBytes, type UploadRequest } from './files';
import { Problem, request, Unreachable } from './http';

/** Pieces that reach now this server and now that one would begin for ever: then the file goes as one. */
const BEGINNINGS_MAX = 3;

export class UploadInPieces {
  readonly #request: UploadRequest;
  readonly #pace: Pace;
  #id: string | undefined;
  #beginnings = 0;

  constructor(of: UploadRequest, pace: Pace) {
    this.#request = of;
    this.#pace = pace;
    pace.begin();
    of.signal.addEventListener('abort', () => this.#cancel(), { once: true });
  }

  /** Sends what is missing. After an error it may be called again. */
  async send(): Promise<Attachment> {
    const { file, room, onprogress } = this.#request;
    let at = await this.#resume();
    while (!at?.attachment) {
      if (at === undefined) {
        if (file.size <= this.#pace.bytes || this.#beginnings >= BEGINNINGS_MAX) return this.#asOne();
        this.#beginnings += 1;
        const query = new URLSearchParams({ name: sentName(file.name), size: String(file.size) });
        const begun = performance.now();
        at = await this.#ask('POST', `/api/v1/rooms/${room}/uploads?${query}`);
        this.#pace.answered(performance.now() - begun);
        this.#id = at.id;
        if (this.#request.signal.aborted) this.#cancel();
        this.#request.signal.throwIfAborted();
      }
      onprogress(at.offset / file.size);
      at = await this.#sendPiece(at.offset);
    }
    return at.attachment;
  }

  /** Where it stopped; undefined where nothing is known of it. */
  async #resume(): Promise<UploadProgress | undefined> {
    if (this.#id === undefined) return undefined;
    return this.#known(this.#ask('GET', `/api/v1/uploads/${this.#id}`));
  }

  async #sendPiece(offset: number): Promise<UploadProgress | undefined> {
    const { file, onprogress } = this.#request;
    const piece = file.slice(offset, offset + this.#pace.bytes);
    const begun = performance.now();
    const progress = (sent: number) => onprogress((offset + sent) / file.size);
    const sending = sendBytes<UploadProgress>('PATCH', `/api/v1/uploads/${this.#id}?offset=${offset}`, piece, this.#request, progress);
    return this.#known(sending.then((at) => {
      if (!at.attachment) this.#pace.sent(piece.size, performance.now() - begun);
      return at;
    }));
  }

  /** The server may have forgotten it, or have more of it than is known here. */
  async #known(asked: Promise<UploadProgress>): Promise<UploadProgress | undefined> {
    try {
      return await asked;
    } catch (failure) {
      if (!(failure instanceof Problem)) throw failure;
      if (isLate(failure) && !this.#pace.tooSlow()) throw new Unreachable(failure);
      if (isLate(failure) || failure.field === 'offset') return this.#resume();
      if (failure.status !== 404) throw failure;
      this.#id = undefined;
      return undefined;
    }
  }

  async #asOne(): Promise<Attachment> {
    const { file, room, onprogress } = this.#request;
    const path = `/api/v1/rooms/${room}/attachments?name=${encodeURIComponent(sentName(file.name))}`;
    try {
      return await sendBytes<Attachment>('POST', path, file, this.#request, (sent) => onprogress(sent / file.size));
    } catch (failure) {
      throw failure instanceof Problem && isLate(failure) ? new Unreachable(failure) : failure;
    }
  }

  #ask(method: string, path: string): Promise<UploadProgress> {
    return request<UploadProgress>(method, path, { token: this.#request.token, patient: true });
  }

  /** It is not wanted any more; what the server does not hear it finds out by waiting. */
  #cancel(): void {
    if (this.#id === undefined) return;
    request('DELETE', `/api/v1/uploads/${this.#id}`, { token: this.#request.token }).catch(() => undefined);
  }
}

/** What was sent did not come in time, so that the line is at fault: the server names no field then, and proxies have a status. */
function isLate({ status, title, field }: Problem): boolean {
  return status === 408 || (status === 400 && title === 'bad request' && field === undefined);
}
