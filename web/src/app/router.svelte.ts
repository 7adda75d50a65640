//! The address bar: the one source of which room is open, so that back, forward and links work as people expect.

import { formatRoute, parseRoute, type Route } from '../model/route';
import { Layers } from './layers';

export class Router {
  route = $state.raw<Route>({ name: 'home' });
  readonly layers: Layers;

  /** `moved` is told that Back or Forward have led to another page. */
  constructor(moved: () => void) {
    this.route = parseRoute(location.pathname);
    this.layers = new Layers(() => {
      this.route = parseRoute(location.pathname);
      moved();
    });
  }

  go(route: Route): void {
    const path = formatRoute(route);
    if (path !== location.pathname) this.layers.go(path);
    this.route = route;
  }

  /** Up to the list of rooms, which is the page above all others on a phone. */
  up(): void {
    this.layers.up();
  }

  replace(route: Route): void {
    this.layers.replace(formatRoute(route));
    this.route = route;
  }
}
