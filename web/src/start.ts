//! Shows the client, once its strings are there.

import { mount } from 'svelte';

import { loadStrings, type Language } from './i18n';
import type { Keep } from './net/keep';
import App from './ui/App.svelte';

type LoadShell = () => Promise<typeof import('./ui/Shell.svelte')>;

export async function start(target: Element, keep: Keep, language: Language, loadShell: LoadShell): Promise<void> {
  await loadStrings(language);
  mount(App, { target, props: { keep, loadShell } });
  // What fails here is asked for again, with words, by the page that needs it.
  const whenIdle = window.requestIdleCallback ?? ((run: () => void) => setTimeout(run));
  whenIdle(() => void loadShell().catch(() => undefined));
}
