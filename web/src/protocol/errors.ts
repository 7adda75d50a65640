//! Error codes of replies, and which of them a retry can cure.

import { ErrorCode } from './generated/codes';

const CURED_BY_WAITING: ReadonlySet<number> = new Set([
  ErrorCode.Internal, ErrorCode.NotAvailable, ErrorCode.TooManyRequests, ErrorCode.RateLimited,
  ErrorCode.StoreUnavailable,
]);

/** An answer of the server that is an error; `code` is one of the protocol's. */
export class ReplyError extends Error {
  constructor(readonly code: number, message: string) {
    super(message);
    this.name = 'ReplyError';
  }

  /** Whether the same request can succeed later without being changed. */
  get temporary(): boolean {
    return CURED_BY_WAITING.has(this.code);
  }
}

/** No answer came: the connection was lost or the deadline passed. The request may or may not have run. */
export class NoReply extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoReply';
  }
}
