//! The address bar: the one source of which room is open, so that back, forward and links work as people expect.

import { formatRoute, parseRoute, type Route } from '../model/route';

export class Router {
  route = $state.raw<Route>({ name: 'home' });

  constructor() {
    this.route = parseRoute(location.pathname);
    window.addEventListener('popstate', () => {
      this.route = parseRoute(location.pathname);
    });
  }

  go(route: Route): void {
    const path = formatRoute(route);
    if (path !== location.pathname) history.pushState(null, '', path);
    this.route = route;
  }

  replace(route: Route): void {
    history.replaceState(null, '', formatRoute(route));
    this.route = route;
  }
}
