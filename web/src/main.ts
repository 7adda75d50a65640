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
void loadStrings(chosenLanguage(keep)).then(() => mount(App, { target, props: { keep } }));

// The development server changes its files under the worker's feet.
if (import.meta.env.PROD && 'serviceWorker' in navigator) {
  navigator.serviceWorker.register('/service_worker.js').catch(() => {
    // Without it the client works as before; it only does not open without a network.
  });
}
