// Generated from crates/folkmoot-protocol by its example generate_types; do not edit.

/** Why a command failed. */
export const ErrorCode = {
  /** internal server error */
  Internal: 100,
  /** unauthorized */
  Unauthorized: 101,
  /** unknown channel */
  UnknownChannel: 102,
  /** permission denied */
  PermissionDenied: 103,
  /** method not found */
  MethodNotFound: 104,
  /** already subscribed */
  AlreadySubscribed: 105,
  /** limit exceeded */
  LimitExceeded: 106,
  /** bad request */
  BadRequest: 107,
  /** not available */
  NotAvailable: 108,
  /** token expired */
  TokenExpired: 109,
  /** expired */
  Expired: 110,
  /** too many requests */
  TooManyRequests: 111,
  /** unrecoverable position */
  UnrecoverablePosition: 112,
  /** invalid field */
  InvalidField: 400,
  /** not found */
  NotFound: 404,
  /** idempotency key reused with other content */
  KeyReused: 409,
  /** too large */
  TooLarge: 413,
  /** rate limited */
  RateLimited: 429,
  /** the store cannot take writes */
  StoreUnavailable: 503,
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** Why the server closed. */
export const DisconnectCode = {
  /** frame over 65536 bytes */
  FrameTooLarge: 1009,
  /** connection closed */
  ConnectionClosed: 3000,
  /** shutdown */
  Shutdown: 3001,
  /** internal server error */
  ServerError: 3004,
  /** connection expired */
  Expired: 3005,
  /** slow */
  Slow: 3008,
  /** write error */
  WriteError: 3009,
  /** insufficient state */
  InsufficientState: 3010,
  /** force reconnect */
  ForceReconnect: 3011,
  /** no pong */
  NoPong: 3012,
  /** too many requests */
  TooManyRequests: 3013,
  /** invalid token */
  InvalidToken: 3500,
  /** bad request */
  BadRequest: 3501,
  /** stale */
  Stale: 3502,
  /** force disconnect */
  ForceDisconnect: 3503,
  /** connection limit */
  ConnectionLimit: 3504,
  /** channel limit */
  ChannelLimit: 3505,
  /** inappropriate protocol */
  InappropriateProtocol: 3506,
  /** permission denied */
  PermissionDenied: 3507,
} as const;
export type DisconnectCode = (typeof DisconnectCode)[keyof typeof DisconnectCode];
