//! Shows the client, once its strings are there.

import { mount } from 'svelte';

import { followVisiblePart } from './app/visible_part';
import { whenIdle } from './app/when_idle';
import { loadStrings, type Language } from './i18n';
import type { Keep } from './net/keep';
import App from './ui/App.svelte';

/** Whoever is signed in needs it when they sign out: a line that is slow carries their room first. */
const ENTRANCE_AFTER_MS = 3_000;

/** The two halves of the client, of which one is shown at a time. */
export interface Halves {
  loadShell: () => Promise<typeof import('./ui/Shell.svelte')>;
  loadEntrance: () => Promise<typeof import('./ui/entrance/SignIn.svelte')>;
}

export async function start(target: HTMLElement, keep: Keep, language: Language, halves: Halves): Promise<void> {
  followVisiblePart(target);
  await loadStrings(language);
  mount(App, { target, props: { keep, ...halves } });
  // What fails here is asked for again, with words, by the page that needs it. One half is being loaded already.
  const loadBoth = () => [halves.loadShell, halves.loadEntrance].forEach((load) => void load().catch(() => undefined));
  if (keep.session()) setTimeout(() => whenIdle(loadBoth), ENTRANCE_AFTER_MS);
  else whenIdle(loadBoth);
}
