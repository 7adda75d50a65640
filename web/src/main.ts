//! Starts the client.

import { mount } from 'svelte';

import { chosenLanguage } from './app/preferences.svelte';
import { loadStrings } from './i18n';
import { browserStorage, Keep } from './net/keep';
import './styles/tokens.css';
import './styles/base.css';
import './styles/message.css';
import App from './ui/App.svelte';

const target = document.getElementById('app');
if (!target) throw new Error('the page has no #app');

const keep = new Keep(browserStorage());
/** The chat: asked for at once by whoever is signed in, and by everybody else while they type their name. */
const loadShell = () => import('./ui/Shell.svelte');
if (keep.session()) void loadShell().catch(() => undefined);
void loadStrings(chosenLanguage(keep)).then(() => {
  mount(App, { target, props: { keep, loadShell } });
  // What fails here is asked for again, with words, by the page that needs it.
  const whenIdle = window.requestIdleCallback ?? ((run: () => void) => setTimeout(run));
  whenIdle(() => void loadShell().catch(() => undefined));
});

// The development server changes its files under the worker's feet.
if (import.meta.env.PROD && 'serviceWorker' in navigator) {
  navigator.serviceWorker.register('/service_worker.js').catch(() => {
    // Without it the client works as before; it only does not open without a network.
  });
}
