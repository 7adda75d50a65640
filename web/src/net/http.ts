//! The few HTTP calls made before there is a socket: accounts, sessions, and looking at an invitation. The administration
//! asks over HTTP too, with `request` from here.

import type { AccountDelete, PasswordChange, PasswordReset, SetupCreate, SetupState, SignedIn, UserView } from '../protocol/generated/chat';
import type { InvitePreview } from '../protocol/generated/methods';

/** A problem document (RFC 9457) of the server; `field` and `limit` name what was wrong. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly field: string | undefined,
    readonly limit?: number | undefined,
  ) {
    super(detail || title);
    this.name = 'Problem';
  }
}

/** The server could not be reached at all. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the server cannot be reached', { cause });
    this.name = 'Unreachable';
  }
}

export interface Credentials {
  name: string;
  password: string;
  display_name?: string;
  device: string;
  /** Where only the invited may sign up. */
  invite?: string;
}

export function signUp(credentials: Credentials): Promise<SignedIn> {
  return request<SignedIn>('POST', '/api/v1/accounts', { body: credentials });
}

export function signIn(credentials: Credentials): Promise<SignedIn> {
  return request<SignedIn>('POST', '/api/v1/sessions', { body: credentials });
}

export async function signOut(token: string): Promise<void> {
  await request<undefined>('DELETE', '/api/v1/sessions/current', { token, keepalive: true });
}

export function lookAtInvite(code: string): Promise<InvitePreview> {
  return request<InvitePreview>('GET', `/api/v1/invites/${encodeURIComponent(code)}`, {});
}

export function setupState(): Promise<SetupState> {
  return request<SetupState>('GET', '/api/v1/setup', {});
}

export function setUp(first: SetupCreate): Promise<SignedIn> {
  return request<SignedIn>('POST', '/api/v1/setup', { body: first });
}

export function resetPassword(reset: PasswordReset): Promise<SignedIn> {
  return request<SignedIn>('POST', '/api/v1/password-resets', { body: reset });
}

export async function changePassword(token: string, change: PasswordChange): Promise<void> {
  await request<undefined>('POST', '/api/v1/me/password', { body: change, token });
}

/** Deletes the account of whoever asks. */
export async function deleteAccount(token: string, wish: AccountDelete): Promise<void> {
  await request<undefined>('POST', '/api/v1/me/deletion', { body: wish, token, patient: true });
}

/** Shows a picture, or none. */
export function setPicture(token: string, picture: Blob | undefined): Promise<UserView> {
  const path = '/api/v1/me/picture';
  return picture ? request<UserView>('PUT', path, { bytes: picture, token }) : request<UserView>('DELETE', path, { token });
}

/** A line may be half open: it takes what is said and never answers. The slowest one that works answers sooner. */
const ANSWER_MS_MAX = 30_000;

interface Options {
  body?: object;
  /** A body that is no JSON. */
  bytes?: Blob;
  token?: string;
  /** It arrives though the page is closed meanwhile. */
  keepalive?: boolean;
  /** What is asked for may take the server as long as it likes. */
  patient?: boolean;
}

export async function request<T>(method: string, path: string, { body, bytes, token, keepalive = false, patient = false }: Options): Promise<T> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
  const stop = new AbortController();
  const init: RequestInit = { method, headers, credentials: 'omit', keepalive, signal: stop.signal };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (bytes !== undefined) init.body = bytes;
  // A picture takes as long as the line does.
  const timer = bytes === undefined && !patient ? setTimeout(() => stop.abort(), ANSWER_MS_MAX) : undefined;
  try {
    return await answered<T>(path, init);
  } catch (failure) {
    throw stop.signal.aborted ? new Unreachable(failure) : failure;
  } finally {
    clearTimeout(timer);
  }
}

async function answered<T>(path: string, init: RequestInit): Promise<T> {
  const response = await fetch(path, init).catch((cause: unknown) => {
    throw new Unreachable(cause);
  });
  if (!response.ok) throw problemOf(response.status, response.statusText, await response.json().catch(() => undefined));
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** Reads the problem document; a proxy in between may answer with something else, then only the status is known. */
export function problemOf(status: number, statusText: string, body: unknown): Problem {
  const fields: Partial<Record<'title' | 'detail' | 'field' | 'limit', unknown>> = typeof body === 'object' && body !== null ? body : {};
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  const limit = typeof fields.limit === 'number' ? fields.limit : undefined;
  return new Problem(status, text(fields.title) ?? statusText, text(fields.detail) ?? '', text(fields.field), limit);
}
