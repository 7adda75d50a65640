//! Error codes of replies, and which of them a retry can cure.

export const ErrorCode = {
  internal: 100,
  unauthorized: 101,
  unknownChannel: 102,
  permissionDenied: 103,
  methodNotFound: 104,
  alreadySubscribed: 105,
  limitExceeded: 106,
  badRequest: 107,
  notAvailable: 108,
  tokenExpired: 109,
  expired: 110,
  tooManyRequests: 111,
  unrecoverablePosition: 112,
  invalidField: 400,
  notFound: 404,
  keyReused: 409,
  tooLarge: 413,
  rateLimited: 429,
  storeUnavailable: 503,
} as const;

const CURED_BY_WAITING: ReadonlySet<number> = new Set([
  ErrorCode.internal, ErrorCode.notAvailable, ErrorCode.tooManyRequests, ErrorCode.rateLimited,
  ErrorCode.storeUnavailable,
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
