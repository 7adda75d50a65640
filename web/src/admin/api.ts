//! What an administrator can ask of the server. It answers 403 to everybody else, whatever the page shows.

import { request } from '../net/http';
import type {
  AdminRooms, AdminUser, AdminUsers, AdminUserUpdate, LiveView, ModerationPage, ResetLink, RoomId, StorageView, UserId,
} from '../protocol/generated/chat';

/** Rows fetched at once: a screen and a half. */
const PAGE_ROWS = 50;

export class Administration {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  users(search: string, after: string | undefined): Promise<AdminUsers> {
    return this.#get(`users${query({ search, after, limit: PAGE_ROWS })}`);
  }

  update(user: UserId, change: AdminUserUpdate): Promise<AdminUser> {
    return request('PATCH', `${ROOT}/users/${user}`, { token: this.#token, body: change });
  }

  signOut(user: UserId): Promise<undefined> {
    return request('DELETE', `${ROOT}/users/${user}/devices`, { token: this.#token });
  }

  resetLink(user: UserId): Promise<ResetLink> {
    return request('POST', `${ROOT}/users/${user}/password-reset`, { token: this.#token });
  }

  rooms(search: string, after: RoomId | undefined): Promise<AdminRooms> {
    return this.#get(`rooms${query({ search, after, limit: PAGE_ROWS })}`);
  }

  storage(): Promise<StorageView> {
    return this.#get('storage');
  }

  live(): Promise<LiveView> {
    return this.#get('live');
  }

  moderation(before: number | undefined): Promise<ModerationPage> {
    return this.#get(`moderation${query({ before, limit: PAGE_ROWS })}`);
  }

  #get<T>(path: string): Promise<T> {
    return request('GET', `${ROOT}/${path}`, { token: this.#token });
  }
}

const ROOT = '/api/v1/admin';

function query(fields: Record<string, string | number | undefined>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
  return `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`;
}
