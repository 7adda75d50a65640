//! What a person chose on this device: language, light or dark. "auto" follows the system.

import { browserLanguage, LANGUAGES, strings, type Language } from '../i18n';
import type { Keep } from '../net/keep';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

function oneOf<T extends string>(values: readonly T[], value: string | undefined): T | undefined {
  return values.find((known) => known === value);
}

export class Preferences {
  readonly #keep: Keep;
  theme = $state<Theme>('auto');
  language = $state<Language>('en');
  strings = $derived(strings(this.language));

  constructor(keep: Keep) {
    this.#keep = keep;
    this.theme = oneOf(THEMES, keep.preference('theme')) ?? 'auto';
    this.language = oneOf(LANGUAGES, keep.preference('language')) ?? browserLanguage(navigator.languages);
    this.#show();
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.#keep.setPreference('theme', theme === 'auto' ? undefined : theme);
    this.#show();
  }

  setLanguage(language: Language): void {
    this.language = language;
    this.#keep.setPreference('language', language);
    this.#show();
  }

  #show(): void {
    const root = document.documentElement;
    root.lang = this.language;
    if (this.theme === 'auto') delete root.dataset['theme'];
    else root.dataset['theme'] = this.theme;
  }
}
