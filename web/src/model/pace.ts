//! How large the next piece of a file is, learnt from those before: a line that a piece keeps busy lets nothing else
//! through meanwhile, so a piece is what the line carries in about a second.

import { UPLOAD_PIECE_BYTES_MAX } from '../protocol/generated/limits';

/** Before anything is known: a second on the slowest lines of telephones. */
const BYTES_FIRST = 8 * 1024;
/** The most that a file begins with: the line may have become far slower since the last one. */
const BYTES_BEGIN_MAX = 32 * 1024;
/** Smaller ones would be mostly the heads of their requests. */
const BYTES_MIN = 4 * 1024;
/** What a message may have to wait for. */
const AIM_MS = 1_000;
/** Where an answer takes longer than that, the line is idle while it is waited for: so pieces are longer, up to this. */
const AIM_MS_MAX = 2_000;
/** One piece that went fast says little. */
const GROWTH_MAX = 4;

export class Pace {
  #bytes = BYTES_FIRST;
  #roundTripMs: number | undefined;

  /** Of the next piece. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Another file begins. */
  begin(): void {
    this.#bytes = Math.min(this.#bytes, BYTES_BEGIN_MAX);
  }

  /** A request with hardly a body was answered after so long. */
  answered(ms: number): void {
    this.#roundTripMs = Math.min(this.#roundTripMs ?? ms, ms);
  }

  /** So many bytes were sent and answered for. */
  sent(bytes: number, ms: number): void {
    this.answered(ms);
    // The rest of a file is too small to tell.
    if (bytes < this.#bytes) return;
    const roundTripMs = this.#roundTripMs ?? 0;
    const underWayMs = Math.max(1, ms - roundTripMs);
    const aimMs = Math.min(AIM_MS_MAX, Math.max(AIM_MS, roundTripMs));
    const wanted = Math.min((bytes / underWayMs) * aimMs, bytes * GROWTH_MAX, UPLOAD_PIECE_BYTES_MAX);
    this.#bytes = Math.max(BYTES_MIN, Math.floor(wanted));
  }

  /** The server waited for the piece in vain: the line has become far slower. Returns whether smaller ones are left. */
  tooSlow(): boolean {
    if (this.#bytes <= BYTES_MIN) return false;
    this.#bytes = Math.max(BYTES_MIN, Math.min(BYTES_FIRST, Math.floor(this.#bytes / GROWTH_MAX)));
    return true;
  }
}
