//! The room that will be open, asked for while the client itself is still on its way. Only a browser that holds nothing
//! yet needs it: every other shows what it kept. As what is kept, it may be out of date once it is shown.

import type { ArchivedRoom } from '../net/archive';
import { archiveOf, type Keep, type KeptSession } from '../net/keep';
import { parseRoute } from '../model/route';
import { isOnlyWords } from '../text/only_words';
import type { MessageView, RoomId, RoomView } from '../protocol/generated/chat';

/** More than the tallest screen shows. */
const MESSAGES = 50;
/** What most screens show of it. */
const SEEN_FIRST = 30;

let asked: Promise<ArchivedRoom | undefined> | undefined;

/** Asks for the room that the address names, or the one that was open last. */
export function ask(keep: Keep, session: KeptSession, path: string): void {
  const route = parseRoute(path);
  // A message of long ago is somewhere else in the room.
  if (route.name === 'room' && route.seq !== undefined) return;
  const room = route.name === 'room' ? route.room : route.name === 'home' ? keep.recentRooms(session.user.id)[0] : undefined;
  if (room !== undefined) asked = look(session, room).catch(() => undefined);
}

/** What was asked for, once; undefined where nothing was, or where it did not come. */
export function take(): Promise<ArchivedRoom | undefined> | undefined {
  const taken = asked;
  asked = undefined;
  return taken;
}

/** A page without a worker is the first one of its browser, which would take a tenth of a second to say that it holds nothing. */
async function holds(archive: string): Promise<boolean> {
  if (!navigator.serviceWorker?.controller) return false;
  return (await indexedDB.databases()).some(({ name }) => name === archive);
}

async function look({ token, user }: KeptSession, room: RoomId): Promise<ArchivedRoom | undefined> {
  if (await holds(archiveOf(user.id))) return undefined;
  const path = `/api/v1/rooms/${encodeURIComponent(room)}`;
  const [view, page] = await Promise.all([
    get<RoomView>(path, token),
    get<{ messages: MessageView[] }>(`${path}/messages?limit=${MESSAGES}`, token),
  ]);
  // Behind the chat itself it would be late.
  if (page.messages.slice(-SEEN_FIRST).some(({ body }) => body !== '' && !isOnlyWords(body))) import('../text/markdown').catch(() => undefined);
  return { view, messages: page.messages };
}

async function get<T>(path: string, token: string): Promise<T> {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${token}` }, credentials: 'omit' });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return (await answer.json()) as T;
}
