//! A link in a message that leads to a place on this server opens here, not in another window.

import { parseRoute } from '../model/route';
import type { Folkmoot } from './folkmoot.svelte';

export function followOwnLink(folkmoot: Folkmoot, event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  // Whoever holds a key wants another window.
  if (!link || link.origin !== location.origin || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const route = parseRoute(link.pathname);
  if (route.name !== 'room') return;
  event.preventDefault();
  folkmoot.router.go(route);
}
