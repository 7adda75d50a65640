//! What an administrator can ask of the server. It answers 403 to everybody else, whatever the page shows. What may be
//! long comes as a listing, which asks page by page.

import { request } from '../net/http';
import type {
  AdminRoom, AdminRooms, AdminSettings, AdminSettingsUpdate, AdminUser, AdminUsers, AdminUserUpdate, LiveView, ModerationEntry, ModerationPage, ResetLink,
  RetentionRule, RetentionRules, RoomId, StorageView, UserId,
} from '../protocol/generated/chat';
import { Listing } from './listing.svelte';

/** Rows fetched at once: a screen and a half. */
const PAGE_ROWS = 50;

export class Administration {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  users(): Listing<AdminUser, string> {
    return new Listing(async (search, after) => {
      const { users, next } = await this.#get<AdminUsers>(`users${query({ search, after, limit: PAGE_ROWS })}`);
      return { rows: users, next };
    });
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

  rooms(): Listing<AdminRoom, RoomId> {
    return new Listing(async (search, after) => {
      const { rooms, next } = await this.#get<AdminRooms>(`rooms${query({ search, after, limit: PAGE_ROWS })}`);
      return { rows: rooms, next };
    });
  }

  settings(): Promise<AdminSettings> {
    return this.#get('settings');
  }

  updateSettings(update: AdminSettingsUpdate): Promise<AdminSettings> {
    return request('PATCH', `${ROOT}/settings`, { token: this.#token, body: update });
  }

  /** Shows a logo of the server's own, or Folkmoot's again. */
  setLogo(picture: Blob | undefined): Promise<AdminSettings> {
    const path = `${ROOT}/logo`;
    return picture ? request('PUT', path, { token: this.#token, bytes: picture }) : request('DELETE', path, { token: this.#token });
  }

  /** How long messages are kept. */
  keeping(): Promise<RetentionRules> {
    return this.#get('retention');
  }

  setKeeping(rule: RetentionRule): Promise<RetentionRules> {
    return request('PUT', `${ROOT}/retention`, { token: this.#token, body: rule });
  }

  /** Without a rule the server's holds in the room. */
  setRoomKeeping(room: RoomId, rule: RetentionRule | undefined): Promise<undefined> {
    const path = `${ROOT}/rooms/${room}/retention`;
    return rule ? request('PUT', path, { token: this.#token, body: rule }) : request('DELETE', path, { token: this.#token });
  }

  storage(): Promise<StorageView> {
    return this.#get('storage');
  }

  live(): Promise<LiveView> {
    return this.#get('live');
  }

  moderation(): Listing<ModerationEntry, number> {
    return new Listing(async (_, before) => {
      const { entries, next } = await this.#get<ModerationPage>(`moderation${query({ before, limit: PAGE_ROWS })}`);
      return { rows: entries, next };
    });
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
