//! Keeps the client itself at hand, so that it opens without a network. Files under /assets/ carry their hash and never
//! change; the page is asked for anew each time and kept for when nobody answers. Data is not its business.

export {};

declare const self: ServiceWorkerGlobalScope;

const CACHE = 'folkmoot-client';
const PAGE = '/';
/** Made by the build. */
const REST = '/offline.json';
/** Answers of something between us and the server while the server is not there. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);

self.addEventListener('install', (event) => {
  event.waitUntil(keepClient().then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
  event.waitUntil(self.clients.claim());
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== self.location.origin) return;
  if (request.mode === 'navigate') event.respondWith(page(request));
  else if (url.pathname.startsWith('/assets/') || url.pathname.startsWith('/api/v1/logo/') || url.pathname === '/icon.svg') event.respondWith(asset(request));
});

/** The room of a notification, in the window that is open or in a new one. */
self.addEventListener('notificationclick', (event) => {
  const { room, seq } = event.notification.data as { room: string; seq: number };
  event.notification.close();
  event.waitUntil(
    self.clients.matchAll({ type: 'window' }).then(async ([open]) => {
      if (!open) return void (await self.clients.openWindow(`/room/${room}/${seq}`));
      open.postMessage({ room, seq });
      await open.focus();
    }),
  );
});

/** The page and the files that it names: the first visit is enough to come back without a network, with everything in it. */
async function keepClient(): Promise<void> {
  const cache = await caches.open(CACHE);
  const fresh = await fetch(PAGE, { cache: 'no-cache' });
  await cache.put(PAGE, fresh.clone());
  await cache.addAll([...assetsOf(await fresh.text()), '/icon.svg']);
  // Dialogs and languages are not worth holding up anything for.
  void keepRest(cache);
}

/** What the client may load later, one after the other: it must not compete with what somebody waits for. */
async function keepRest(cache: Cache): Promise<void> {
  try {
    const list = await fetch(REST, { cache: 'no-cache' });
    for (const path of (await list.json()) as string[]) {
      if (!(await cache.match(path))) await cache.add(path);
    }
  } catch {
    // The next visit goes on.
  }
}

function assetsOf(html: string): string[] {
  return [...html.matchAll(/\/assets\/[\w.-]+/g)].map(([path]) => path);
}

async function page(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  try {
    const fresh = await fetch(request);
    if (AWAY.has(fresh.status)) return (await cache.match(PAGE)) ?? fresh;
    // An error page is not worth keeping. What cannot be kept, because the disk is full, is shown all the same.
    if (fresh.ok) await keepPage(cache, fresh).catch(() => undefined);
    return fresh;
  } catch (failure) {
    const kept = await cache.match(PAGE);
    if (kept) return kept;
    throw failure;
  }
}

/** Every view of the client is the same page. What else a server shows, such as its metrics, must not take its place. */
async function keepPage(cache: Cache, fresh: Response): Promise<void> {
  if (fresh.headers.get('content-type')?.startsWith('text/html') !== true) return;
  const html = await fresh.clone().text();
  if (assetsOf(html).length === 0) return;
  await cache.put(PAGE, fresh.clone());
  await forgetOldAssets(cache, html);
  void keepRest(cache);
}

async function asset(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request);
  if (kept) return kept;
  const fresh = await fetch(request);
  if (fresh.ok) await cache.put(request, fresh.clone()).catch(() => undefined);
  return fresh;
}

/** A new version names its main files in the page; once it names none of those kept, the kept ones are history. */
async function forgetOldAssets(cache: Cache, html: string): Promise<void> {
  const named = assetsOf(html);
  const kept = (await cache.keys()).map((request) => new URL(request.url).pathname).filter((path) => path.startsWith('/assets/'));
  if (kept.length === 0 || named.some((path) => kept.includes(path))) return;
  await Promise.all(kept.map((path) => cache.delete(path)));
}
