//! The addresses of the client and what they mean.

import type { RoomId } from '../protocol/generated/chat';

export type Route =
  | { name: 'home' }
  /** Everything unread, one after the other. */
  | { name: 'inbox' }
  /** What one has saved for later. */
  | { name: 'saved' }
  | { name: 'room'; room: RoomId; seq?: number }
  | { name: 'invite'; code: string }
  /** Their token stands behind `#`, where no server sees it. */
  | { name: 'setup' }
  | { name: 'reset' }
  | { name: 'admin'; view: AdminView };

export const ADMIN_VIEWS = ['overview', 'users', 'rooms', 'settings', 'storage', 'log'] as const;
export type AdminView = (typeof ADMIN_VIEWS)[number];

export function parseRoute(path: string): Route {
  const [, first, second, third] = path.split('/');
  if (first === 'room' && second) {
    const seq = Number(third);
    return Number.isSafeInteger(seq) && seq > 0 ? { name: 'room', room: second, seq } : { name: 'room', room: second };
  }
  if (first === 'invite' && second) return { name: 'invite', code: decode(second) };
  if (first === 'inbox' || first === 'saved') return { name: first };
  if (first === 'setup' || first === 'reset') return { name: first };
  if (first === 'admin') return { name: 'admin', view: ADMIN_VIEWS.find((view) => view === second) ?? 'overview' };
  return { name: 'home' };
}

export function formatRoute(route: Route): string {
  switch (route.name) {
    case 'home':
      return '/';
    case 'room':
      return route.seq === undefined ? `/room/${route.room}` : `/room/${route.room}/${route.seq}`;
    case 'invite':
      return `/invite/${encodeURIComponent(route.code)}`;
    case 'inbox':
    case 'saved':
    case 'setup':
    case 'reset':
      return `/${route.name}`;
    case 'admin':
      return route.view === 'overview' ? '/admin' : `/admin/${route.view}`;
  }
}

/** A malformed escape is not a reason to fail: the server will not know the code either way. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
