//! The first script that runs, and small: while the client is still being fetched, what it will show is asked for already.

import { ask } from './app/glimpse';
import { fetchStrings, languageOf } from './i18n/languages';
import { browserStorage, Keep } from './net/keep';
import './styles/tokens.css';
import './styles/base.css';
import './styles/message.css';
import './styles/forced.css';

const target = document.getElementById('app');
if (!target) throw new Error('the page has no #app');

const keep = new Keep(browserStorage());
const session = keep.session();
/** The chat: asked for at once by whoever is signed in, and by everybody else while they type their name. */
const loadShell = () => import('./ui/Shell.svelte');
/** The other way round. */
const loadEntrance = () => import('./ui/entrance/SignIn.svelte');
if (session) {
  ask(keep, session, location.pathname);
  void loadShell().catch(() => undefined);
  // With a worker all is at hand, and nothing on its way is kept waiting.
  if (navigator.serviceWorker?.controller) import('./text/markdown').catch(() => undefined);
} else void loadEntrance().catch(() => undefined);
const language = languageOf(keep.preference('language'), navigator.languages);
// On its way beside the client; where it does not come, the client speaks English.
fetchStrings(language)?.catch(() => undefined);
void import('./start').then(({ start }) => start(target, keep, language, { loadShell, loadEntrance }));

// The development server changes its files under the worker's feet.
if (import.meta.env.PROD && 'serviceWorker' in navigator) {
  navigator.serviceWorker.register('/service_worker.js').catch(() => {
    // Without it the client works as before; it only does not open without a network.
  });
}
